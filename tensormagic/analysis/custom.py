"""Calls made inside the forward of a custom autograd.Function: autograd does not follow them, and nothing is cut there.

The Function's own node stands for all that its forward did, and its backward says what comes back.
"""

from __future__ import annotations

import ast
import functools

from tensormagic.analysis.index import Index
from tensormagic.analysis.source import parsed


def forward_frame(index: Index, step: int) -> int:
    """The frame of the innermost custom forward that a step ran in, itself or through what it called.

    Returns:
        a row of `frames`, -1 where no forward of a custom Function was running. Only Functions whose class stands in a
        recorded source are known.
    """
    while step >= 0:
        row = index.recording.steps[step]
        if is_forward(index, row.frame):
            return row.frame
        step = row.parent
    return -1


def is_forward(index: Index, frame: int) -> bool:
    """Is the frame one of a custom Function's forward?"""
    name, _, last = index.string(index.recording.frames[frame].function).rpartition(".")
    if last != "forward" or not name:
        return False
    source = index.recording.sources.get(index.string(index.recording.frames[frame].file), "")
    return name.rpartition(".")[2] in _functions(source)


def saving_step(index: Index, frame: int) -> int:
    """The step of a custom forward that called `save_for_backward`, -1 where its frame has none."""
    steps = index.recording.steps
    for step in range(len(steps)):
        if steps[step].frame == frame and "save_for_backward(" in index.line_text(step):
            return step
    return -1


@functools.lru_cache(maxsize=16)
def _functions(source: str) -> frozenset[str]:
    """Names of the classes in a source that have a base called `...Function`."""
    tree = parsed(source)
    return frozenset(
        node.name for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, ast.ClassDef) and any(ast.unparse(base).endswith("Function") for base in node.bases)
    )  # fmt: skip
