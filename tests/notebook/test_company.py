"""Other tools beside the magic, in a real kernel: each works as without us, and so does the trace."""

from __future__ import annotations

import re

import pytest

from tests.notebook.kernels import Kernel

pytestmark = pytest.mark.kernel

HELPERS = """
import threading, asyncio, pathlib, tempfile, sys, torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
folder = pathlib.Path(tempfile.mkdtemp()); sys.path.insert(0, str(folder))
(folder / "beside.py").write_text("def answer(t): return t + 1\\n")
(folder / "script.py").write_text("import torch\\nran = torch.ones(2) * 3\\n")
class CountFunctions(TorchFunctionMode):
    seen = 0
    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen += 1
        return func(*args, **(kwargs or {}))
class CountOperations(TorchDispatchMode):
    seen = 0
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen += 1
        return func(*args, **(kwargs or {}))
class Squares(torch.utils.data.Dataset):
    def __len__(self): return 4
    def __getitem__(self, k): return torch.tensor(float(k * k))
"""


@pytest.fixture(scope="module")
def kernel():
    with Kernel() as made:
        assert made.run("%load_ext tensormagic\nimport torch, sys").status == "ok"
        assert made.run(HELPERS).status == "ok"
        yield made


CELLS = {
    "autoreload": "%reload_ext autoreload\n%autoreload 2\nimport beside\nbeside.answer(torch.ones(2))",
    "run": "%run {folder}/script.py\nran",
    "thread": "out = []\nt = threading.Thread(target=lambda: out.append(torch.ones(2).sum().item()))\n"
    "t.start(); t.join()\nout",
    "asyncio task": "async def f(t):\n    await asyncio.sleep(0)\n    return (t * 2).tolist()\n"
    "await asyncio.gather(f(torch.ones(1)), f(torch.zeros(1)))",
    "workers": "[batch.tolist() for batch in torch.utils.data.DataLoader(Squares(), batch_size=2, num_workers=2)]",
    "no_grad left on": "w = torch.ones(2, requires_grad=True)\ntorch.set_grad_enabled(False)\n(w * 2).requires_grad",
    "and switched on again": "torch.set_grad_enabled(True)\n(torch.ones(2, requires_grad=True) * 2).requires_grad",
    "inference mode": "with torch.inference_mode():\n    i = torch.ones(2) * 2\ni.is_inference(), i.tolist()",
    "function mode": "with CountFunctions() as m:\n    torch.ones(2).add(1)\nm.seen",
    "dispatch mode": "with CountOperations() as m:\n    torch.ones(2).add(1)\nm.seen",
    "profiler": "with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as p:\n"
    "    torch.ones(2) + 1\n'aten::add' in {e.key for e in p.key_averages()}",
    "autocast": "with torch.autocast('cpu', dtype=torch.bfloat16):\n"
    "    c = torch.ones(2, 2) @ torch.ones(2, 2)\nc.dtype",
    "tracer": "seen = []\ndef tracer(frame, event, arg):\n    seen.append(event)\ndef g():\n    return 1\n"
    "before = sys.gettrace()\nsys.settrace(tracer); g(); sys.settrace(before)\nlen(seen)",
    "warning": "import warnings\nfor k in range(2):\n    warnings.warn('said once')\ntorch.ones(1)",
    "traceback text": "import traceback\ntry:\n    torch.ones(2) @ torch.ones(3)\nexcept RuntimeError as e:\n"
    "    kept = str(e)\nkept",
    "functional": "torch.func.grad(lambda x: (x ** 2).sum())(torch.ones(2))",
    "child process": "import subprocess\n"
    "subprocess.run([sys.executable, '-c', 'print(1)'], capture_output=True, text=True).stdout",
    "compiled": "@torch.compile(backend='eager')\ndef k(t):\n    return t * 2\nk(torch.ones(2)).tolist()",
    "display": "from IPython.display import display\ndisplay('shown')\nprint('said')",
}


@pytest.mark.parametrize("name", CELLS)
def test_the_cell_gives_the_same(kernel, name):
    body = CELLS[name].replace("{folder}", kernel.evaluate("str(folder)").strip("'"))
    plain = kernel.run(body)
    traced = kernel.run("%%tensortrace\n" + body)
    assert traced.error.get("traceback", "") == "" and traced.status == plain.status == "ok"
    assert (traced.value, traced.stdout) == (plain.value, plain.stdout)
    assert without_places(traced.stderr) == without_places(plain.stderr)
    assert len(traced.panels) == 1
    assert [d for d in traced.displays if d not in traced.panels] == plain.displays
    assert kernel.evaluate("[n.facts for n in _trace.recording.notices if n.code == 'recorder-fault']") == "[]"
    assert kernel.evaluate("(sys.gettrace(), torch.overrides._get_current_function_mode_stack())") == "(None, [])"


def without_places(stderr):
    """Warnings without file and line: the line is another one under the magic, and the file bears the cell's hash."""
    return re.sub(r"\S+:\d+: ", "", stderr)


def test_a_mode_left_on_stays_on(kernel):
    kernel.run("%%tensortrace\nm = CountFunctions()\nm.__enter__()\na = torch.ones(2)")
    kernel.run("before = m.seen\ntorch.ones(2)")
    assert kernel.evaluate("m.seen > before") == "True"
    kernel.run("m.__exit__(None, None, None)")
    assert kernel.evaluate("torch.overrides._get_current_function_mode_stack()") == "[]"


def test_figures_come_before_the_panel(kernel):
    ran = kernel.run("%matplotlib inline\nimport matplotlib.pyplot as plt")
    ran = kernel.run("%%tensortrace\nplt.plot([1, 2])\nplt.title('t');")
    assert [
        "image/png" in bundle and "data-tensortrace" not in bundle.get("text/html", "") for bundle in ran.displays
    ] == [
        True,
        False,
    ]


def test_automatic_debugger(kernel):
    kernel.run("%pdb on")
    ran = kernel.run("%%tensortrace\na = torch.ones(2)\nraise ValueError('v')", allow_stdin=False)
    kernel.run("%pdb off")
    assert ran.status == "error" and ran.error["ename"] in ("ValueError", "StdinNotImplementedError")
    assert len(ran.panels) == 1
    assert kernel.evaluate("_trace.error.type") == "'ValueError'"


def test_warnings_name_the_users_line(kernel):
    ran = kernel.run("%%tensortrace\nimport warnings\nwarnings.warn('mine')")
    assert ":3: UserWarning: mine" in ran.stderr
