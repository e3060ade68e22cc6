"""How a cut is put into words, and what a reason for a gradient is."""

from __future__ import annotations

from dataclasses import dataclass

CUT_WORDS = {
    "detach": "`{call}` on line {line} gave the values without the graph",
    "data": "`.data` on line {line} gave the values without the graph",
    "no_grad": "line {line} had switched gradients off when `{call}` computed it",
    "grad_off": "gradients were off when `{call}` on line {line} computed it, since before this cell",
    "checkpoint": "`checkpoint` on line {line} ran `{call}` without a graph, as `use_reentrant=True` does, and no tensor "
    "that was given to it wants a gradient",
    "inference": "`{call}` ran in inference mode (line {line})",
    "values": "`{call}` on line {line} gave plain numbers, which carry no graph",
    "rewrap": "`{call}` on line {line} copied the values and left the graph behind",
    "integer": "`{call}` on line {line} gives whole numbers or truth values, which have no derivative",
    "indices": "the indices that `{call}` on line {line} gives are whole numbers, which have no derivative",
    "no_derivative": "`{call}` on line {line} has no derivative here",
}


@dataclass(frozen=True)
class Reason:
    """Why a gradient is as it is. `decides`: its line is what a person has to look at for this name."""

    text: str = ""
    line: int = -1
    role: str = "gradient"
    decides: bool = False
