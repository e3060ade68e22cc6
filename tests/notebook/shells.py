"""A bare IPython shell in this process: quick, for what needs no kernel."""

from __future__ import annotations

import contextlib
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output


class StandIn:
    """Stands for the panel, and says whose it is."""

    def __init__(self, trace: Any) -> None:
        self.trace = trace

    def __repr__(self) -> str:
        return "<panel>"


@contextlib.contextmanager
def shell_with_magic(monkeypatch, kernel=True):
    """A shell with the magic loaded; where it seems to have a kernel, panels are shown."""
    import tensormagic

    shell = InteractiveShell()
    shell.history_manager.enabled = False
    if kernel:
        shell.kernel = object()  # no live line comes: cells here are short
    monkeypatch.setattr(tensormagic.Trace, "panel", lambda trace: StandIn(trace), raising=False)
    monkeypatch.setattr(tensormagic.Trace, "summary", lambda trace: f"summary of {trace!r}", raising=False)
    shell.extension_manager.load_extension("tensormagic")
    ran(shell, "import torch")
    try:
        yield shell
    finally:
        shell.extension_manager.unload_extension("tensormagic")


class Ran:
    """What came of a cell."""

    def __init__(self, result, caught):
        self.error = result.error_before_exec or result.error_in_exec
        # Only the shell that is IPython's instance displays; for another one `display` prints.
        self.panels = ["<panel>"] * caught.stdout.count("<panel>\n")
        self.value, self.stdout, self.stderr = result.result, caught.stdout.replace("<panel>\n", ""), caught.stderr

    def __repr__(self):
        return f"Ran({self.error!r}, {self.value!r}, {self.stdout!r}, {self.stderr!r}, {self.panels!r})"


def ran(shell, cell, **options) -> Ran:
    """Run a cell as a front end does."""
    with capture_output() as caught:
        result = shell.run_cell(cell, store_history=True, **options)
    return Ran(result, caught)
