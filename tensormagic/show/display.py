"""Shows a trace where the program runs: the panel in a notebook, text elsewhere."""

from __future__ import annotations

import sys
from typing import Any


def show(trace: Any) -> None:
    """Display the panel if a notebook kernel runs this process, else print the summary."""
    if "ipykernel" in sys.modules:
        from IPython.display import display

        display(trace.panel())
    else:
        print(trace.summary())
