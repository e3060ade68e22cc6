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
(folder / "measured.py").write_text("def answer(t):\\n    u = t + 1\\n    return u\\n")
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
    "tqdm": "from tqdm import tqdm\ntotal = 0.0\nfor k in tqdm(range(3)):\n    total += torch.ones(2).sum().item()\ntotal",
    "tqdm in a notebook": "from tqdm.notebook import tqdm as bar\ntotal = 0.0\n"
    "for k in bar(range(3)):\n    total += torch.ones(2).sum().item()\ntotal",
    "lightning-style loop": "torch.manual_seed(0)\n"
    "class Lit(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.net = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))\n"
    "    def training_step(self, batch, number):\n        return self.net(batch).pow(2).mean()\n"
    "    def configure_optimizers(self):\n        o = torch.optim.Adam(self.parameters(), lr=0.1)\n"
    "        return o, torch.optim.lr_scheduler.StepLR(o, 1)\n"
    "class Trainer:\n    def fit(self, lit, batches):\n        o, schedule = lit.configure_optimizers()\n        logged = []\n"
    "        for number, batch in enumerate(batches):\n            def closure():\n                o.zero_grad()\n"
    "                loss = lit.training_step(batch, number)\n                loss.backward()\n                return loss\n"
    "            logged.append(o.step(closure).item())\n            schedule.step()\n        return logged\n"
    "Trainer().fit(Lit(), torch.arange(12.0).reshape(3, 2, 2))",
    "debugger called": "import pdb, io\nsaid = io.StringIO('p t.shape\\nn\\np u.tolist()\\nc\\n')\nheard = io.StringIO()\n"
    "def f(t):\n    pdb.Pdb(stdin=said, stdout=heard, nosigint=True).set_trace()\n    u = t + 1\n    return u\n"
    "g = f(torch.ones(2)) * 2\ng.tolist(), [p for p in ('Size', '[2.0, 2.0]') if p in heard.getvalue()]",
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
    assert without_ids(d for d in traced.displays if d not in traced.panels) == without_ids(plain.displays)
    assert kernel.evaluate("[n.facts for n in _trace.recording.notices if n.code == 'recorder-fault']") == "[]"
    assert kernel.evaluate("(sys.gettrace(), torch.overrides._get_current_function_mode_stack())") == "(None, [])"


def without_places(stderr):
    """Warnings without file and line: the line is another one under the magic, and the file bears the cell's hash.

    And progress without its speed.
    """
    return re.sub(r"\S+:\d+: |\[\d\d:\d\d<.*?\]", "", stderr)


def without_ids(displays):
    """A widget has an identity of its own each time."""
    return [re.sub(r"'model_id': '\w+'", "", str(bundle)) for bundle in displays]


def notices(kernel, name="_trace"):
    """Code and facts of each notice."""
    return eval(kernel.evaluate(f"[(n.code, n.facts) for n in {name}.recording.notices]"))


def lines_of_steps(kernel, name="_trace"):
    return eval(kernel.evaluate(f"list({name}.recording.steps.column('line'))"))


@pytest.mark.parametrize(
    ("name", "code"),
    [("compiled", "compiled"), ("debugger called", "lines-lost")],
)
def test_what_was_not_recorded_is_said(kernel, name, code):
    kernel.run("%%tensortrace\n" + CELLS[name])
    assert [found for found, _ in notices(kernel)] == [code]
    said = kernel.evaluate("_trace.summary()")
    assert "not recorded" in said


def test_threads_and_child_processes_that_still_run_are_said(kernel):
    kernel.run(
        "%%tensortrace\nimport multiprocessing\nstop = threading.Event()\n"
        "t = threading.Thread(target=stop.wait, name='beside'); t.start()\n"
        "p = multiprocessing.get_context('fork').Process(target=stop.wait); p.start()"
    )
    assert dict(notices(kernel)) == {"threads": {"names": "beside"}, "processes": {"count": 1}}
    kernel.run("stop.set(); t.join(); p.terminate(); p.join()")


def test_accelerate(kernel):
    """With the real package where it is installed."""
    if kernel.evaluate("__import__('importlib.util').util.find_spec('accelerate') is None") == "True":
        pytest.skip("accelerate is not installed")
    cell = (
        "from accelerate import Accelerator\ntorch.manual_seed(0)\nacc = Accelerator(cpu=True)\nnet = torch.nn.Linear(2, 1)\n"
        "opt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "data = torch.utils.data.DataLoader(torch.arange(8.0).reshape(4, 2), batch_size=2)\n"
        "net, opt, data = acc.prepare(net, opt, data)\nfor x in data:\n    with acc.accumulate(net):\n"
        "        loss = net(x).pow(2).mean()\n        acc.backward(loss)\n        acc.clip_grad_norm_(net.parameters(), 1.0)\n"
        "        opt.step()\n        opt.zero_grad()\n[p.tolist() for p in net.parameters()]"
    )
    plain, traced = kernel.run(cell), kernel.run("%%tensortrace\n" + cell)
    assert (traced.status, traced.value, traced.stderr) == (plain.status, plain.value, plain.stderr)
    assert notices(kernel) == [] and int(kernel.evaluate("len(_trace.recording.backwards)")) == 2


@pytest.mark.parametrize("timid", [False, True], ids=["coverage in C", "coverage in Python"])
def test_coverage_that_runs_in_the_kernel(kernel, timid):
    """It measures the same lines, and ours are followed beside it."""
    cell = "import measured\nr = measured.answer(torch.ones(2))\nfor k in range(2):\n    r = r + 1\nr.tolist()"
    measured = []
    for magic in ("", "%%tensortrace\n"):
        kernel.run(
            f"import coverage\nsys.modules.pop('measured', None)\n"
            f"cov = coverage.Coverage(data_file=None, timid={timid}, include=[str(folder) + '/*'])\ncov.start()"
        )
        assert kernel.run(magic + cell).value == "[4.0, 4.0]"
        kernel.run("cov.stop()")
        measured.append(kernel.evaluate("sorted(cov.get_data().lines(str(folder / 'measured.py')))"))
    assert measured == ["[1, 2, 3]"] * 2
    assert lines_of_steps(kernel) == [2, 3, 4, 5, 4, 5, 4, 6] and notices(kernel) == []


# ---- other cell magics -------------------------------------------------------------------------------------------

BODY = "a = torch.ones(2)\nb = a * 2\nprint('b', b.tolist())"


@pytest.mark.parametrize(
    ("above", "lines", "said"),
    [
        ("%%time", [2, 3, 4], []),
        ("%%capture caught", [2, 3, 4], []),
        ("%%prun -q", [1], [("magic-alone", {"name": "prun"})]),
        ("%%timeit -n1 -r2", [1], [("magic-alone", {"name": "timeit"})]),
    ],
)
def test_below_another_cell_magic(kernel, above, lines, said):
    ran, plain = kernel.run(f"{above}\n%%tensortrace\n{BODY}"), kernel.run(f"{above}\n{BODY}")
    assert (ran.status, ran.value, ran.stdout.count("b [2.0")) == ("ok", plain.value, plain.stdout.count("b [2.0"))
    assert lines_of_steps(kernel) == lines and notices(kernel) == said


@pytest.mark.parametrize(
    ("below", "code"),
    [
        ("time", "magic-below"),
        ("capture", "magic-below"),
        ("prun -q", "magic-alone"),
        ("timeit -n1 -r2", "magic-alone"),
    ],
)
def test_above_another_cell_magic(kernel, below, code):
    ran, plain = kernel.run(f"%%tensortrace\n%%{below}\n{BODY}"), kernel.run(f"%%{below}\n{BODY}")
    assert (ran.status, ran.value, ran.stdout.count("b [2.0")) == ("ok", plain.value, plain.stdout.count("b [2.0"))
    name = below.split()[0]
    assert (code, {"name": name}) in notices(kernel)
    assert f"%%{name}" in kernel.evaluate("_trace.summary()") and len(ran.panels) == 1


# ---- modes, figures, errors --------------------------------------------------------------------------------------


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
