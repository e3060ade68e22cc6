"""Random programs run the same with and without the trace, and what the trace tells is what the tensors are.

In the ordinary run 100 programs; with TENSORMAGIC_ALL=1 some thousands.
"""

from __future__ import annotations

import itertools
import os
import warnings
from typing import Any

import numpy
import pytest
import torch
from hypothesis import HealthCheck, given, settings

import tensormagic
from tensormagic.analysis.sharing import Sharing
from tests.program.compare import leaf, plain, run_both
from tests.program.programs import HEAD, NAMES, programs

MANY = 3000 if os.environ.get("TENSORMAGIC_ALL") == "1" else 100


def held(namespace: dict[str, Any]) -> dict[str, Any]:
    """Each tensor and array of a program under the name that a user would write."""
    found = {name: namespace[name] for name in (*NAMES, "m", "v") if name in namespace}
    found |= {f"box[{i}]": item for i, item in enumerate(namespace["box"])}
    found |= {f"book[{key!r}]": item for key, item in namespace["book"].items()}
    found |= {f"thing.{key}": item for key, item in vars(namespace["thing"]).items()}
    return {name: item for name, item in found.items() if isinstance(item, (torch.Tensor, numpy.ndarray))}


def addresses(value: Any) -> frozenset[int]:
    """Every byte of a tensor or an array."""
    if isinstance(value, torch.Tensor):
        start, size = value.data_ptr(), value.element_size()
        steps = [step * size for step in value.stride()]
    else:
        start, size, steps = value.__array_interface__["data"][0], value.itemsize, value.strides
    firsts = {start} if 0 not in value.shape else set()
    for count, step in zip(value.shape, steps, strict=True):
        firsts = {first + i * step for first in firsts for i in range(count)}
    return frozenset(first + i for first in firsts for i in range(size))


def on_one_storage(x: torch.Tensor, y: torch.Tensor) -> bool:
    """One storage, or two whose addresses overlap (two of one array)."""
    one, two = x.untyped_storage(), y.untyped_storage()
    if one._cdata == two._cdata:
        return True
    low, other = one.data_ptr(), two.data_ptr()
    return low < other + two.nbytes() and other < low + one.nbytes()


def relations(x: Any, y: Any) -> set[Sharing]:
    """What may be told of two values: one answer, two where an array's storage is not the memory's whole."""
    if x is y:
        return {Sharing.SAME_OBJECT}
    one, two = addresses(x), addresses(y)
    if one & two:
        if one == two:
            return {Sharing.SAME_BYTES}
        return {Sharing.CONTAINS if one > two else Sharing.INSIDE if one < two else Sharing.OVERLAP}
    if not (isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor)):
        return {Sharing.SAME_STORAGE, Sharing.SEPARATE}
    return {Sharing.SAME_STORAGE if on_one_storage(x, y) else Sharing.SEPARATE}


def told(value: Any) -> Any:
    """What one run left in a tensor or array, versions and gradients of inner tensors with it."""
    if not isinstance(value, torch.Tensor):
        return plain(value)
    grad = plain(value.grad) if leaf(value) is True or value.retains_grad else None
    return plain(value), value._version, value.retains_grad, grad


def check(source: str) -> None:
    """The program does the same under the trace, and the trace tells what is so."""
    bare, traced = run_both(source)
    wanted, given_, trace = held(bare.namespace), held(traced.namespace), traced.trace
    assert wanted.keys() == given_.keys()
    assert [name for name in wanted if told(wanted[name]) != told(given_[name])] == []
    for name, value in given_.items():
        assert trace.explain(name).text
        if isinstance(value, torch.Tensor):
            check_view(trace[name], value)
    for a, b in itertools.product(given_, repeat=2):
        x, y = given_[a], given_[b]
        if isinstance(x, torch.Tensor) or isinstance(y, torch.Tensor):
            assert trace.sharing(a, b) in relations(x, y), (a, b, trace.sharing(a, b), relations(x, y))
    assert trace.findings is not None
    assert trace.summary()
    assert trace.panel()._repr_mimebundle_() is not None


def check_view(view: Any, value: torch.Tensor) -> None:
    """The trace's tensor is the real one."""
    assert (view.shape, view.stride) == (tuple(value.shape), value.stride())
    assert (view.requires_grad, view.is_leaf) == (value.requires_grad, leaf(value))
    assert view.version == value._version
    if view.values is not None:
        assert numpy.array_equal(view.values, value.tolist(), equal_nan=True) or not value.numel()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that an inner tensor has no .grad
        grad = value.grad
    assert (view.grad is None) == (grad is None)
    if grad is not None and view.grad.values is not None:
        assert numpy.array_equal(view.grad.values, grad.tolist(), equal_nan=True) or not grad.numel()


@settings(
    max_examples=MANY,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(programs())
def test_a_random_program_runs_the_same_and_is_told_as_it_is(source):
    check(source)


@pytest.mark.parametrize("source", ["e = a\n", "a.add_(1)\nd.sum().backward()\n"])
def test_explicit_programs(source):
    check(HEAD + source)


def test_a_view_requires_grad_once_its_base_does():
    check_program = HEAD + "e = torch.zeros(3, 4)\nf = e[1:]\ne.requires_grad_()\n"
    namespace = {"__name__": "__main__"}
    trace = tensormagic.run(check_program, namespace)
    assert namespace["f"].requires_grad
    assert trace["f"].requires_grad
