"""Parameters that no optimizer trains, and graphs that something keeps: in containers, attributes and functions."""

import pytest

from tests.findings.cells import one, told

MODELS = "teacher, student = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)\nopt = torch.optim.SGD(teacher.parameters(), lr=0.1)\n"
LOOP = "for i in range(2):\n    opt.zero_grad()\n    {}.sum().backward()\n    opt.step()\n"


def test_the_optimizer_of_another_model():
    finding = one("optimizer-forgets-parameter", MODELS + LOOP.format("student(torch.ones(1, 2))"))
    assert (finding.severity, finding.line, finding.names) == ("warning", 3, ("student.weight", "student.bias"))


def test_a_part_that_was_left_out_is_a_note():
    finding = one(
        "optimizer-forgets-parameter", MODELS + LOOP.format("(student(torch.ones(1, 2)) + teacher(torch.ones(1, 2)))")
    )
    assert (finding.severity, finding.line, finding.names) == ("note", 3, ("student.weight", "student.bias"))


@pytest.mark.parametrize(
    "cell",
    [
        MODELS + LOOP.format("teacher(torch.ones(1, 2))"),
        MODELS + "student.requires_grad_(False)\n" + LOOP.format("student(teacher(torch.ones(1, 2)).expand(1, 2))"),
        MODELS + "student(torch.ones(1, 2)).sum().backward()\n",
        MODELS + LOOP.format("(student(torch.ones(1, 2)) + teacher(torch.ones(1, 2)))")
        + "with torch.no_grad():\n    for p in student.parameters():\n        p -= 0.1 * p.grad\n",
    ],
)  # fmt: skip
def test_silent(cell):
    assert told("optimizer-forgets-parameter", cell) == []


NET = (
    "class Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.lin = torch.nn.Linear(2, 2)\n"
    "        self.scale = {}\n    def forward(self, x):\n        return self.lin(x) * self.scale\nnet = Net()\n"
    "opt = torch.optim.SGD(net.parameters(), lr=0.1)\nnet(torch.ones(1, 2)).sum().backward()\nopt.step()\n"
)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        ("torch.ones(2, requires_grad=True)", "a plain tensor"),
        ("torch.nn.Parameter(torch.ones(2)) * 0.1", "the result of `mul`"),
    ],
)
def test_a_tensor_that_is_no_parameter(made, words):
    finding = one("parameter-not-registered", NET.format(made))
    assert (finding.severity, finding.line) == ("warning", 6)
    assert "net.scale" in finding.names
    assert words in finding.message


@pytest.mark.parametrize(
    "cell",
    [
        NET.format("torch.nn.Parameter(torch.ones(2))"),
        NET.format("torch.ones(2)"),
        NET.format("torch.ones(2, requires_grad=True)").replace("net.parameters()", "[*net.parameters(), net.scale]"),
        NET.format("torch.ones(2, requires_grad=True)")
        + "with torch.no_grad():\n    net.scale -= 0.1 * net.scale.grad\n",
        NET.format("1.0").replace(
            "        return self.lin(x) * self.scale", "        self.seen = self.lin(x)\n        return self.seen * 2"
        ),
    ],
)
def test_registered_or_trained_otherwise(cell):
    assert told("parameter-not-registered", cell) == []


METER = (
    "class Meter:\n    def __init__(self):\n        self.total = 0.0\n    def update(self, value):\n        self.total = self.total + value\n"
    "w = torch.ones(2, requires_grad=True)\nmeter = Meter()\nfor i in range(4):\n    loss = (w * 2).sum()\n    loss.backward()\n"
    "    meter.update({})\n"
)


def test_a_graph_kept_by_an_object_that_the_loop_calls():
    finding = one("graph-kept-alive", METER.format("loss"))
    assert (finding.line, finding.names[0]) == (6, "meter")
    assert "`meter.total`" in finding.message


def test_a_graph_kept_by_a_list_of_a_module():
    cell = NET.format("[]").replace(
        "return self.lin(x) * self.scale", "self.scale.append(self.lin(x)); return self.scale[-1]"
    )
    finding = one(
        "graph-kept-alive",
        cell + "for i in range(4):\n    opt.zero_grad()\n    net(torch.ones(1, 2)).sum().backward()\n",
    )
    assert (finding.line, finding.names[0]) == (8, "net")
    assert "`net.scale`" in finding.message


def test_numbers_keep_no_graph():
    assert told("graph-kept-alive", METER.format("loss.item()")) == []


def test_parameters_in_a_plain_list():
    finding = one(
        "parameter-not-registered",
        NET.format("[torch.nn.Parameter(torch.ones(2))]").replace("* self.scale", "* self.scale[0]"),
    )
    assert (finding.line, finding.names) == (6, ("net.scale[0]",))
    assert "ParameterList" in finding.fix


def test_one_finding_for_a_state_and_what_is_computed_from_it():
    cell = (
        "rnn = torch.nn.RNNCell(1, 2)\nh = torch.zeros(1, 2)\nfor t in range(5):\n    h = rnn(torch.ones(1, 1), h)\n    loss = h.sum()\n"
        "    rnn.zero_grad()\n    loss.backward(retain_graph=True)\n"
    )
    finding = one("graph-kept-alive", cell)
    assert (finding.names, finding.line) == (("h",), 5)
    assert finding.fix.endswith("values, not the graph: `.detach()`.")
