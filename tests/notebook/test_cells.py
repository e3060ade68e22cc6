"""The table of cells that other magics get wrong, in a real kernel: each behaves as if the magic were not there."""

from __future__ import annotations

import re

import pytest

from tests.notebook.kernels import Kernel

pytestmark = pytest.mark.kernel


@pytest.fixture(scope="module")
def started():
    with Kernel() as kernel:
        assert kernel.run("%load_ext tensormagic\nimport torch, sys").status == "ok"
        yield kernel


@pytest.fixture
def kernel(started):
    yield started
    left = started.evaluate(
        "(sys.gettrace(), len(torch.overrides._get_current_function_mode_stack()),"
        " 'showtraceback' in get_ipython().__dict__)"
    )
    assert left == "(None, 0, False)"


def lines_of_steps(kernel, name="_trace"):
    return eval(kernel.evaluate(f"[{name}.recording.steps[k].line for k in range(len({name}.recording.steps))]"))


def test_last_value_once(kernel):
    ran = kernel.run("%%tensortrace\na = 41\na + 1")
    assert (ran.status, ran.value, len(ran.panels)) == ("ok", "42", 1)
    assert kernel.run("_").value == "42"
    assert ran.order.index("execute_result") < ran.order.index("display_data")


def test_out_and_history_are_those_of_the_cell(kernel):
    kernel.run("%%tensortrace\n6 * 7")
    assert kernel.evaluate("Out[max(Out)]") == "42"
    assert kernel.evaluate("get_ipython().history_manager.input_hist_raw[-1]") == repr("%%tensortrace\n6 * 7")


def test_semicolon_shows_nothing(kernel):
    ran = kernel.run("%%tensortrace\na = 41\na + 1;")
    assert (ran.status, ran.value, len(ran.panels)) == ("ok", None, 1)


def test_side_effects_once(kernel):
    kernel.run("counter = 0")
    ran = kernel.run("%%tensortrace\ncounter += 1\nprint('count', counter)")
    assert (ran.stdout, kernel.evaluate("counter")) == ("count 1\n", "1")


def test_error_at_line_three_of_the_body(kernel):
    ran = kernel.run("%%tensortrace\na = torch.ones(2)\nb = a * 2\nb @ torch.ones(5)\nc = 1")
    assert (ran.status, ran.error["ename"]) == ("error", "RuntimeError")
    assert frames(ran) == ["Cell"]
    assert "----> 4 b @ torch.ones(5)" in ran.error["traceback"]
    assert_nothing_of_ours(ran)
    assert len(ran.panels) == 1
    assert ran.order.index("error") < ran.order.index("display_data")
    assert lines_of_steps(kernel) == [2, 3, 4]
    assert kernel.evaluate("_trace.error.line") == "4"


def test_syntax_error(kernel):
    before = kernel.evaluate("id(_trace)")
    ran = kernel.run("%%tensortrace\na = 1\nb = = 2")
    assert (ran.status, ran.error["ename"], ran.panels) == ("error", "SyntaxError", [])
    assert_nothing_of_ours(ran)
    assert "3" in ran.error["traceback"].split("b = = 2")[0]
    assert kernel.evaluate("id(_trace)") == before


def test_top_level_await(kernel):
    ran = kernel.run(
        "%%tensortrace\nimport asyncio\nt = torch.ones(2)\nawait asyncio.sleep(0.01)\nt.add_(1)\n"
        "await asyncio.sleep(0.01, result='awaited')"
    )
    assert (ran.status, ran.value, len(ran.panels)) == ("ok", "'awaited'", 1)
    assert lines_of_steps(kernel) == [2, 3, 4, 5, 6]


def test_error_after_an_await(kernel):
    ran = kernel.run("%%tensortrace\nimport asyncio\nawait asyncio.sleep(0)\nraise KeyError('k')")
    assert (ran.status, ran.error["ename"], len(ran.panels)) == ("error", "KeyError", 1)
    assert frames(ran) == ["Cell"]
    assert "----> 4 raise KeyError('k')" in ran.error["traceback"]


def test_line_magic_inside(kernel):
    ran = kernel.run("%%tensortrace\np = %pwd\np == __import__('os').getcwd()")
    assert (ran.status, ran.value) == ("ok", "True")


def test_shell_line_inside(kernel):
    ran = kernel.run("%%tensortrace\n!echo hi")
    assert (ran.status, ran.stdout.strip()) == ("ok", "hi")


def test_the_source_is_shown_as_it_was_written(kernel):
    kernel.run("%%tensortrace --values 8\np = %pwd\n!echo hi")
    assert kernel.evaluate("_trace.recording.sources[_trace.recording.cell]") == repr("\np = %pwd\n!echo hi")


def test_another_cell_magic_inside(kernel):
    ran = kernel.run("%%tensortrace\n%%time\nt = torch.ones(2)\nprint(t.sum().item())")
    assert (ran.status, len(ran.panels)) == ("ok", 1)
    assert "2.0\n" in ran.stdout and "Wall time" in ran.stdout
    assert int(kernel.evaluate("len(_trace.recording.calls)")) >= 3


def test_inside_another_cell_magic(kernel):
    ran = kernel.run("%%time\n%%tensortrace\nt = torch.ones(2)\nt + 1")
    assert (ran.status, len(ran.panels)) == ("ok", 1)
    assert "Wall time" in ran.stdout
    assert lines_of_steps(kernel) == [2, 3]


def test_inside_capture(kernel):
    ran = kernel.run("%%capture caught\n%%tensortrace\nprint('in')\ntorch.ones(2).sum()")
    assert (ran.status, ran.stdout, ran.panels) == ("ok", "", [])
    assert kernel.evaluate("caught.stdout") == repr("in\n")
    assert kernel.evaluate("len(caught.outputs)") == "2"


def test_string_over_two_lines(kernel):
    ran = kernel.run("%%tensortrace\ndef f():\n    return '''a\n  b\n%%c\n!d'''\nf()")
    assert ran.value == repr("a\n  b\n%%c\n!d")


def test_comment_first_and_raise_at_line_three(kernel):
    ran = kernel.run("%%tensortrace\n# comment\nraise ValueError('v')")
    assert "----> 3 raise ValueError('v')" in ran.error["traceback"]
    assert frames(ran) == ["Cell"]
    assert kernel.evaluate("_trace.error.line") == "3"


def test_empty_lines_around_the_magic_keep_the_numbers(kernel):
    ran = kernel.run("\n\n%%tensortrace\n\nraise ValueError('v')")
    assert "----> 5 raise ValueError('v')" in ran.error["traceback"]


def test_future_import(kernel):
    ran = kernel.run("%%tensortrace\nfrom __future__ import annotations\ndef f(x: nowhere): ...\nf.__annotations__")
    assert (ran.status, ran.value) == ("ok", "{'x': 'nowhere'}")


def test_exit(kernel):
    plain = kernel.run("import sys\nsys.exit(3)")
    ran = kernel.run("%%tensortrace\nsys.exit(3)")
    assert (ran.status, ran.error) == (plain.status, plain.error)
    assert (ran.error["ename"], ran.error["evalue"], len(ran.panels)) == ("SystemExit", "3", 1)


def test_comprehension_over_a_variable_of_the_cell(kernel):
    ran = kernel.run("%%tensortrace\nk = 3\n[k * i for i in range(3)]")
    assert ran.value == "[0, 3, 6]"


def test_function_that_raises(kernel):
    ran = kernel.run("%%tensortrace\ndef f(t):\n    u = t + 1\n    return u @ torch.ones(7)\n\nf(torch.ones(2))")
    assert frames(ran) == ["Cell", "Cell"]
    assert "----> 6 f(torch.ones(2))" in ran.error["traceback"]
    assert "----> 4     return u @ torch.ones(7)" in ran.error["traceback"]
    assert_nothing_of_ours(ran)
    assert len(ran.panels) == 1


def test_function_of_an_earlier_cell_is_followed(kernel):
    kernel.run("def earlier(t):\n    u = t * 2\n    return u")
    kernel.run("%%tensortrace\nearlier(torch.ones(2))")
    assert lines_of_steps(kernel) == [2, 3, 2]


def test_unknown_option(kernel):
    ran = kernel.run("%%tensortrace --vlaues 3\nran_anyway = True")
    assert (ran.status, ran.error["ename"], ran.panels) == ("error", "UsageError", [])
    assert "did you mean --values?" in ran.error["evalue"]
    assert kernel.evaluate("'ran_anyway' in globals()") == "False"


def test_interrupt(kernel):
    def interrupt(message):
        if message["msg_type"] == "stream":
            kernel.interrupt()

    ran = kernel.run(
        "%%tensortrace\nimport time\nt = torch.ones(2)\nt.add_(1)\nprint('now')\n"
        "for _ in range(6000):\n    time.sleep(0.01)\nt.add_(5)",
        during=interrupt,
    )
    assert (ran.status, ran.error["ename"], len(ran.panels)) == ("error", "KeyboardInterrupt", 1)
    assert frames(ran) == ["Cell"]
    assert lines_of_steps(kernel)[:4] == [2, 3, 4, 5]
    assert kernel.evaluate("t.tolist()") == "[2.0, 2.0]"


# ---- long cells --------------------------------------------------------------------------------------------------

LONG = """%%tensortrace
import time
t = torch.ones(2)
live = tensormagic.magic.loaded(get_ipython()).running.live
while not live.shown.is_set():
    time.sleep(0.01)
print('seen')"""


def test_a_live_line_comes_and_goes(kernel):
    updates = []

    def note(message):
        if message["msg_type"] == "update_display_data":
            updates.append(message["content"])

    kernel.run("import tensormagic.magic_live\ntensormagic.magic_live.AFTER = 0.05")
    ran = kernel.run(LONG, during=note)
    kernel.run("tensormagic.magic_live.AFTER = 2.0")
    lines = [bundle["text/plain"] for bundle in ran.displays if "no backward run · line" in bundle["text/plain"]]
    assert ran.status == "ok" and len(lines) == 1 and ran.stdout == "seen\n"
    assert re.search(r"tensortrace: \d+ steps · 1 torch call · no backward run · line [67]", lines[0]), lines
    assert updates[-1]["data"]["text/plain"] == ""
    assert [bundle for bundle in ran.displays if bundle["text/plain"] not in lines] == ran.panels
    assert kernel.evaluate("[t.name for t in __import__('threading').enumerate() if 'tensortrace' in t.name]") == "[]"


# ---- further points of the table ---------------------------------------------------------------------------------


def test_comment_behind_the_options(kernel):
    ran = kernel.run("%%tensortrace --no-panel  # not 'shown'\n1")
    assert (ran.status, ran.value, ran.panels) == ("ok", "1", [])


def test_help_with_two_examples(kernel):
    text = kernel.inspect("%%tensortrace")
    assert text.count("%%tensortrace ") >= 2 and "--max-steps" in text and "Examples" in text
    assert kernel.run("%%tensortrace?").status == "ok"


def test_options_complete(kernel):
    assert set(kernel.complete("%%tensortrace --")) >= {"--name", "--save", "--values", "--watch", "--text"}
    assert "--values" in kernel.complete("%%tensortrace --name x --va")
    assert "--depth" in kernel.complete("%tensortrace --de")


def test_loading_twice_is_harmless(kernel):
    kernel.run("%load_ext tensormagic\nimport tensormagic\ntensormagic.load_ipython_extension(get_ipython())")
    ran = kernel.run("%%tensortrace\n1 + 1")
    assert (ran.value, len(ran.panels)) == ("2", 1)


def test_nesting_is_refused(kernel):
    ran = kernel.run("%%tensortrace\nbefore = 1\n%tensortrace torch.ones(2)\nafter = 1")
    assert ran.status == "error" and "inside another" in ran.error["evalue"]
    assert kernel.evaluate("(before, 'after' in globals())") == "(1, False)"
    twice = kernel.run("%%tensortrace\n%%tensortrace\n1")
    assert twice.status == "error" and "inside another" in twice.error["evalue"]


def test_a_tracer_from_before_is_back(kernel):
    kernel.run("def tracer(frame, event, arg): return None\nsys.settrace(tracer)")
    kernel.run("%%tensortrace\ntorch.ones(2)")
    assert kernel.evaluate("sys.gettrace() is tracer") == "True"
    kernel.run("sys.settrace(None)")


def test_cells_that_a_cell_runs_do_not_end_its_trace(kernel):
    ran = kernel.run("%%tensortrace\nget_ipython().run_cell('')\nget_ipython().run_cell('q = 1')\nr = torch.ones(2)")
    assert (ran.status, len(ran.panels)) == ("ok", 1)
    assert lines_of_steps(kernel)[-1] == 4


def test_empty_cell_and_cell_without_torch(kernel):
    assert [kernel.run(cell).status for cell in ("%%tensortrace", "%%tensortrace\n\n# only a comment\n")] == ["ok"] * 2
    ran = kernel.run("%%tensortrace\n'no torch'")
    assert (ran.value, len(ran.panels)) == ("'no torch'", 1)


def frames(ran):
    """Which frames the traceback shows: 'Cell' or a file's name."""
    heads = re.findall(r"^(Cell In\[|File \S+|\S+\.py in |<ipython-input\S+ in )", ran.error["traceback"], re.M)
    cell = re.compile(r"Cell In|\S*ipykernel_\d+/\d+\.py in|<ipython-input")  # the last two: IPython 7
    return ["Cell" if cell.match(head) else head for head in heads]


def assert_nothing_of_ours(ran):
    text = ran.error["traceback"]
    for word in ("tensormagic", "tensortrace", "torch_function", "run_cell_magic"):
        assert word not in text, text
