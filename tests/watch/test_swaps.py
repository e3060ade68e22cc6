"""`torch.utils.swap_tensors` goes as it would without a trace, and is seen."""

from __future__ import annotations

import weakref

import pytest
import torch

import tensormagic
from tensormagic.watch import private

CONVERT = """\
import torch
torch.__future__.set_swap_module_params_on_conversion(True)
try:
    net = torch.nn.Linear(2, 1)
    w, old = net.weight, net.weight.detach()
    net.double()
    net(torch.ones(1, 2, dtype=torch.float64)).sum().backward()
finally:
    torch.__future__.set_swap_module_params_on_conversion(False)
"""


def test_two_tensors_change_places():
    cell = "import torch\na = torch.zeros(3)\nb = torch.ones(3)\ntorch.utils.swap_tensors(a, b)\nv = a[1:]\na += 1\n"
    namespace = {"__name__": "__main__"}
    trace = tensormagic.run(cell, namespace)
    assert trace.error is None, trace.error
    assert namespace["a"].tolist() == [2.0, 2.0, 2.0] and trace["a"].values == [2.0, 2.0, 2.0]
    assert trace["b"].values == [0.0, 0.0, 0.0]
    assert [(write.line, set(write.reaches)) for write in trace.writes] == [(6, {"a", "v"})]
    assert trace.explain("b").line == 4


def test_a_module_is_converted_by_a_swap():
    namespace = {"__name__": "__main__"}
    trace = tensormagic.run(CONVERT, namespace)
    assert trace.error is None, trace.error
    assert trace.sharing("w", "net.weight").name == "SAME_OBJECT"
    assert trace.sharing("old", "net.weight").name == "SEPARATE"
    assert trace["net.weight"].dtype == "float64" and trace["net.weight"].grad is not None


def test_a_weak_reference_of_the_user_s_is_refused_as_ever():
    cell = "import torch, weakref\na, b = torch.zeros(3), torch.ones(3)\nr = weakref.ref(a)\ntorch.utils.swap_tensors(a, b)\n"
    assert "weakref associated" in tensormagic.run(cell, {}).error.message


def test_what_was_there_is_put_back():
    before = torch.utils.weakref, getattr(torch._C, private.SWAP_ENTRY)
    tensormagic.run("import torch\nx = torch.ones(1)\n", {})
    assert (torch.utils.weakref, getattr(torch._C, private.SWAP_ENTRY)) == before
    assert torch.utils.weakref is weakref


@pytest.mark.parametrize("gone", [True, False])
def test_names_that_are_gone(monkeypatch, gone):
    assert private.has_swap_names()
    if gone:
        monkeypatch.delattr(torch._C, private.SWAP_ENTRY)
    else:
        monkeypatch.delattr(torch.utils, private.SWAP_REFERENCES)
    assert not private.has_swap_names()
    trace = tensormagic.run("import torch\nx = torch.ones(1)\n", {})
    assert trace.error is None and not trace.recording.notices
