"""Hypothesis makes small torch programs: source text over views, writes, NumPy, containers, functions, loops, backward.

A statement is tried while the program is made. One that raises is left out, or kept with its error caught and written
down, so that a program goes on; the last statement may raise.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from textwrap import dedent, indent
from typing import Any

import torch
from hypothesis import strategies as st

HEAD = dedent("""\
    import numpy as np
    import torch
    from types import SimpleNamespace
    said, box, book, thing = [], [], {}, SimpleNamespace()
    def scale(v):
        r = v * 2
        return r
    def write(v):
        v.add_(1)
        return v
    def row(v):
        w = v[0]
        return w
    def twice(v):
        return scale(row(v))
    a = torch.arange(12.).reshape(3, 4)
    b = torch.ones(3, 4, requires_grad=True)
    c = a[1:]
    d = b * 2
    """)

NAMES = "abcdefgh"
_MOST = 2000  # elements of the largest tensor

CREATED = [
    "torch.arange(12.).reshape(3, 4)", "torch.ones(4, requires_grad=True)", "torch.zeros(3, 4)", "torch.arange(4)",
    "torch.tensor([[1., 2.], [3., 4.]], requires_grad=True)", "torch.zeros(0, 4)", "torch.tensor(2.)",
    "torch.zeros(3, 4, dtype=torch.float64)", "torch.rand(3, 4)", "torch.zeros(2, 3).t()",
]  # fmt: skip
VIEWS = [
    "{x}.view(-1)", "{x}.view(2, -1)", "{x}.reshape(-1)", "{x}.reshape(4, -1)", "{x}[1:]", "{x}[..., ::2]", "{x}[0]",
    "{x}.t()", "{x}.transpose(0, -1)", "{x}.unsqueeze(0).expand(2, *{x}.shape)", "{x}.expand_as({y})", "{x}.flatten()",
    "{x}.squeeze()", "{x}.diagonal()", "{x}.unfold(0, 2, 1)", "{x}.chunk(2)[-1]", "{x}.unbind()[0]", "{x}[:]",
    "{x}.narrow(0, 1, 1)", "{x}[:, 1:3]", "{x}[None]", "{x}.mT", "{x}.split(2)[0]", "{x}.as_strided((2, 2), (2, 1))",
]  # fmt: skip
SAME = ["{x}", "{x}.detach()", "{x}.data", "{x}.contiguous()", "{x}.float()", "{x}.double()", "{x}.requires_grad_()",
        "{x}.detach().requires_grad_()", "{x}.clone()", "{x}.detach().clone()", "write({x})", "{x}.grad"]  # fmt: skip
MADE = ["{x} * 2", "{x} + {y}", "{x}.sum()", "({x} * {y}).sum()", "{x}[{x} > 1]", "{x}[[0, -1]]", "{x}.mean(0)",
        "torch.cat([{x}, {y}])", "torch.stack([{x}, {y}])", "{x} @ {y}", "torch.where({x} > 0, {x}, {y})", "-{x}",
        "scale({x})", "row({x})", "twice({x})", "torch.autograd.grad({x}.sum(), {y})[0]"]  # fmt: skip
HELD = ["box[-1]", "box[0]", "book['k']", "thing.w", "torch.from_numpy(m)", "torch.from_numpy(m[::2])",
        "torch.as_tensor(m)", "torch.from_numpy(m[1:]).view(-1)", "torch.tensor(m)"]  # fmt: skip
DONE = [
    "{x}.add_(1)", "{x} += 1", "{x} *= {y}", "{x}.mul_(2)", "{x}.zero_()", "{x}[0] = 5", "{x}[..., -1] = {y}[..., 0]",
    "{x}[:] = 1", "{x}.data.add_(1)", "{x}.detach().zero_()", "{x}.copy_({y})", "{x}[{x} > 1] = 0", "{x}[1:] += 1",
    "{x}.requires_grad_(False)", "{x}.detach_()", "{x}.unsqueeze_(0)", "{x}.t_()", "{x}.data = {y}.data",
    "{x}.data = {x}.data * 2", "{x}.grad = None", "torch.add({x}, 1, out={y})", "{x}.retain_grad()", "{x}.T[0] = 1",
    "{x}.grad.zero_()", "{x}.index_fill_(0, torch.tensor([0]), 7)", "{x}.set_({y})", "write({x})", "write(row({x}))",
    "box.append({x})", "box[0] = {x}", "box.extend([{x}, {x}[0]])", "book['k'] = {x}", "book['k'] += 1",
    "book.update(k={x}, j={y})", "thing.w = {x}", "thing.w.mul_(2)", "del {x}", "{x}, {y} = {y}, {x}", "box.pop()",
    "m = {x}.detach().numpy()", "m = {x}.numpy()", "m[0] = 3", "m += 1", "m = np.arange(4.)", "m = m[::-1]", "m = m.T",
    "m = m[1:]",
]  # fmt: skip
BACKWARD = ["{x}.sum().backward()", "{x}.sum().backward(retain_graph=True)", "({x} * {y}).sum().backward()",
            "{x}.backward(torch.ones_like({x}))", "{x}.backward()"]  # fmt: skip


def _numbers(namespace: dict[str, Any]) -> list[str]:
    return [name for name in NAMES if isinstance(namespace.get(name), torch.Tensor)]


@st.composite
def statements(draw: st.DrawFn, known: list[str], depth: int = 0) -> str:
    """One statement over the tensors of these names."""
    some = st.sampled_from(known or ["a"])
    kind = draw(st.integers(0, 13 if depth < 2 else 11))
    if kind == 12:
        heads = ["with torch.no_grad():\n", "for i in range(2):\n", "for v in (a, b):\n", "if len(box) < 2:\n"]
        head = draw(st.sampled_from(heads))
        body = "".join(draw(statements(known, depth + 1)) for _ in range(draw(st.integers(1, 2))))
        return head + indent(body, "    ")
    if kind == 13:
        body = "".join(draw(statements(known, depth + 2)) for _ in range(draw(st.integers(1, 2))))
        return f"def f({draw(some)}):\n{indent(body, '    ')}    return {draw(some)}\n{draw(some)} = f({draw(some)})\n"
    pools = [CREATED, VIEWS, VIEWS, VIEWS, SAME, SAME, MADE, HELD, DONE, DONE, DONE, BACKWARD]
    text = draw(st.sampled_from(pools[kind])).format(x=draw(some), y=draw(some))
    return text + "\n" if kind >= 8 else f"{draw(st.sampled_from(NAMES))} = {text}\n"


@st.composite
def programs(draw: st.DrawFn) -> str:
    """The source of a program that ends, with at most some twenty statements behind `HEAD`."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    source = HEAD
    torch.manual_seed(1)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        exec(HEAD, namespace)
        for _ in range(draw(st.integers(1, 20))):
            text = draw(statements(_numbers(namespace)))
            caught = (
                f"try:\n{indent(text, '    ')}except Exception as e:\n    said.append((type(e).__name__, str(e)))\n"
            )
            before = len(namespace["said"])
            exec(caught, namespace)
            if len(namespace["said"]) == before:
                source += text
            else:
                how = draw(st.integers(0, 7))
                if how == 7:
                    return source + text
                source += caught  # what it did before it raised stays done
            if any(namespace[name].numel() > _MOST for name in _numbers(namespace)):
                break
    return source
