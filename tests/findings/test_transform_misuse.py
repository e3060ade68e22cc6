"""transform-misuse: what the function did, and on which line; silent on what would fail without the transform too."""

import pytest

from tests.findings.cells import one, told

RULE = "transform-misuse"


def mapped(body, argument="torch.ones(3, 2)", before=""):
    return before + "def f(x):\n    " + body.replace("\n", "\n    ") + f"\nxs = {argument}\nout = torch.vmap(f)(xs)\n"


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ("return x.sum().item()", "`item`"),
        ("if x.sum() > 0: return x", "`bool`"),
        ("return x + torch.randn(2)", "`randn`"),
        ("return x[x > 0]", "shape"),
    ],
)
def test_vmap(body, word):
    finding = one(RULE, mapped(body))
    assert (finding.severity, finding.line) == ("error", 3)
    assert finding.lines == {"raised": 3, "applied": 5}
    assert {"x", "xs"} <= set(finding.names)
    assert word in finding.message


def test_a_write_into_a_tensor_from_outside():
    finding = one(RULE, mapped("buf[0] = x.sum()\nreturn x", before="buf = torch.zeros(3)\n"))
    assert (finding.line, finding.names[0]) == (4, "buf")
    cell = "acc = torch.zeros(3)\ndef f(x):\n    acc.add_(x)\n    return acc.sum()\ng = torch.func.grad(f)(torch.ones(3))\n"
    assert one(RULE, cell).names[0] == "acc"


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ("return x * 2", "one number"),
        ("return (x ** 2).sum().tolist()", "no tensor"),
        ("loss = (x ** 2).sum(); loss.backward(); return loss", "backward"),
    ],
)
def test_grad(body, word):
    finding = one(RULE, f"def f(x):\n    {body}\ng = torch.func.grad(f)(torch.ones(3, requires_grad=True))\n")
    assert word in finding.message


@pytest.mark.parametrize(
    "cell",
    [
        mapped("return (x * 2).sum()"),
        mapped("return x @ torch.ones(5)"),  # shapes that do not match
        "x = torch.ones(2)\nx.sum().item()\nraise RuntimeError('out of paper')\n",
    ],
)
def test_silent(cell):
    assert told(RULE, cell) == []
