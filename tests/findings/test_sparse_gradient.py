"""sparse-gradient: the layer that asked for it, the leaf, and only errors that speak of it."""

import pytest

from tests.findings.cells import one, told

RULE = "sparse-gradient"
EMB = "emb = torch.nn.Embedding(5, 2, sparse=True)\n"
USED = "emb(torch.tensor([1])).sum().backward()\n"


@pytest.mark.parametrize(
    "use",
    [
        "torch.nn.utils.clip_grad_value_(emb.parameters(), 0.1)\n",
        "emb.weight.grad.numpy()\n",
        "torch.optim.Adam(emb.parameters()).step()\n",
        "torch.optim.SGD(emb.parameters(), lr=0.1, weight_decay=0.1).step()\n",
    ],
)
def test_what_cannot_take_it(use):
    finding = one(RULE, EMB + USED + use)
    assert (finding.severity, finding.line, finding.names) == ("error", 2, ("emb.weight",))
    assert finding.lines == {"asked": 2, "raised": 4}


def test_of_two_layers_the_line_is_that_of_the_one_it_is_about():
    finding = one(RULE, "other = torch.nn.Embedding(5, 2, sparse=True)\n" + EMB + USED + "emb.weight.grad.numpy()\n")
    assert (finding.line, finding.names) == (3, ("emb.weight",))


@pytest.mark.parametrize(
    "cell",
    [
        EMB + USED + "torch.optim.SGD(emb.parameters(), lr=0.1).step()\n",
        EMB + USED + "raise ValueError('sparse data is not supported here')\n",
        "emb = torch.nn.Embedding(5, 2)\n" + USED + "torch.nn.utils.clip_grad_value_(emb.parameters(), 0.1)\n",
    ],
)
def test_silent(cell):
    assert told(RULE, cell) == []
