"""Compiled code beside a trace: the same graphs, the same values, nothing said by Dynamo, and a notice of ours."""

from __future__ import annotations

import subprocess
import sys
import warnings

import pytest
import torch

import tensormagic
from tensormagic.watch import private

SET_UP = """
import torch
from torch.overrides import TorchFunctionMode
graphs = []
def count(graph, inputs):
    graphs.append(len(graph.graph.nodes))
    return graph
class Doubles(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))
torch._dynamo.reset()
"""

CELLS = {
    "twice": "@torch.compile(backend=count, fullgraph=True)\n"
    "def k(t):\n    return (t * 2).relu() + 1\n"
    "got = [k(torch.ones(2)).tolist(), k(torch.zeros(2)).tolist()]",
    "a module": "torch.manual_seed(0)\nnet = torch.compile(torch.nn.Linear(2, 1), backend=count)\n"
    "loss = net(torch.ones(3, 2)).sum()\nloss.backward()\ngot = net.weight.grad.tolist()",
    "a graph break": "import sys\n@torch.compile(backend=count)\n"
    "def k(t):\n    u = t + 1\n    print('in between', file=sys.stderr)\n    return u * 3\n"
    "got = k(torch.ones(2)).tolist()",
    "backward inside": "@torch.compile(backend=count)\n"
    "def k(w):\n    (w * w).sum().backward()\n    return w.grad * 1\n"
    "got = k(torch.ones(2, requires_grad=True)).tolist()",
    "a mode of the user's": "k = torch.compile(lambda t: t * 2, backend=count)\n"
    "with Doubles():\n    got = [k(torch.ones(2)).tolist(), torch.overrides._len_torch_function_stack() > 0]\n"
    "got.append(k(torch.ones(2)).tolist())",
    "an error inside": "@torch.compile(backend=count)\n"
    "def k(t):\n    return t @ torch.ones(9)\n"
    "try:\n    k(torch.ones(2))\nexcept Exception as e:\n    got = type(e).__name__",
    "one compiled function calls another": "inner = torch.compile(lambda t: t - 1, backend=count)\n"
    "outer = torch.compile(lambda t: inner(t) * 2, backend=count)\ngot = outer(torch.ones(2)).tolist()",
    "switched off inside": "@torch.compiler.disable\ndef plain(t):\n    return t + 5\n"
    "k = torch.compile(lambda t: plain(t * 2) - 1, backend=count)\ngot = k(torch.ones(2)).tolist()",
}


@pytest.mark.parametrize("cell", list(CELLS.values()), ids=list(CELLS))
def test_compiled_code_is_the_same_with_a_trace(cell):
    plain = {}
    exec(SET_UP + cell, plain)
    traced = {}
    exec(SET_UP, traced)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trace = tensormagic.run(cell + "\nafter = torch.ones(2) * 7", traced)
    assert trace.error is None
    assert (traced["got"], traced["graphs"]) == (plain["got"], plain["graphs"])
    codes = [notice.code for notice in trace.recording.notices]
    assert codes and set(codes) == {"compiled"}
    assert trace["after"] is not None and "mul" in str(trace.explain("after"))
    assert private.function_modes() == 0 and sys.gettrace() is None


def test_lines_of_compiled_code_are_no_steps_and_those_after_it_are():
    cell = "k = torch.compile(lambda t: t * 2,\n    backend='eager')\na = k(torch.ones(2))\nb = a + 1"
    trace = tensormagic.run(cell, {"torch": torch})
    assert [trace.recording.steps[k].line for k in range(len(trace.recording.steps))] == [1, 3, 4]
    (notice,) = trace.recording.notices
    assert (notice.code, notice.facts, notice.step) == ("compiled", {"name": "<lambda>"}, 1)


def test_nothing_is_left():
    module = sys.modules[private.COMPILE_MODULE]
    gate = getattr(module, private.COMPILE_GATE)
    assert private.has_compile_gate(module)
    finders = list(sys.meta_path)
    tensormagic.run("k = torch.compile(lambda t: t * 2, backend='eager')\nk(torch.ones(2))", {"torch": torch})
    assert getattr(module, private.COMPILE_GATE) is gate
    assert sys.meta_path == finders


def test_a_mode_goes_back_to_its_place():
    class Mode(torch.overrides.TorchFunctionMode):
        pass

    low, ours, high = Mode(), Mode(), Mode()
    with low, ours, high:
        place = private.leave_function_mode(ours)
        assert torch.overrides._get_current_function_mode_stack() == [low, high]
        private.enter_function_mode(ours, place)
        assert torch.overrides._get_current_function_mode_stack() == [low, ours, high]
        assert private.leave_function_mode(Mode()) == -1
        assert torch.overrides._get_current_function_mode_stack() == [low, ours, high]


def test_dynamo_that_is_loaded_by_the_very_line_that_compiles():
    program = (
        "import sys, torch, tensormagic\n"
        "before = list(sys.meta_path)\n"
        "assert 'torch._dynamo' not in sys.modules\n"
        "trace = tensormagic.run('a = torch.compile(lambda t: t * 2, backend=\"eager\")(torch.ones(2))',"
        " {'torch': torch})\n"
        "assert sys.meta_path == before\n"
        "module = sys.modules['torch._dynamo.eval_frame']\n"
        "assert 'exec_module' not in vars(module.__spec__.loader)\n"
        "print([notice.code for notice in trace.recording.notices], trace['a'].values)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120)
    assert (done.stdout.strip(), done.stderr) == ("['compiled'] [2.0, 2.0]", "")
