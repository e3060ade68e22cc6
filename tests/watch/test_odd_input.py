"""Odd input: recorded with what can be known, or named as not recorded; never an exception of ours in the cell."""

from __future__ import annotations

import pytest

import tensormagic

CELLS = {
    "empty": "",
    "comment": "# nothing",
    "no torch": "a = 41\nb = a + 1",
    "sparse": "import torch\nx = torch.eye(3).to_sparse()\ny = x * 2",
    "meta": "import torch\nx = torch.empty(3, device='meta')\ny = x + 1",
    "quantized": "import torch\nx = torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8)\ny = x.dequantize()",
    "nested": "import torch\nx = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])\ny = x + x",
    "complex": "import torch\nx = torch.ones(2, dtype=torch.complex64, requires_grad=True)\n(x * x.conj()).real.sum().backward()",
    "bool": "import torch\nx = torch.tensor([True, False])\nx |= True",
    "scalar": "import torch\nx = torch.tensor(1.0)\nx += 1",
    "zero size": "import torch\nx = torch.empty(0, 3)\ny = x[:0]\nx += 1",
    "bfloat16": "import torch\nx = torch.ones(3, dtype=torch.bfloat16, requires_grad=True)\n(x * 2).sum().backward()",
    "subclass": "import torch\nclass T(torch.Tensor):\n    pass\nx = torch.ones(2).as_subclass(T)\ny = x + 1\ny += 1",
    "parameter list": "import torch\np = torch.nn.ParameterList([torch.ones(2), torch.zeros(2)])\np[0].sum().backward()",
    "inference": "import torch\nwith torch.inference_mode():\n    x = torch.ones(3)\n    x += 1\ny = x * 2",
    "vmap": "import torch\ny = torch.vmap(lambda a: a * 2 + a.sum())(torch.ones(3, 2))",
    "func grad": "import torch\ng = torch.func.grad(lambda a: (a ** 2).sum())(torch.ones(3))",
    "hessian": "import torch\nh = torch.autograd.functional.hessian(lambda a: (a ** 3).sum(), torch.ones(2))",
    "fake": "import torch\nfrom torch._subclasses.fake_tensor import FakeTensorMode\nwith FakeTensorMode():\n    x = torch.ones(3)\n    y = x + 1",
    "checkpoint": "import torch\nfrom torch.utils.checkpoint import checkpoint\nx = torch.ones(3, requires_grad=True)\n"
    "checkpoint(lambda a: (a * 2).sin(), x, use_reentrant=False).sum().backward()",
    "reentrant checkpoint": "import torch\nfrom torch.utils.checkpoint import checkpoint\nx = torch.ones(3, requires_grad=True)\n"
    "checkpoint(lambda a: (a * 2).sin(), x, use_reentrant=True).sum().backward()",
    "custom function": "import torch\nclass F(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, a):\n"
    "        return a * 2\n    @staticmethod\n    def backward(ctx, g):\n        return g * 2\nx = torch.ones(2, requires_grad=True)\n"
    "F.apply(x).sum().backward()",
    "hooks": "import torch\nx = torch.ones(2, requires_grad=True)\nx.register_hook(lambda g: g * 2)\n(x * 3).sum().backward()",
    "generator": "import torch\ndef g():\n    for i in range(3):\n        yield torch.ones(2) * i\nxs = list(g())",
    "recursion": "import torch\ndef f(n):\n    return torch.ones(1) if n == 0 else f(n - 1) + 1\ny = f(20)",
    "cycle": "import torch\na = [torch.ones(2)]\na.append(a)\nb = {'self': None, 'x': torch.ones(1)}\nb['self'] = b",
    "numpy object": "import numpy, torch\na = numpy.array([object(), None])\nt = torch.ones(2)\nb = t.numpy()[::-1]",
    "dispatch mode": "import torch\nfrom torch.utils._python_dispatch import TorchDispatchMode\nseen = []\n"
    "class M(TorchDispatchMode):\n    def __torch_dispatch__(self, func, types, args=(), kwargs=None):\n"
    "        seen.append(str(func))\n        return func(*args, **(kwargs or {}))\nwith M():\n    x = torch.ones(2)\n    y = x + 1\n",
    "function mode": "import torch\nfrom torch.overrides import TorchFunctionMode\nseen = []\nclass M(TorchFunctionMode):\n"
    "    def __torch_function__(self, func, types, args=(), kwargs=None):\n        seen.append(func.__name__)\n"
    "        return func(*args, **(kwargs or {}))\nwith M():\n    x = torch.ones(2)\n    y = x.add(1)\n",
    "packed": "import torch\np = torch.nn.utils.rnn.pack_sequence([torch.ones(3, 1), torch.ones(2, 1)])\ny, _ = torch.nn.LSTM(1, 2)(p)\n",
    "double backward": "import torch\nx = torch.ones(2, requires_grad=True)\n(g,) = torch.autograd.grad((x ** 3).sum(), x, create_graph=True)\ng.sum().backward()\n",
    "getattr": "import torch\nclass H:\n    def __getattr__(self, n):\n        raise SystemError(n)\n    def __eq__(self, o):\n        return torch.ones(2)\n"
    "    @property\n    def p(self):\n        print('asked')\n        return 1\nh = H()\nh.x = torch.ones(1)\n",
}  # fmt: skip


@pytest.mark.parametrize("cell", CELLS.values(), ids=CELLS)
def test_runs_as_without_us_and_no_fault(cell, capsys):
    namespace: dict = {"__name__": "__main__"}
    exec(compile(cell, "<bare>", "exec"), namespace)
    bare_printed = capsys.readouterr().out
    traced: dict = {"__name__": "__main__"}
    trace = tensormagic.run(cell, traced)
    assert trace.error is None
    assert capsys.readouterr().out == bare_printed
    faults = [notice for notice in trace.recording.notices if notice.code == "recorder-fault"]
    assert not faults
    if "seen" in namespace:
        assert traced["seen"] == namespace["seen"], "a mode of the user's saw other calls than without us"
    assert trace.summary()
    assert [f for f in trace.findings if f.severity in ("error", "warning")] == []
