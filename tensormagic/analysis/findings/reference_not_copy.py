"""A stored state that is only a reference: it changed with what it was taken from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tensormagic.analysis.findings.base import NOTE, Facts, Finding, Rule, listed
from tensormagic.recording.model import PathKind


def find(facts: Facts) -> Iterator[Finding]:
    recording, index = facts.recording, facts.index
    parameters: dict[int, str] = {}
    for text, named in facts.end.items():
        kind = recording.paths[named.path].kind
        if kind in (PathKind.PARAMETER, PathKind.BUFFER) and named.state is not None and named.state.storage >= 0:
            parameters.setdefault(named.state.storage, text)
    found: dict[int, list[tuple[str, str, int]]] = defaultdict(list)
    for text, named in facts.end.items():
        path = recording.paths[named.path]
        if path.kind != PathKind.KEY or named.state is None or named.state.storage not in parameters or named.frame:
            continue
        since = index.bindings(0, named.path)[-1].step
        late = [
            recording.writes[row] for row in index.writes_to(named.state.storage) if recording.writes[row].step > since
        ]
        if late:
            found[path.parent].append((text, parameters[named.state.storage], late[0].step))
    for container, items in found.items():
        where = index.path_text(container)
        if _part_of_a_module(facts, container):
            continue
        steps = [binding.step for binding in index.bindings(0, container) if binding.object >= 0]
        line, step = facts.line(steps[-1]), steps[-1]
        written = facts.line(items[0][2])
        if line < 0:
            continue
        yield Finding(
            RULE.id, NOTE, line, (where, *(text for text, _, _ in items)),
            f"`{where}` is no copy: its entries are the memory of {listed([name for _, name, _ in items[:2]])}, so line "
            f"{written} changed both.",
            f"To keep the values: `{where} = copy.deepcopy(...)`, or clone every entry.",
            {"stored": line, "written": written}, step,
        )  # fmt: skip


def _part_of_a_module(facts: Facts, path: int) -> bool:
    """A ModuleDict's keys are its own parts."""
    bindings = facts.index.bindings(0, path)
    return not bindings or facts.index.string(facts.index.object(bindings[-1].object).type) not in (
        "dict",
        "OrderedDict",
    )


RULE = Rule(
    id="reference-not-copy",
    sees="A dict whose entries are the memory of a module's parameters, when those were written after it was stored.",
    matters='"The best state so far" that is a reference is the newest state.',
    example="model = torch.nn.Linear(2, 1)\nbest = model.state_dict()\nwith torch.no_grad():\n    model.weight += 1\n",
    instead="best = copy.deepcopy(model.state_dict())\n",
    blind="Whether a copy was meant: a state dict that is written to a file at once needs none. That is why it is a note.",
    find=find,
)
