"""`%%tensortrace` and `%tensortrace`.

A cell under `%%tensortrace` is run by IPython itself. The magic's line becomes a call that begins the trace (see
`shell.transform`); the event at the end of the cell finishes it and shows the panel. One statement (`%tensortrace f()`)
is run here.
"""

from __future__ import annotations

import ast
import re
import weakref
from types import FrameType
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, magics_class, no_var_expand

from tensormagic import shell as inside
from tensormagic.magic_options import Settings, completions, parse, parse_cell, with_options
from tensormagic.magic_running import Running, Shelf
from tensormagic.recording.model import Notice
from tensormagic.watch.watch import make_watch

_COMMANDS = ("on", "off", "last")
_RUN_PYTHON = ("time", "capture")  # cell magics below which lines are followed


@magics_class
class TensorMagics(Magics):  # type: ignore[misc]
    """The commands of one shell, the cell that is being traced, and the last trace."""

    def __init__(self, shell: Any) -> None:
        super().__init__(shell)
        self.shelf = Shelf(shell)
        self.running: Running | None = None
        self.open: list[Any] = []  # ExecutionInfo of the cells that run: one, or more where a cell runs cells
        self.every: Settings | None = None  # what `%tensortrace on` asked for
        self.pending = False  # the next cell that is compiled begins a trace
        self.tracebacks: inside.Tracebacks | None = None

    # ---- the commands --------------------------------------------------------------------------------------------

    @no_var_expand
    @with_options
    @line_cell_magic
    def tensortrace(self, line: str, cell: str | None = None) -> Any:
        """Run the cell as it would have run, and show below it what it did to memory and gradients.

        Examples::

            %%tensortrace                          the whole cell
            w = torch.ones(3, requires_grad=True)
            (w.detach() * 2).sum()

            %%tensortrace --name lesson --save lesson.html
            loss.backward()

            %tensortrace loss.backward()           one statement; its value is the command's
            %tensortrace on                        every following cell, until: %tensortrace off
            %tensortrace last                      show the last trace again

        The trace is in the variable `_trace`, or in the one that --name gives.
        """
        if cell is not None:
            settings = parse_cell(self.tensortrace, line)
            return self.begin(settings) if not cell.strip() else self.run("\n" + cell, settings)
        settings, statement = parse(self.tensortrace, line)
        word, _, options = statement.partition(" ")
        if word in _COMMANDS and re.match(r"\s*(--|#|$)", options):
            return self.command(word, parse_cell(self.tensortrace, options) if options.strip() else settings)
        if not statement or statement.startswith("#"):
            raise UsageError("%tensortrace wants a statement, or one of on, off, last. %tensortrace? shows help.")
        return self.run(statement, settings)

    def command(self, word: str, settings: Settings) -> None:
        """`on`, `off` or `last`."""
        if word == "on":
            self.switch_on(settings)
        elif word == "off":
            self.switch_off()
        else:
            self.shelf.show_last(settings)

    def switch_on(self, settings: Settings) -> None:
        """Trace every cell from the next one on."""
        if self.every is None:
            self.shell.ast_transformers.append(self)
        self.every = settings

    def switch_off(self) -> None:
        """Trace no further cell; a trace that runs because of `on` ends here and is dropped."""
        if self.every is not None:
            self.shell.ast_transformers.remove(self)
        self.every, self.pending = None, False
        if self.running is not None and self.running.of_every:
            self.drop()

    # ---- a cell that IPython runs --------------------------------------------------------------------------------

    def begin(self, settings: Settings) -> None:
        """Begin to trace the cell that called; `post_run_cell` ends it."""
        of_every = self.pending and self.every is not None
        if of_every and self.every is not None:
            settings = self.every
        self.pending = False
        frame = inside.user_frame(self.shell)
        if frame is None:
            raise UsageError("%%tensortrace with no code below it works in a cell only.")
        file = frame.f_code.co_filename
        # IPython runs each statement of a cell as code of its own. %%time and its like run all in one, ours included.
        root = frame if len({line for *_, line in frame.f_code.co_lines() if line}) > 1 else None
        info = self.open[-1] if self.open else None
        place = (weakref.ref(frame.f_code), frame.f_lasti)
        outer = inside.cell_frame(self.shell, frame)
        del frame
        if self.running is not None and self.running.info is info and self.running.place == place:
            return  # a magic above ours runs the cell several times (%%timeit): one trace of all
        raw = getattr(info, "raw_cell", None) or ""
        if outer is None:
            source, written = inside.own_line_out_of(file, raw)
            alone = inside.magic_below(raw)
        else:
            source = written = inside.without_own_line(raw)
            root, file, alone = outer, outer.f_code.co_filename, inside.magic_above(raw)
        self._start(source, file, settings, root)
        assert self.running is not None
        if outer is not None:
            self.running.watch.at_once(outer)
        del root, outer
        self.running.written, self.running.info, self.running.of_every = written, info, of_every
        self.running.place = place
        if alone is not None:
            code = "magic-below" if alone in _RUN_PYTHON else "magic-alone"
            self.running.watch.recording.notices.append(Notice(code, {"name": alone}))

    def _start(self, source: str, file: str, settings: Settings, root: FrameType | None = None) -> None:
        if self.running is not None:
            raise UsageError(
                "a trace is running already, and one cannot run inside another: take this %tensortrace away, "
                "or the one around it (a cell, or %tensortrace on)."
            )
        self.shelf.check_name(settings)
        watch = make_watch(
            self.shell.user_ns, source, file, settings.options(), settings.name,
            lambda other: inside.is_cell_file(self.shell, other),
        )  # fmt: skip
        if self.tracebacks is None:
            self.tracebacks = inside.Tracebacks(self.shell, self.before_traceback)
        shows_more = settings.panel and inside.has_kernel(self.shell)
        self.running = Running(watch, settings, self.shell.display_pub if shows_more else None)
        try:
            watch.start(root)
        except BaseException:
            self.drop()
            raise

    def before_traceback(self, error: BaseException, ends_cell: bool) -> None:
        """An exception is about to be shown: no frame of ours in it, and no trace goes on in a debugger."""
        from tensormagic.watch.errors import clean

        running = self.running
        if running is not None and ends_cell and self.open and self.open[-1] is running.info and running.is_here():
            running.stop(error)
        if running is not None:
            clean(error, running.watch.recording)
        elif self.shelf.last is not None:
            clean(error, self.shelf.last.recording)

    def drop(self) -> None:
        """End a trace and forget it."""
        running, self.running = self.running, None
        if running is not None:
            running.stop(None)

    def finish(self, error: BaseException | None) -> None:
        """End the trace and show it."""
        running, self.running = self.running, None
        if running is not None:
            running.stop(error)
            self.shelf.deliver(running)

    # ---- events --------------------------------------------------------------------------------------------------

    def pre_run_cell(self, info: Any) -> None:
        """A cell is about to be compiled."""
        if not self.open and self.running is not None and self.running.is_here():
            self.drop()  # the cell that it belonged to ended without a word
        self.open.append(info)
        self.pending = self.every is not None and self.running is None and not inside.is_own(info.raw_cell)

    def post_run_cell(self, result: Any) -> None:
        """A cell has ended. Cells that a cell runs have their own events: only the one that began a trace ends it."""
        info = getattr(result, "info", None)
        if any(one is info for one in self.open):
            while self.open.pop() is not info:
                pass
        elif self.open and (info is None or info.raw_cell.strip()):
            self.open.pop()  # IPython makes the result anew where an error left its own machinery
        else:
            return  # an empty cell, which had no beginning, or the one that loaded us
        self.pending = False
        running = self.running
        if running is not None and not any(one is running.info for one in self.open):
            self.finish(getattr(result, "error_in_exec", None))
        if not self.open:
            self.uncover()

    def post_execute(self) -> None:
        """The only event of a silent run."""
        if self.running is not None and self.running.info is None and not self.open:
            self.finish(None)
            self.uncover()

    def uncover(self) -> None:
        """Tracebacks are shown as before."""
        if self.tracebacks is not None:
            self.tracebacks.remove()
            self.tracebacks = None

    def visit(self, tree: ast.Module) -> ast.Module:
        """As a transformer of the shell's while `on`: put the call that begins a trace in front of the cell."""
        if self.pending:
            tree.body[:0] = ast.parse(inside.begin_call()).body
        return tree

    # ---- a statement that is run here ----------------------------------------------------------------------------

    def run(self, source: str, settings: Settings) -> Any:
        """Run source in the user's namespace under a trace; gives the value of its last expression."""
        shell = self.shell
        blank = source[: len(source) - len(source.lstrip("\n"))]  # IPython takes empty lines off
        code = blank + shell.transform_cell(source)
        file = shell.compile.cache(code, shell.execution_count)
        tree = shell.transform_ast(shell.compile.ast_parse(code, filename=file))
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        body = shell.compile(tree, file, "exec") if tree.body else None
        value = shell.compile(ast.Expression(last.value), file, "eval") if last is not None else None
        self._start(code, file, settings)
        assert self.running is not None
        if code.count("\n") == source.count("\n") + (not source.endswith("\n")):
            self.running.written = source
        failure: BaseException | None = None
        try:
            if body is not None:
                exec(body, shell.user_global_ns, shell.user_ns)
            return eval(value, shell.user_global_ns, shell.user_ns) if value is not None else None
        except BaseException as error:
            failure = error
            raise
        finally:
            self.finish(failure)
            failure = None
            if not self.open:
                self.uncover()


# ---- load and unload ---------------------------------------------------------------------------------------------

_EVENTS = ("pre_run_cell", "post_run_cell", "post_execute")
_COMPLETERS = ("%%tensortrace", "%tensortrace")


def load(shell: Any) -> None:
    """`%load_ext tensormagic`. A second time changes nothing."""
    if loaded(shell) is not None:
        return
    magics = TensorMagics(shell)
    shell.register_magics(magics)
    magics.single_line = inside.single_line(shell)
    shell.input_transformers_cleanup.insert(0, inside.transform)
    shell.input_transformers_post.append(magics.single_line)
    for event in _EVENTS:
        shell.events.register(event, getattr(magics, event))
    for key in _COMPLETERS:
        shell.set_hook("complete_command", _complete, str_key=key)


def unload(shell: Any) -> None:
    """`%unload_ext tensormagic`: nothing of ours is left; traces in variables that --name made are the user's."""
    magics = loaded(shell)
    if magics is None:
        return
    magics.switch_off()
    magics.drop()
    magics.uncover()
    magics.shelf.clear()
    for event in _EVENTS:
        shell.events.unregister(event, getattr(magics, event))
    shell.input_transformers_cleanup.remove(inside.transform)
    shell.input_transformers_post.remove(magics.single_line)
    for key in _COMPLETERS:
        inside.forget_completer(shell, key)
    inside.forget_magics(shell, TensorMagics.__name__, "tensortrace")


def loaded(shell: Any) -> TensorMagics | None:
    """The commands that this shell has, None before `load`."""
    method = shell.magics_manager.magics["cell"].get("tensortrace")
    owner = getattr(method, "__self__", None)
    return owner if isinstance(owner, TensorMagics) else None


def _complete(_shell: Any, event: Any) -> list[str]:
    if not event.symbol.startswith("-"):
        return []
    return completions(TensorMagics.tensortrace, event.line)
