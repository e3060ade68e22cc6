"""Trace, the object in the user's hands, and the two ways to make one outside a notebook: `run` and `trace`.

A Trace holds a Recording and passes each question to the room that answers it.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import linecache
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensormagic.analysis import explain, findings, names, tensors, way
from tensormagic.analysis import sharing as relations
from tensormagic.analysis.index import Index
from tensormagic.analysis.writes import Writes
from tensormagic.recording import file
from tensormagic.recording.model import ErrorInfo, Recording

if TYPE_CHECKING:
    from tensormagic.show.panel import TracePanel

_numbers = itertools.count(1)


class Trace:
    """What was recorded of one cell, and the answers to questions about it.

    Args:
        recording: the data; nothing of the user's program is held.
    """

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.index = Index(recording)
        self._panel: TracePanel | None = None

    def __repr__(self) -> str:
        r = self.recording
        return f"<Trace: {len(r.steps)} steps, {len(r.calls)} calls, {len(r.storages)} storages, {len(r.backwards)} backward>"

    # ---- facts ---------------------------------------------------------------------------------------------------

    @property
    def error(self) -> ErrorInfo | None:
        """The exception that ended the cell (.type, .message, .line), or None."""
        return self.recording.error

    def __getitem__(self, name: str) -> tensors.TensorView:
        """The tensor of that name at the end of the cell. Raises UnknownName (a KeyError) or TypeError."""
        return tensors.tensor(self.index, name)

    def at(self, step: int | None = None) -> names.NamesAt:
        """What every name stood for after `step` (None: at the end): a mapping from text to `names.Named`."""
        return names.at(self.index, step)

    @functools.cached_property
    def writes(self) -> Writes:
        """Each in-place change, in order: .line, .through, .reaches, .told, .elements."""
        return Writes(self.index)

    def accumulations(self, name: str) -> list[tensors.Added]:
        """What each backward run added to the .grad of the leaf of that name, in order: .values, .parts, .line."""
        return tensors.accumulations(self.index, name)

    @functools.cached_property
    def findings(self) -> list[findings.Finding]:
        """What is wrong, or about to be: errors first, then warnings, then notes."""
        return findings.find(self.index)

    def explain(self, name: str) -> explain.Explanation:
        """Why the tensor (or module, or container) of that name is as it is: .line decided it, .text says it."""
        return explain.explain(self.index, name)

    # ---- sharing -------------------------------------------------------------------------------------------------

    def sharing(self, a: str, b: str, step: int | None = None) -> relations.Sharing:
        """How the memory of `a` lies to that of `b` after `step` (None: at the end)."""
        return relations.sharing(self.index, a, b, step)

    def relation(self, a: str, b: str, step: int | None = None) -> relations.Relation:
        """The same with the common bytes, and whether the answer is exact."""
        return relations.relation(self.index, a, b, step)

    def sharing_matrix(self, names: list[str] | None = None, step: int | None = None) -> Any:
        """(names, object array [n, n] of Sharing) of these names, or of every tensor's."""
        return relations.matrix(self.index, names, step)

    def way(self, a: str, b: str, step: int | None = None) -> Any:
        """The calls by which the memory of `a` came to `b`: a tuple of Hop; None where no way was seen."""
        return way.way(self.index, a, b, step)

    # ---- showing -------------------------------------------------------------------------------------------------

    def panel(self) -> TracePanel:
        """The panel: shows itself as the result of a notebook cell; `.step` reads and sets the step shown."""
        if self._panel is None:
            from tensormagic.show.panel import TracePanel

            self._panel = TracePanel(self)
        return self._panel

    def summary(self) -> str:
        """The trace as text, for a terminal."""
        from tensormagic.show import text

        return text.summary(self)

    def show(self) -> None:
        """Show the panel in a notebook, the text elsewhere."""
        from tensormagic.show import display

        display.show(self)

    def plot_gradients(self, ax: Any = None) -> Any:
        """What each backward run brought to each leaf, drawn into `ax` (a new figure where it is None); gives the Axes."""
        from tensormagic.show import plots

        return plots.plot_gradients(self, ax)

    def plot_sharing(self, names: list[str] | None = None, step: int | None = None, ax: Any = None) -> Any:
        """The sharing matrix of names at a step as a figure; gives the Axes."""
        from tensormagic.show import plots

        return plots.plot_sharing(self, names, step, ax)

    def _repr_mimebundle_(self, **_: Any) -> Any:
        return self.panel()._repr_mimebundle_()

    # ---- files ---------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Save as .html (a handout that steps without a kernel), .json or .json.gz (the data), .png or .svg (a picture).

        Raises:
            ValueError: another file name ending.
        """
        target = Path(path)
        ending = "".join(target.suffixes[-2:]) if target.suffix == ".gz" else target.suffix
        if ending in (".json", ".json.gz"):
            file.save(self.recording, target)
            return
        from tensormagic.show import saving

        saving.save(self, target)


def load(path: str | Path) -> Trace:
    """A Trace from a file that `Trace.save` wrote as .json or .json.gz.

    Raises:
        FileNotFoundError: there is no such file.
        RecordingFileError: the file is damaged or no recording; says what and where.
    """
    return Trace(file.load(path))


def run(cell: str, namespace: dict[str, Any] | None = None, *, name: str | None = None, **options: Any) -> Trace:
    """Run source as one cell and record it. Always returns a Trace; what the cell raised is in `.error`.

    Args:
        cell: source code; line 1 is its first line.
        namespace: the globals it runs in, changed as the cell changes them; None: a new one.
        name: what the trace is called.
        options: bounds, see `tensormagic.watch.options.Options`.

    KeyboardInterrupt ends the cell and is recorded like any other exception; nothing is raised from here.
    """
    from tensormagic.watch.errors import clean
    from tensormagic.watch.options import Options
    from tensormagic.watch.watch import make_watch, stopped

    if namespace is None:
        namespace = {"__name__": "__main__"}
    filename = f"<tensortrace cell {next(_numbers)}>"
    linecache.cache[filename] = (len(cell), None, cell.splitlines(keepends=True), filename)
    watch = make_watch(namespace, cell, filename, Options(**options), name)
    failure: BaseException | None = None
    try:
        code = compile(cell, filename, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        return Trace(stopped(watch, error)[0])
    try:
        watch.start()
        exec(code, namespace)
    except BaseException as error:
        failure = error
    recording, failure = stopped(watch, failure)
    if failure is not None:
        clean(failure, recording)
        # Its traceback holds the frames of functions of the cell, and with them their locals.
        failure.__traceback__ = None
        failure = None
    return Trace(recording)


@contextlib.contextmanager
def trace(*, name: str | None = None, **options: Any) -> Iterator[LiveTrace]:
    """Record a `with` block of a script or a test: `with tensormagic.trace() as t: ...`, then ask `t`.

    Args:
        name: what the trace is called.
        options: bounds, see `tensormagic.watch.options.Options`.

    Exceptions of the block pass through unchanged; the record up to then is in `t`.
    """
    from tensormagic.watch.errors import clean
    from tensormagic.watch.options import Options
    from tensormagic.watch.watch import make_watch, stopped

    frame = sys._getframe(2)
    filename = frame.f_code.co_filename
    source = "".join(linecache.getlines(filename))
    watch = make_watch(frame.f_globals, source, filename, Options(**options), name)
    live = LiveTrace()
    watch.start(frame)
    del frame
    failure: BaseException | None = None
    try:
        yield live
    except BaseException as error:
        failure = error
        clean(error, watch.recording)
        raise
    finally:
        live.finished(stopped(watch, failure)[0])
        failure = None


class LiveTrace(Trace):
    """The Trace of a `with tensormagic.trace()` block; it can be asked when the block has ended."""

    def __init__(self) -> None:
        super().__init__(Recording())

    def finished(self, recording: Recording) -> None:
        """The block has ended."""
        Trace.__init__(self, recording)
