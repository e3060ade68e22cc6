"""Parameters in a module that `parameters()` does not give."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator

from tensormagic.analysis.findings.base import WARNING, Facts, Finding, Rule, listed, stepped_by_hand
from tensormagic.recording.model import ObjectKind, PathKind

_REGISTERED = (PathKind.PARAMETER, PathKind.BUFFER, PathKind.SUBMODULE)


def find(facts: Facts) -> Iterator[Finding]:
    recording = facts.recording
    hidden: dict[int, list[tuple[str, int]]] = defaultdict(list)  # path of the plain attribute -> (name, object)
    registered: set[int] = set()
    for text, named in facts.end.items():
        kind = recording.paths[named.path].kind
        own = (
            kind in (PathKind.ITEM, PathKind.KEY)
            and facts.index.string(facts.index.object(named.base).type) == "Parameter"
        )
        if named.object < 0 or not (own or kind == PathKind.PARAMETER):
            continue
        attribute = plain_container(facts, named.path, named.frame)
        if attribute < 0 and own:
            continue
        if attribute < 0:
            registered.add(named.object) if _inside_a_module(facts, named.path, named.frame) else None
        else:
            hidden[attribute].append((text, named.object))
    optimized = {member.object for member in recording.members}
    if optimized:
        yield from _tensors(facts, optimized)
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
            "Keep them in a `torch.nn.ModuleList` or `ModuleDict` (`ParameterList`, `ParameterDict` for parameters).",
            {"made": line}, step,
        )  # fmt: skip


def _tensors(facts: Facts, optimized: set[int]) -> Iterator[Finding]:
    """A module's plain attribute that is a tensor of its own with a gradient, while an optimizer trains what is registered."""
    told: set[int] = set()
    for text, named in facts.end.items():
        path = facts.recording.paths[named.path]
        if path.kind != PathKind.ATTRIBUTE or named.state is None or named.object < 0 or named.object in told:
            continue
        if _kind(facts, path.parent, named.frame) != ObjectKind.MODULE or named.object in optimized:
            continue
        call = facts.index.maker(named.object)
        hidden = _hidden_leaf(facts, named.object)
        leaf = hidden if hidden >= 0 else named.object
        if leaf not in facts.flow.reached_leaves or stepped_by_hand(facts, leaf) or not facts.all_names(named.object):
            continue
        told.add(named.object)
        line, step = _line(facts, named.path)
        line = facts.line_of_call(call) if call >= 0 else line
        what = (
            "is a plain tensor, not a Parameter"
            if hidden < 0
            else f"is the result of `{facts.described(call)}`, not the Parameter itself"
        )
        names = (text, *(name for name in facts.all_names(named.object)[:3] if name != text))
        yield Finding(
            RULE.id, WARNING, line, names,
            f"`{text}` {what}: `parameters()` does not see it, so no optimizer trains it, and it is not saved.",
            f"`self.{facts.index.string(path.key)} = torch.nn.Parameter(...)`, with the whole computation inside the brackets.",
            {"made": line}, step,
        )  # fmt: skip


def _hidden_leaf(facts: Facts, object: int) -> int:
    """The Parameter without a name that the tensor was computed from in one call; -1 for none."""
    call = facts.index.maker(object)
    for item in facts.index.inputs(call) if call >= 0 else ():
        if facts.index.string(facts.index.object(item.object).type) == "Parameter" and not facts.all_names(item.object):
            return item.object
    return -1


def _chain(facts: Facts, path: int) -> list[int]:
    chain = []
    while path >= 0:
        chain.append(path)
        path = facts.recording.paths[path].parent
    return chain[::-1]


def _kind(facts: Facts, path: int, frame: int) -> int:
    bindings = facts.index.bindings(frame, path)
    return facts.index.object(bindings[-1].object).kind if bindings and bindings[-1].object >= 0 else -1


def plain_container(facts: Facts, path: int, frame: int) -> int:
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
    "optimizer of the cell holds; tensors with a gradient that are plain attributes of a module, while an optimizer trains others.",
    matters="They get gradients and are never stepped, moved to a device, or saved.",
    example="class Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.layers = [torch.nn.Linear(2, 2)]\n    def forward(self, x):\n        return self.layers[0](x)\n"
    "net = Net()\n",
    instead="        self.layers = torch.nn.ModuleList([torch.nn.Linear(2, 2)])\n",
    blind="Optimizers that no name reaches, and containers past the bound of items.",
    find=find,
)
