"""Odd tensors and torch's own machinery: the same with the trace and without, and nothing of ours raised or guessed.

What can only be known in part is not compared to the truth here: it is enough that the program is the same, that the
trace answers, and that two names are never told apart in memory that they share.
"""

from __future__ import annotations

import itertools

import pytest
import torch

from tests.program.compare import check_answers, check_sharing, run_both

HEAD = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n"
CELLS = {
    "jagged": "x = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], layout=torch.jagged, requires_grad=True)\n"
    "y = (x * 2).values()\ny.sum().backward()\n",
    "masked": "from torch.masked import masked_tensor\nx = masked_tensor(torch.arange(4.0), torch.tensor([True, False, True, True]), requires_grad=True)\n"
    "s = (x * 2).sum()\ns.backward()\n",
    "func": "from torch.func import grad, vmap, jvp, vjp, jacrev, jacfwd, hessian, functional_call\nf = lambda a: (a.sin() * a).sum()\n"
    "x = torch.ones(3)\ng = grad(f)(x)\nv = vmap(grad(f))(torch.ones(2, 3))\np, t = jvp(f, (x,), (x,))\nj = jacrev(torch.sin)(x)\n"
    "k = jacfwd(torch.sin)(x)\nh = hessian(f)(x)\no, back = vjp(f, x)\nw = back(torch.ones(()))\n"
    "net = nn.Linear(3, 2)\nq = functional_call(net, {k: v.detach() * 2 for k, v in net.named_parameters()}, x)\n",
    "ensemble": "from torch.func import stack_module_state, functional_call, vmap\nnets = [nn.Linear(3, 2) for _ in range(3)]\n"
    "params, buffers = stack_module_state(nets)\ny = vmap(lambda p, b, x: functional_call(nets[0], (p, b), x), (0, 0, None))(params, buffers, torch.ones(2, 3))\ny.sum().backward()\n",
    "export": "net = nn.Sequential(nn.Linear(3, 4), nn.ReLU())\nprogram = torch.export.export(net, (torch.ones(2, 3),))\n"
    "y = program.module()(torch.ones(2, 3))\ny.sum().backward()\n",
    "script": "@torch.jit.script\ndef f(a):\n    return a * 2 + 1\nx = torch.ones(3, requires_grad=True)\nf(x).sum().backward()\n",
    "traced": "net = torch.jit.trace(nn.Linear(3, 2), torch.ones(1, 3))\ny = net(torch.ones(4, 3))\ny.sum().backward()\ng = next(net.parameters()).grad\n",
    "fx": "import torch.fx\nnet = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.Tanh()))\nnet(torch.ones(1, 2)).sum().backward()\n",
    "compile eager": "import torch._dynamo\ntorch._dynamo.reset()\nf = torch.compile(lambda a: a.sin() + 1, backend='eager')\nx = torch.ones(3, requires_grad=True)\ny = f(x)\ny.sum().backward()\n",
    "dispatch subclass": "class W(torch.Tensor):\n    @staticmethod\n    def __new__(cls, inner, tag):\n        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)\n"
    "    def __init__(self, inner, tag):\n        self.inner, self.tag = inner, tag\n    @classmethod\n    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):\n"
    "        calls.append(str(func))\n        bare = lambda v: v.inner if isinstance(v, W) else v\n        out = func(*[bare(a) for a in args], **(kwargs or {}))\n"
    "        return W(out, 'made') if isinstance(out, torch.Tensor) else out\ncalls = []\nx = W(torch.ones(3), 'given')\ny = x * 2 + x\nx.add_(1)\ninside = y.inner\ntags = x.tag, y.tag\n",
    "function subclass": "class L(torch.Tensor):\n    @classmethod\n    def __torch_function__(cls, func, types, args=(), kwargs=None):\n"
    "        calls.append(getattr(func, '__name__', '?'))\n        return super().__torch_function__(func, types, args, kwargs or {})\ncalls = []\n"
    "x = torch.ones(3).as_subclass(L)\ny = (x + 1).view(3, 1)\ny[0] = 5\nz = y.sum()\nn = len(calls)\n",
    "function object": "class D:\n    def __init__(self, v):\n        self.v = v\n    @classmethod\n    def __torch_function__(cls, func, types, args=(), kwargs=None):\n"
    "        calls.append(func.__name__)\n        return func(*[a.v if isinstance(a, D) else a for a in args], **(kwargs or {}))\ncalls = []\ny = torch.add(D(torch.ones(2)), torch.ones(2))\n",
    "mmap": "import tempfile, os, shutil\nfolder = tempfile.mkdtemp()\npath = os.path.join(folder, 'x.pt')\ntorch.save({'a': torch.arange(6.0), 'b': torch.ones(2)}, path)\n"
    "d = torch.load(path, mmap=True)\na = d['a']\nv = a[2:]\nv += 1\nstorage = torch.UntypedStorage.from_file(os.path.join(folder, 'y'), shared=True, nbytes=24)\n"
    "s = torch.empty(0).set_(storage)\ns.fill_(2)\nt = torch.from_file(os.path.join(folder, 'y'), shared=True, size=6)\nu = t + 1\nshutil.rmtree(folder)\ndel folder, path\n",
    "pickled": "import pickle, copy, io\nx = torch.arange(4.0)\ny = x[1:]\np, q = pickle.loads(pickle.dumps((x, y)))\nbuffer = io.BytesIO()\ntorch.save([x, y], buffer)\n"
    "buffer.seek(0)\nr, s = torch.load(buffer)\ns += 1\nd, e = copy.deepcopy([x, y])\ne *= 2\n",
    "shared memory": "x = torch.ones(4).share_memory_()\ny = x[1:]\ny += 1\nb = x.is_shared()\n",
    "multiprocessing": "import torch.multiprocessing as mp\nfrom multiprocessing.reduction import ForkingPickler\nimport pickle\nx = torch.arange(3.0)\n"
    "data = bytes(ForkingPickler.dumps(x))\ny = pickle.loads(data)\ny += 1\ndel data\n",
    "zero size": "x = torch.empty(0, 5, requires_grad=True)\ny = x.view(5, 0).T\n(y * 2).sum().backward()\nz = torch.cat([y.detach(), torch.empty(0, 5)])\n",
    "huge meta": "x = torch.empty(2**40, 2**10, device='meta')\ny = x.view(2**10, 2**40)\nz = y[::2] + 1\ny.mul_(2)\n",
    "huge expand": "x = torch.ones(1).expand(2**40)\ny = x[::3]\nz = torch.ones(1, requires_grad=True).expand(2**30)[:2].sum()\nz.backward()\n",
    "views": "x = torch.arange(8.0)\nviews = [x]\nfor i in range(100):\n    views.append(views[-1].view(8) if i % 2 else views[-1].flip(0)[:] if i == 50 else views[-1][:])\nviews[-1][0] = 7\n",
    "many dimensions": "x = torch.arange(4.0).reshape([1] * 30 + [2] + [1] * 30 + [2])\ny = x.transpose(30, 61)\ny += 1\nz = x.squeeze()\n",
    "deep recursion": "def f(n, a):\n    return a if n == 0 else f(n - 1, a * 1.01)\nx = torch.ones(2, requires_grad=True)\nf(400, x).sum().backward()\n",
    "deep error": "def f(a):\n    return f(a + 1)\ntry:\n    f(torch.ones(1))\nexcept RecursionError as error:\n    text = type(error).__name__\n",
    "fake": "from torch._subclasses.fake_tensor import FakeTensorMode\nwith FakeTensorMode() as mode:\n    net = nn.Linear(4, 4)\n    y = net(torch.ones(2, 4))\n    y.sum().backward()\nm = mode.from_tensor(torch.ones(3))\nshape = tuple(y.shape)\n",
    "quantized": "x = torch.quantize_per_channel(torch.rand(3, 4), torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0, 1, 2]), 0, torch.qint8)\ny = x.int_repr()\nz = x.dequantize() * 2\nr = torch.relu(torch.quantize_per_tensor(torch.rand(3), 0.1, 0, torch.quint8))\n",
    "coo": "x = torch.eye(4).to_sparse().requires_grad_()\ny = torch.sparse.mm(x, torch.ones(4, 2))\ny.sum().backward()\ni = x.detach().indices()\nv = x.detach().values()\nc = (x + x).coalesce()\n",
    "csr": "x = torch.eye(4).to_sparse_csr()\ny = x @ torch.ones(4, 2)\nv = x.values()\nv += 1\ncol = x.col_indices()\n",
    "bsr": "x = torch.eye(4).to_sparse_bsr((2, 2))\ny = x @ torch.ones(4, 2)\nd = x.to_dense()\n",
    "sparse embedding": "e = nn.Embedding(5, 2, sparse=True)\nopt = torch.optim.SparseAdam(e.parameters())\ne(torch.tensor([1, 3])).sum().backward()\nopt.step()\n",
    "complex views": "x = torch.randn(3, dtype=torch.complex64)\nc = x.conj()\ni = c.imag\nr = torch.view_as_real(x)\nr += 1\nn = x.conj().imag.neg()\np = c.resolve_conj()\n",
    "small floats": "x = torch.randn(4, requires_grad=True)\nb = x.to(torch.bfloat16)\nf = x.detach().to(torch.float8_e4m3fn)\nu = f.view(torch.uint8)\nb.sum().backward()\ng = f.float()\n",
    "unsigned": "x = torch.arange(4).to(torch.uint16)\ny = x.view(torch.uint8)\ny[0] = 3\nz = torch.zeros(2, dtype=torch.uint64)\nw = torch.ones(4, dtype=torch.uint8).view(torch.bits8) if hasattr(torch, 'bits8') else None\n",
    "custom operator": "import itertools\nname = f'tensormagic_test::twice{next(counter)}'\n@torch.library.custom_op(name, mutates_args=())\ndef twice(a: torch.Tensor) -> torch.Tensor:\n"
    "    return a * 2\ntwice.register_fake(lambda a: torch.empty_like(a))\ntwice.register_autograd(lambda ctx, g: g * 2, setup_context=lambda ctx, inputs, output: None)\n"
    "x = torch.ones(3, requires_grad=True)\ny = twice(x)\ny.sum().backward()\ndel name\n",
    "custom writing operator": "name = f'tensormagic_test::fill{next(counter)}'\n@torch.library.custom_op(name, mutates_args=('a',))\ndef fill(a: torch.Tensor, v: float) -> None:\n"
    "    a.numpy()[:] = v\nx = torch.zeros(3)\ny = x[:2]\nfill(x, 4.0)\ndel name\n",
    "lazy": "net = nn.Sequential(nn.LazyLinear(3), nn.LazyBatchNorm1d())\nnet(torch.randn(4, 5)).sum().backward()\n",
    "parametrized": "from torch.nn.utils import parametrize\nfrom torch.nn.utils.parametrizations import weight_norm, spectral_norm, orthogonal\n"
    "class S(nn.Module):\n    def forward(self, w):\n        return w.triu() + w.triu(1).mT\nnet = nn.Linear(3, 3)\nparametrize.register_parametrization(net, 'weight', S())\n"
    "net(torch.ones(2, 3)).sum().backward()\na = weight_norm(nn.Linear(3, 3))\nb = spectral_norm(nn.Linear(3, 3))\nc = orthogonal(nn.Linear(3, 3))\n(a(torch.ones(1, 3)) + b(torch.ones(1, 3)) + c(torch.ones(1, 3))).sum().backward()\n"
    "with parametrize.cached():\n    d = a(torch.ones(1, 3))\nparametrize.remove_parametrizations(net, 'weight')\n",
    "old norms and pruning": "from torch.nn.utils import prune\nfrom torch.nn import utils\na = utils.weight_norm(nn.Linear(3, 3))\nb = utils.spectral_norm(nn.Linear(3, 3))\nc = nn.Linear(3, 3)\nprune.l1_unstructured(c, 'weight', 0.5)\n"
    "(a(torch.ones(1, 3)) + b(torch.ones(1, 3)) + c(torch.ones(1, 3))).sum().backward()\nprune.remove(c, 'weight')\nv = utils.parameters_to_vector(c.parameters())\nutils.vector_to_parameters(v * 2, c.parameters())\nn = utils.clip_grad_norm_(a.parameters(), 1.0)\nutils.clip_grad_value_(b.parameters(), 0.1)\nu = utils.skip_init(nn.Linear, 2, 2)\nnn.init.ones_(u.weight)\nnn.init.ones_(u.bias)\nutils.fusion.fuse_linear_bn_eval(nn.Linear(3, 3).eval(), nn.BatchNorm1d(3).eval())\n",
    "swa": "from torch.optim.swa_utils import AveragedModel, SWALR, update_bn, get_ema_multi_avg_fn\nnet = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))\nswa = AveragedModel(net)\nema = AveragedModel(net, multi_avg_fn=get_ema_multi_avg_fn(0.9))\n"
    "opt = torch.optim.SGD(net.parameters(), 0.1)\nlr = SWALR(opt, 0.05)\nfor i in range(3):\n    opt.zero_grad()\n    net(torch.randn(4, 3)).pow(2).sum().backward()\n    opt.step()\n    lr.step()\n    swa.update_parameters(net)\n    ema.update_parameters(net)\nupdate_bn([torch.randn(4, 3)], swa)\n",
    "autocast and scaler": "net = nn.Linear(4, 4)\nopt = torch.optim.SGD(net.parameters(), 0.1)\nscaler = torch.amp.GradScaler('cpu')\nfor i in range(2):\n    opt.zero_grad()\n    with torch.autocast('cpu', dtype=torch.bfloat16):\n        y = net(torch.ones(2, 4))\n        loss = y.float().pow(2).mean()\n    scaler.scale(loss).backward()\n    scaler.unscale_(opt)\n    scaler.step(opt)\n    scaler.update()\n",
    "forward mode": "import torch.autograd.forward_ad as fwad\nx = torch.ones(3)\nwith fwad.dual_level():\n    d = fwad.make_dual(x, torch.arange(3.0))\n    y = d.sin() * d\n    p, t = fwad.unpack_dual(y)\n    t = t.clone()\n    p = p.clone()\n    del d, y\n",
    "saved tensors": "from torch.autograd.graph import saved_tensors_hooks, save_on_cpu\npacked = []\ndef pack(t):\n    packed.append(tuple(t.shape))\n    return t.numpy(force=True).copy()\nx = torch.ones(3, requires_grad=True)\n"
    "with saved_tensors_hooks(pack, torch.from_numpy):\n    y = (x.exp() * x).sum()\ny.backward()\nwith save_on_cpu():\n    z = (x.sin() * x).sum()\nz.backward()\n",
    "disabled saving": "x = torch.ones(3, requires_grad=True)\nwith torch.autograd.graph.disable_saved_tensors_hooks('no'):\n    y = x * x\ny.sum().backward()\nwith torch.autograd.graph.allow_mutation_on_saved_tensors():\n    z = x * 2\n    w = z * z\n    z.add_(1)\n    w.sum().backward()\n",
    "checkpoint": "from torch.utils.checkpoint import checkpoint, checkpoint_sequential\nnet = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5), nn.Linear(3, 3))\nx = torch.randn(2, 3, requires_grad=True)\nfor reentrant in (True, False):\n    checkpoint(net, x, use_reentrant=reentrant).sum().backward()\ncheckpoint_sequential(net, 2, x, use_reentrant=False).sum().backward()\n",
    "graph hooks": "seen = []\nx = torch.ones(3, requires_grad=True)\nz = torch.ones(3, requires_grad=True)\ny = (x * 2 + z)\ny.grad_fn.register_hook(lambda gi, go: seen.append('node'))\ny.grad_fn.register_prehook(lambda go: seen.append('pre'))\n"
    "h = torch.autograd.graph.register_multi_grad_hook((x, z), lambda gs: seen.append(len(gs)))\nx.register_post_accumulate_grad_hook(lambda p: seen.append(float(p.grad.sum())))\nx.register_hook(lambda g: g * 3)\ny.retain_grad()\ny.sum().backward()\nh.remove()\ng = torch.autograd.graph.get_gradient_edge(x)\ndel h, g\n",
    "module hooks": "seen = []\nnet = nn.Sequential(nn.Linear(3, 3), nn.ReLU())\nnet[0].register_forward_hook(lambda m, i, o: o * 2)\nnet[1].register_full_backward_hook(lambda m, gi, go: seen.append(len(gi)))\nnet.register_forward_pre_hook(lambda m, a: (a[0] + 1,))\nnet.register_state_dict_post_hook(lambda m, s, p, l: seen.append('state'))\nnet(torch.ones(2, 3)).sum().backward()\nd = net.state_dict()\n",
    "packed holders": "rnn = nn.GRU(2, 3, batch_first=True)\nseq = nn.utils.rnn.pack_padded_sequence(torch.randn(2, 4, 2), torch.tensor([4, 2]), batch_first=True)\ny, h = rnn(seq)\nout, n = nn.utils.rnn.pad_packed_sequence(y)\nout.sum().backward()\n",
    "dlpack and arrays": "import numpy, array\nx = torch.arange(4.0)\ny = torch.from_dlpack(x)\ny += 1\nn = numpy.from_dlpack(x)\nb = torch.frombuffer(bytearray(8), dtype=torch.uint8)\nb[0] = 1\na = torch.asarray(n)\n",
    "dtensor": "import torch.distributed as dist\nfrom torch.testing._internal.distributed.fake_pg import FakeStore\nfrom torch.distributed.tensor import DTensor, Shard, Replicate, distribute_tensor, init_device_mesh\n"
    "dist.init_process_group('fake', rank=0, world_size=1, store=FakeStore())\ntry:\n    mesh = init_device_mesh('cpu', (1,))\n    x = distribute_tensor(torch.ones(4, 2, requires_grad=True), mesh, [Shard(0)])\n    y = (x @ distribute_tensor(torch.ones(2, 3), mesh, [Replicate()])).to_local()\n    y.sum().backward()\n    g = x.grad.to_local() if x.grad is not None else None\nfinally:\n    dist.destroy_process_group()\ndel mesh\n",
    "dispatch key tricks": "x = torch.ones(3, requires_grad=True)\nwith torch._C._AutoDispatchBelowAutograd():\n    y = x * 2\nwith torch.autograd.grad_mode.set_multithreading_enabled(False):\n    z = (x * 3).sum()\n    z.backward()\n",
    "set_data": "x = torch.ones(3)\ny = torch.zeros(3)\nx.data = y\nx += 1\nx.set_(torch.arange(6.0).untyped_storage(), 2, (2,), (2,))\nx.resize_(3)\nx.untyped_storage().resize_(0)\nx = torch.ones(1)\n",
}  # fmt: skip


def names_of(namespace: dict) -> list[str]:
    return [n for n, v in namespace.items() if type(v) is torch.Tensor and not n.startswith("_")]


NUMBERS = itertools.count()  # an operator's name can be taken once in a process
torch.func.jvp(torch.sin, (torch.ones(1),), (torch.ones(1),))  # what it imports warns, once a process


@pytest.mark.parametrize("name", CELLS)
def test_the_same_and_nothing_guessed(name):
    def make() -> dict:
        return {"counter": NUMBERS}

    _, traced = run_both(HEAD + CELLS[name], make)
    assert traced.error is None, traced.error
    names = names_of(traced.namespace)
    check_answers(traced.trace, tuple(names))
    for a, b in itertools.combinations(names, 2):
        check_sharing(traced.trace, traced.namespace, a, b)
