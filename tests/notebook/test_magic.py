"""The commands in a bare shell: options, variables, on and off, statements, and that nothing is left."""

from __future__ import annotations

import builtins
import gc
import re
import sys
import threading
import warnings
import weakref

import pytest
import torch
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

import tensormagic
from tests.notebook.shells import ran, shell_with_magic


@pytest.fixture
def shell(monkeypatch):
    with shell_with_magic(monkeypatch) as made:
        yield made
    assert sys.gettrace() is None
    assert torch.overrides._get_current_function_mode_stack() == []
    assert "showtraceback" not in made.__dict__


def steps(trace):
    return [step.line for step in trace.recording.steps]


# ---- options -----------------------------------------------------------------------------------------------------


def test_bounds_reach_the_recorder(shell):
    ran(shell, "%%tensortrace --values 5 --max-steps 2 --watch a,b\na = torch.ones(2)\nb = a\nc = a\nd = a")
    trace = shell.user_ns["_trace"]
    assert (trace.recording.about["values"], trace.recording.about["max_steps"]) == (5, 2)
    assert len(trace.recording.steps) == 2
    assert "c" not in trace.at()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--nmae x", "no option --nmae: did you mean --name?"),
        ("--max_steps 3", "did you mean --max-steps?"),
        ("--zzz", "there are --name"),
        ("--name", "--name wants a value"),
        ("--name 3x", "'3x' cannot be the name of a variable"),
        ("--name for", "'for' cannot be the name"),
        ("--values -1", "'-1' is not a whole number of at least 0"),
        ("--values many", "'many' is not a whole number"),
        ("--max-steps 0", "at least 1"),
        ("--watch a,3", "'3' is not the name of a variable"),
        ("--save lesson.pdf", "'lesson.pdf' should end in one of .html"),
        ("--save no/such/lesson.html", "no folder 'no/such' to save 'lesson.html' in"),
        ("--no-panel=1", "no-panel"),
        ("-values 3", "did you mean --values?"),
        ("x = 3", "takes options only, and 'x = 3' is none"),
    ],
)
def test_mistakes_are_named_and_the_cell_does_not_run(shell, line, words):
    got = ran(shell, f"%%tensortrace {line}\nran_anyway = 1")
    assert isinstance(got.error, UsageError)
    assert words in str(got.error)
    assert "ran_anyway" not in shell.user_ns and not got.panels


def test_values_may_be_quoted_and_joined(shell, tmp_path):
    target = tmp_path / "two words.json"
    got = ran(shell, f'%%tensortrace --save="{target}" --name=kept # a "comment"\na = 1')
    assert got.error is None
    assert repr(tensormagic.load(target)) == repr(shell.user_ns["kept"])


def test_a_failing_save_is_told_and_the_cell_stands(shell, tmp_path):
    folder = tmp_path / "folder.json"
    folder.mkdir()
    got = ran(shell, f"%%tensortrace --save {folder}\n40 + 2")
    assert (got.error, got.value, len(got.panels)) == (None, 42, 1)
    assert "could not be saved" in got.stderr


def test_text_in_place_of_the_panel(shell):
    got = ran(shell, "%%tensortrace --text\na = 1")
    assert not got.panels and got.stdout.startswith("summary of <Trace: 1 steps")


def test_a_terminal_gets_text(monkeypatch):
    with shell_with_magic(monkeypatch, kernel=False) as shell:
        got = ran(shell, "%%tensortrace\na = 1")
        assert not got.panels and "summary of <Trace" in got.stdout


# ---- the variable ------------------------------------------------------------------------------------------------


def test_the_trace_is_in_its_variable(shell):
    ran(shell, "%%tensortrace\na = torch.ones(2)")
    first = shell.user_ns["_trace"]
    ran(shell, "%%tensortrace --name lesson\nb = torch.ones(2)")
    assert shell.user_ns["_trace"] is first
    assert "b" in shell.user_ns["lesson"].at()
    ran(shell, "%%tensortrace --name lesson\nc = torch.ones(2)")
    assert "c" in shell.user_ns["lesson"].at()


def test_a_variable_of_the_users_is_not_taken(shell):
    shell.user_ns["_trace"] = "mine"
    got = ran(shell, "%%tensortrace\na = 1")
    assert shell.user_ns["_trace"] == "mine" and "_trace is yours" in got.stderr and len(got.panels) == 1
    shell.user_ns["loss"] = torch.ones(1)
    got = ran(shell, "%%tensortrace --name loss\nran_anyway = 1")
    assert "the variable loss holds a Tensor of yours" in str(got.error)
    assert "ran_anyway" not in shell.user_ns


def test_a_name_that_the_cell_itself_took_is_kept(shell):
    got = ran(shell, "%%tensortrace --name t\nt = 3")
    assert shell.user_ns["t"] == 3 and "t is yours" in got.stderr


def test_nothing_of_the_users_is_kept_alive(shell):
    ran(shell, "%%tensortrace\nw = torch.ones(3, requires_grad=True)\nv = (w * 2).sum()\nv.backward()\nNone")
    died = [weakref.ref(shell.user_ns[name]) for name in "wv"]
    for name in "wv":
        del shell.user_ns[name]
    gc.collect()
    assert [ref() for ref in died] == [None, None]


# ---- a body of one line, and cells run from elsewhere ------------------------------------------------------------


def test_automagic_in_a_body_of_one_line(shell):
    assert ran(shell, "%%tensortrace\npwd").value == ran(shell, "pwd").value is not None


def test_called_as_a_function(shell):
    got = ran(shell, "x = 20\nget_ipython().run_cell_magic('tensortrace', '', 'y = torch.ones(2)\\nx + 1\\n')")
    assert (got.error, got.value, len(got.panels)) == (None, 21, 1)
    assert steps(shell.user_ns["_trace"]) == [2, 3]


def test_silent_runs_are_finished(shell):
    ran(shell, "%%tensortrace\na = torch.ones(2)", silent=True)
    assert steps(shell.user_ns["_trace"]) == [2]


# ---- %tensortrace ------------------------------------------------------------------------------------------------


def test_a_statement_gives_its_value(shell):
    got = ran(shell, "x = %tensortrace --no-panel torch.ones(2) * 3  # 'odd \" quotes'\nx.tolist()")
    assert (got.error, got.value) == (None, [3.0, 3.0])
    assert steps(shell.user_ns["_trace"]) == [1]


def test_a_statement_that_raises(shell):
    got = ran(shell, "def f():\n    %tensortrace 1 / 0\nf()")
    assert isinstance(got.error, ZeroDivisionError) and len(got.panels) == 1
    assert "magic.py" not in got.stdout.split("run_line_magic")[0] and "tensormagic" not in got.stdout
    assert shell.user_ns["_trace"].error.type == "ZeroDivisionError"


def test_no_statement(shell):
    assert "wants a statement" in str(ran(shell, "%tensortrace").error)


def test_on_and_off(shell):
    assert not ran(shell, "%tensortrace on --values 7").panels
    got = ran(shell, "a = torch.ones(2)\na.add_(1)\n'last'")
    assert (got.value, len(got.panels)) == ("last", 1)
    trace = shell.user_ns["_trace"]
    assert steps(trace) == [1, 2, 3] and trace.recording.about["values"] == 7
    assert not ran(shell, "no_torch = 1").panels
    assert len(ran(shell, "%%tensortrace\nb = 1").panels) == 1
    failed = ran(shell, "a @ torch.ones(5)")
    assert isinstance(failed.error, RuntimeError) and len(failed.panels) == 1
    assert not ran(shell, "%tensortrace off").panels
    assert not ran(shell, "a = torch.ones(2)").panels
    assert shell.ast_transformers == []


def test_off_in_a_cell_that_is_traced_because_of_on(shell):
    ran(shell, "%tensortrace on")
    got = ran(shell, "a = torch.ones(2)\n%tensortrace off\nb = torch.ones(2)")
    assert got.error is None and not got.panels


def test_on_after_a_syntax_error(shell):
    ran(shell, "%tensortrace on")
    assert isinstance(ran(shell, "a = = 1").error, SyntaxError)
    assert len(ran(shell, "a = torch.ones(2)").panels) == 1


def test_last(shell):
    assert "no cell has been traced" in str(ran(shell, "%tensortrace last").error)
    ran(shell, "%%tensortrace --no-panel\na = 1")
    assert len(ran(shell, "%tensortrace last").panels) == 1


# ---- errors ------------------------------------------------------------------------------------------------------


def test_a_shown_traceback_of_another_tool_still_works(shell):
    seen = []
    original = shell.showtraceback

    def tool(*args, **kwargs):
        seen.append(sys.exc_info()[1])
        return original(*args, **kwargs)

    shell.showtraceback = tool
    got = ran(shell, "%%tensortrace\nraise ValueError('v')")
    assert [str(error) for error in seen] == ["v"] and len(got.panels) == 1
    assert shell.showtraceback is tool
    del shell.showtraceback


def test_post_mortem_sees_the_users_frames_only(shell):
    ran(shell, "%%tensortrace\ndef f(t):\n    return t @ torch.ones(7)\nf(torch.ones(2))")
    files = []
    traceback = sys.last_traceback
    while traceback is not None:
        files.append(traceback.tb_frame.f_code.co_filename)
        traceback = traceback.tb_next
    assert len(files) == 3 and "interactiveshell" in files[0] and "tensormagic" not in "".join(files)


def test_an_exception_that_the_cell_catches_and_shows_does_not_end_the_trace(shell):
    got = ran(
        shell, "%%tensortrace\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    get_ipython().showtraceback()\na = 1"
    )
    assert got.error is None
    assert steps(shell.user_ns["_trace"])[-1] == 6


# ---- load and unload ---------------------------------------------------------------------------------------------


def state(shell):
    """All that an extension could leave behind."""
    return {
        "events": {name: list(found) for name, found in shell.events.callbacks.items()},
        "cleanup": list(shell.input_transformers_cleanup),
        "post": list(shell.input_transformers_post),
        "ast": list(shell.ast_transformers),
        "magics": {kind: set(found) for kind, found in shell.magics_manager.magics.items()},
        "registry": set(shell.magics_manager.registry),
        "completers": set(shell.strdispatchers["complete_command"].strs),
        "own": set(shell.__dict__),
        "names": {name for name in [*shell.user_ns, *shell.user_ns_hidden] if not re.fullmatch(r"_+\d*|_i+\d*", name)},
        "trace": sys.gettrace(),
        "profile": sys.getprofile(),
        "modes": torch.overrides._get_current_function_mode_stack(),
        "tensor": dict(vars(torch.Tensor)),
        "function": dict(vars(torch.autograd)),
        "dispatch modes": torch.utils._python_dispatch._get_current_dispatch_mode_stack(),
        "finders": list(sys.meta_path),
        "compiler": vars(sys.modules.get("torch._dynamo.eval_frame", object)).get("_maybe_set_eval_frame"),
        "exceptions": (shell.custom_exceptions, getattr(shell, "CustomTB", None), sys.excepthook, threading.excepthook),
        "formatters": {
            kind: (set(one.type_printers), set(one.deferred_printers), set(one.singleton_printers))
            for kind, one in shell.display_formatter.formatters.items()
        },
        "streams": (sys.stdout, sys.stderr, sys.displayhook, builtins.print),
        "warnings": list(warnings.filters),
        "collector": list(gc.callbacks),
        "threads": {thread.name for thread in threading.enumerate()},
        "hooks": {name: list(getattr(hook, "chain", ())) for name, hook in shell.hooks.items()},
    }


def test_unload_leaves_nothing(monkeypatch):
    shell = InteractiveShell()
    shell.history_manager.enabled = False
    ran(shell, "%load_ext storemagic\nimport torch")  # the first %load_ext leaves things of IPython's
    ran(shell, "a = b = 1")  # and so does the first cell of one line
    before = state(shell)
    for _ in range(2):
        assert ran(shell, "%load_ext tensormagic").error is None
        assert tensormagic.load_ipython_extension(shell) is None
        assert state(shell) != before
        ran(
            shell, "%%tensortrace --no-panel\na = torch.ones(2, requires_grad=True)\na.sum().backward()\nraise KeyError"
        )
        ran(shell, "%tensortrace a + 1")
        assert ran(shell, "%reload_ext tensormagic").error is None
        ran(shell, "%%tensortrace --no-panel\na = 2")
        ran(shell, "%%tensortrace --name kept --no-panel\na = 1")
        del shell.user_ns["kept"]
        ran(shell, "%tensortrace on --no-panel")
        ran(shell, "b = 2")
        assert "_trace" in shell.user_ns
        assert ran(shell, "%unload_ext tensormagic").error is None
        after = state(shell)
        assert {part: (after[part], before[part]) for part in before if after[part] != before[part]} == {}
    assert ran(shell, "%%tensortrace\n1").error is not None


def test_reload(shell):
    assert ran(shell, "%load_ext tensormagic").error is None
    assert ran(shell, "%reload_ext tensormagic").error is None
    assert len(ran(shell, "%%tensortrace\na = 1").panels) == 1
    assert len([c for c in shell.events.callbacks["post_run_cell"] if "tensormagic" in repr(c)]) <= 1


def test_unload_inside_a_traced_cell(shell):
    got = ran(shell, "%%tensortrace\na = torch.ones(2)\n%unload_ext tensormagic\na.sum().item()")
    assert (got.error, got.value, got.panels) == (None, 2.0, [])


def test_the_default_variable_is_still_ours_after_a_trace_with_a_name(shell):
    ran(shell, "%%tensortrace\nx = 1")
    first = shell.user_ns["_trace"]
    ran(shell, "%%tensortrace --name lesson\nx = 2")
    ran(shell, "%%tensortrace\nx = 3")
    assert shell.user_ns["_trace"] is not first
    assert shell.user_ns["_trace"] is not shell.user_ns["lesson"]


def test_one_line_under_the_traceback_says_why_the_cell_raised(shell):
    cell = "%%tensortrace\na = torch.ones(3, requires_grad=True)\nb = a.sigmoid()\nb[1] = 2.0\nb.sum().backward()"
    done = ran(shell, cell)
    assert type(done.error) is RuntimeError
    told = [line for line in done.stdout.splitlines() if line.startswith("tensormagic:")]
    assert len(told) == 1
    assert told[0].startswith("tensormagic: Line 4 changed b in place, but sigmoid on line 3")
