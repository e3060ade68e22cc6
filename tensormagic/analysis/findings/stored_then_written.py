"""What a hook stored was overwritten before the forward pass was over."""

from __future__ import annotations

from collections.abc import Iterator

from tensormagic.analysis.findings.base import WARNING, Facts, Finding, Rule, short
from tensormagic.recording.model import Binding, PathKind, Write, WriteKind

_PLACES = (PathKind.ITEM, PathKind.KEY, PathKind.ATTRIBUTE)


def find(facts: Facts) -> Iterator[Finding]:
    told: set[int] = set()
    for text, named in facts.end.items():
        if named.state is None or named.object < 0 or facts.recording.paths[named.path].kind not in _PLACES:
            continue
        stored = _stored(facts, named.frame, named.path, named.object)
        if stored is None:
            continue
        for row in facts.index.writes_to(named.state.storage) if named.state.storage >= 0 else ():
            write = facts.recording.writes[row]
            if row in told or not _overwrote(facts, write, stored):
                continue
            told.add(row)
            kept, line = facts.line(stored.step), facts.line(write.step)
            function = short(facts.index.function(write.call))
            inplace = "inplace=True" in facts.index.args(write.call)
            fix = "Store a copy: `.detach().clone()`" + (
                f"; or `inplace=False` for the `{function}`." if inplace else "."
            )
            how = f"`{function}`" + (", which works in place (`inplace=True`)," if inplace else "")
            yield Finding(
                RULE.id, WARNING, kept, (text, *(name for name in facts.all_names(named.object)[:2] if name != text)),
                f"`{text}` was stored on line {kept}, and later in the same forward pass {how} on line {line} overwrote it: it no longer "
                f"holds what it was stored for.",
                fix, {"stored": kept, "written": line}, write.step,
            )  # fmt: skip
            break


def _stored(facts: Facts, frame: int, path: int, object: int) -> Binding | None:
    """The binding of the name to the object, where it was made in a function that a forward pass called."""
    for binding in facts.index.bindings(frame, path):
        if binding.object == object:
            return binding if binding.step >= 0 and facts.recording.steps[binding.step].parent >= 0 else None
    return None


def _overwrote(facts: Facts, write: Write, stored: Binding) -> bool:
    """Was the write made by what had called the function that stored, after that function had run?

    It is no line of that function itself, nor of what the program wrote out on a later line.
    """
    steps = facts.recording.steps
    row = steps[stored.step]
    if write.kind != WriteKind.CALL or write.call < row.first_call or write.step != row.parent:
        return False
    return "inplace=True" in facts.index.args(write.call) or facts.recording.frames[steps[write.step].frame].parent >= 0


RULE = Rule(
    id="stored-then-overwritten",
    sees="A tensor that a hook put into a list, a dict or an attribute, and that a later in-place layer or line of the same forward pass "
    "wrote to.",
    matters="The stored activation is that of the next layer, and nothing says so.",
    example="acts = {}\nnet = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU(inplace=True))\ndef keep(module, args, out):\n"
    "    acts['linear'] = out\nnet[0].register_forward_hook(keep)\ny = net(torch.ones(1, 2))\n",
    instead="    acts['linear'] = out.detach().clone()\n",
    blind="Hooks outside the notebook, and what was stored under names that are gone at the end.",
    find=find,
)
