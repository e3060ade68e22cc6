"""Writes a trace for people: a handout, or a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tensormagic.recording.file import write_atomically


def save(trace: Any, path: Path) -> None:
    """Save as .html, .png or .svg.

    Raises:
        ValueError: another ending; says which there are.
    """
    from tensormagic.show import handout, picture, view

    ending = path.suffix.lower()
    if ending == ".html":
        data = handout.html(trace).encode()
    elif ending == ".png":
        data = picture.png(view.build(trace))
    elif ending == ".svg":
        data = picture.svg(view.build(trace))
    else:
        raise ValueError(f"{path.name!r} ends in {ending!r}: a trace is saved as .html, .json, .json.gz, .png or .svg")
    write_atomically(path, data)
