"""Parameters in a module that `parameters()` does not give."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator

from tensormagic.analysis.findings.base import WARNING, Facts, Finding, Rule, listed
from tensormagic.recording.model import ObjectKind, PathKind

_REGISTERED = (PathKind.PARAMETER, PathKind.BUFFER, PathKind.SUBMODULE)


def find(facts: Facts) -> Iterator[Finding]:
    recording = facts.recording
    hidden: dict[int, list[tuple[str, int]]] = defaultdict(list)  # path of the plain attribute -> (name, object)
    registered: set[int] = set()
    for text, named in facts.end.items():
        if named.object < 0 or recording.paths[named.path].kind != PathKind.PARAMETER:
            continue
        attribute = _plain_attribute(facts, named.path, named.frame)
        if attribute < 0:
            registered.add(named.object) if _inside_a_module(facts, named.path, named.frame) else None
        else:
            hidden[attribute].append((text, named.object))
    optimized = {member.object for member in recording.members}
    for attribute, found in hidden.items():
        lost = [(text, object) for text, object in found if object not in registered and object not in optimized]
        if not lost:
            continue
        line, step = _line(facts, attribute)
        names = tuple(text for text, _ in lost)
        where = facts.index.path_text(attribute)
        yield Finding(
            RULE.id, WARNING, line, names,
            f"`{where}` is a plain Python container: `parameters()` does not see {listed(names[:3])}, so no optimizer "
            f"trains them, and they are neither moved nor saved.",
            f"Keep the modules of `{where}` in a `torch.nn.ModuleList` or `ModuleDict`.", {"made": line}, step,
        )  # fmt: skip


def _chain(facts: Facts, path: int) -> list[int]:
    chain = []
    while path >= 0:
        chain.append(path)
        path = facts.recording.paths[path].parent
    return chain[::-1]


def _kind(facts: Facts, path: int, frame: int) -> int:
    bindings = facts.index.bindings(frame, path)
    return facts.index.object(bindings[-1].object).kind if bindings and bindings[-1].object >= 0 else -1


def _plain_attribute(facts: Facts, path: int, frame: int) -> int:
    """The path of a module's plain attribute, a list or dict, that the way to a parameter leads through; -1 for none."""
    chain = _chain(facts, path)
    for owner, attribute in itertools.pairwise(chain):
        if facts.recording.paths[attribute].kind != PathKind.ATTRIBUTE:
            continue
        if _kind(facts, owner, frame) == ObjectKind.MODULE and _kind(facts, attribute, frame) == ObjectKind.CONTAINER:
            return attribute
    return -1


def _inside_a_module(facts: Facts, path: int, frame: int) -> bool:
    """Is the parameter registered in a module that is itself part of another, or stands under a name of its own?"""
    return any(_kind(facts, part, frame) == ObjectKind.MODULE for part in _chain(facts, path)[:-1])


def _line(facts: Facts, attribute: int) -> tuple[int, int]:
    """Where the container was put into the module: its first binding anywhere, inside `__init__` where that was seen."""
    container = facts.index.bindings(0, attribute)[-1].object
    step = min(
        (
            b.step
            for b in map(facts.recording.bindings.__getitem__, facts.index.bindings_of_object.get(container, ()))
            if b.step >= 0
        ),
        default=-1,
    )
    return facts.line(step), step


RULE = Rule(
    id="parameter-not-registered",
    sees="Parameters that are reached through a plain list or dict of a module and in no registered way, and that no "
    "optimizer of the cell holds.",
    matters="They get gradients and are never stepped, moved to a device, or saved.",
    example="class Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.layers = [torch.nn.Linear(2, 2)]\n    def forward(self, x):\n        return self.layers[0](x)\n"
    "net = Net()\n",
    instead="        self.layers = torch.nn.ModuleList([torch.nn.Linear(2, 2)])\n",
    blind="Optimizers that no name reaches, and containers past the bound of items.",
    find=find,
)
