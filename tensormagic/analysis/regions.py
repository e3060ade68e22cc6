"""Sets of bytes of strided tensors, and how two of them lie to each other. Pure geometry: no recording, no torch.

A tensor's bytes are `start + sum(i_d * stride_d) + 0 .. itemsize-1`. The set does not depend on the order of the
dimensions, on their direction, or on how often an element is reached, so a region is brought to a canonical form:
dimensions of one element or of stride 0 go, negative ones are turned round, the itemsize is a dimension of its own
(stride 1), the rest is sorted by stride and merged where one dimension continues another. Then, cheapest first:

1. equal forms are equal sets; one unbroken run of bytes against another is arithmetic on two ends;
2. two regions that repeat with the same outermost dimension, each inside its own period, are as their first periods;
3. otherwise both are written out as unbroken runs, up to MOST_RUNS, and the common bytes are counted exactly;
4. past that bound numpy's exact solver (`numpy.shares_memory`, a bounded Diophantine search) decides overlap alone;
5. past its bound too, the answer is "may overlap" and says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, cast

import numpy as np

MOST_RUNS = 1 << 20
"""Unbroken runs of one region that are written out (8 MB of addresses)."""

MOST_WORK = 100_000
"""`max_work` of numpy's solver: the candidates it looks at, well under a tenth of a second."""

_TooHardError: type[Exception] = getattr(np, "exceptions", np).TooHardError  # numpy before 1.25 has it at the top

Dims = tuple[tuple[int, int], ...]  # (stride, count), smallest stride first


class Region(NamedTuple):
    """The bytes that a tensor's elements take.

    `storage` names the piece of memory that `offset_bytes` counts from; two regions are compared within one piece.
    """

    storage: int
    offset_bytes: int
    shape: tuple[int, ...]
    stride_bytes: tuple[int, ...]
    itemsize: int

    def form(self) -> Form | None:
        """The canonical form, or None for a region without a byte."""
        return canonical(self.offset_bytes, self.shape, self.stride_bytes, self.itemsize)


@dataclass(frozen=True)
class Form:
    """A region's bytes: `start` plus every sum of multiples of the dimensions. dims[0] is a run of bytes (stride 1)."""

    start: int
    dims: Dims

    @property
    def end(self) -> int:
        """One past the last byte."""
        return self.start + _reach(self.dims) + 1

    @property
    def solid(self) -> bool:
        """One unbroken run of bytes."""
        return len(self.dims) == 1

    def count(self) -> int | None:
        """How many bytes there are, or None where telling takes more than MOST_RUNS runs."""
        if _nested(self.dims):
            return math.prod(n for _, n in self.dims)
        runs = _runs(self.dims)
        return None if runs is None else int((runs[1] - runs[0]).sum())


class Common(NamedTuple):
    """What two regions have in common. What could not be told within the bounds is None."""

    common: int | None  # bytes in both
    a: int | None  # bytes of the first
    b: int | None  # bytes of the second
    overlap: bool | None  # is there a byte in both?
    a_holds_b: bool | None  # is every byte of the second one of the first?
    b_holds_a: bool | None


def _counted(common: int, a: int, b: int) -> Common:
    return Common(common, a, b, common > 0, common == b, common == a)


@lru_cache(maxsize=4096)
def canonical(offset: int, shape: tuple[int, ...], stride: tuple[int, ...], itemsize: int) -> Form | None:
    """The canonical form of the bytes of a strided tensor, or None where it has no byte. All in bytes."""
    if 0 in shape or itemsize == 0:
        return None
    dims = [(1, itemsize)]
    for step, n in zip(stride, shape, strict=True):
        if n == 1 or step == 0:
            continue
        if step < 0:
            offset += step * (n - 1)
        dims.append((abs(step), n))
    dims.sort()
    merged = True
    while merged:
        merged = False
        for i in range(len(dims) - 1):
            (s, n), (t, m) = dims[i], dims[i + 1]
            # Multiples of s up to (n-1)s, moved by multiples of t: without a gap if t is at most one s past the end.
            if t % s == 0 and t <= s * n:
                dims[i : i + 2] = [(s, n + (m - 1) * (t // s))]
                merged = True
                break
    return Form(offset, tuple(dims))


def compare(a: Form, b: Form) -> Common:
    """How the bytes of two regions of one piece of memory lie to each other; see the module for the ways taken."""
    if a.end <= b.start or b.end <= a.start:
        return Common(0, a.count(), b.count(), False, False, False)
    return _compare_from(a.dims, b.dims, b.start - a.start)


@lru_cache(maxsize=65536)
def _compare_from(a: Dims, b: Dims, shift: int) -> Common:
    """`compare` of a at 0 and b at `shift`: the answer does not depend on where the pair lies."""
    if a == b and shift == 0:
        count = Form(0, a).count()
        return Common(count, count, count, True, True, True)
    if len(a) == len(b) == 1:
        low, high = max(0, shift), min(a[0][1], shift + b[0][1])
        return _counted(max(0, high - low), a[0][1], b[0][1])
    if len(a) > 1 and len(b) > 1 and a[-1] == b[-1]:
        period, times = a[-1]
        inner_a, inner_b = a[:-1], b[:-1]
        low, high = min(0, shift), max(_reach(inner_a), shift + _reach(inner_b))
        if high - low < period:
            one = _compare_from(inner_a, inner_b, shift)
            common, count_a, count_b = (None if n is None else n * times for n in (one.common, one.a, one.b))
            return one._replace(common=common, a=count_a, b=count_b)
    if len(a) == 1 and shift >= 0 and shift + _reach(b) <= _reach(a):
        return _covered(Form(0, a), Form(shift, b))
    if len(b) == 1 and shift <= 0 and _reach(a) <= shift + _reach(b):
        other = _covered(Form(shift, b), Form(0, a))
        return Common(other.common, other.b, other.a, True, other.b_holds_a, other.a_holds_b)
    runs_a, runs_b = _runs(a), _runs(b)
    if runs_a is not None and runs_b is not None:
        return _counted(_bytes_in(runs_a, runs_b[0] + shift, runs_b[1] + shift), _length(runs_a), _length(runs_b))
    return _past_the_bound(Form(0, a), Form(shift, b))


def _covered(whole: Form, part: Form) -> Common:
    """`whole` is one run and `part` lies between its ends, but is not one run itself."""
    count, length = part.count(), whole.end - whole.start
    fills = count == length if count is not None else None
    return Common(count, length, count, True, True, fills)


def _past_the_bound(a: Form, b: Form) -> Common:
    """Neither counted: the solver tells whether they meet; ends and numbers of bytes may rule out containment."""
    overlap, bytes_a, bytes_b = _solve(a, b), a.count(), b.count()
    if overlap is False:
        return Common(0, bytes_a, bytes_b, False, False, False)
    more = 0 if bytes_a is None or bytes_b is None else bytes_a - bytes_b
    a_may = a.start <= b.start and b.end <= a.end and more >= 0
    b_may = b.start <= a.start and a.end <= b.end and more <= 0
    return Common(None, bytes_a, bytes_b, overlap, None if a_may else False, None if b_may else False)


def _reach(dims: Dims) -> int:
    """From the first byte to the last."""
    return sum(s * (n - 1) for s, n in dims)


def _nested(dims: Dims) -> bool:
    """Each dimension steps past everything inside it: no byte is reached twice."""
    inside = 0
    for s, n in dims:
        if s <= inside:
            return False
        inside += s * (n - 1)
    return True


@lru_cache(maxsize=64)
def _runs(dims: Dims) -> tuple[Any, Any] | None:
    """(starts, ends) of the unbroken runs, in order and apart from each other; None past the bound."""
    outer = dims[1:]
    if math.prod(n for _, n in outer) > MOST_RUNS or _reach(dims) >= 2**62:
        return None
    starts = np.zeros(1, np.int64)
    for s, n in reversed(outer):
        starts = (starts[:, None] + np.arange(n, dtype=np.int64) * s).ravel()
    if not _nested(outer):
        starts = np.unique(starts)
    ends = starts + dims[0][1]
    gap = starts[1:] > ends[:-1]
    return starts[np.concatenate([[True], gap])], ends[np.concatenate([gap, [True]])]


def _length(runs: tuple[Any, Any]) -> int:
    return int((runs[1] - runs[0]).sum())


def _bytes_in(runs: tuple[Any, Any], starts: Any, ends: Any) -> int:
    """How many bytes of `runs` lie in the ranges start .. end: bytes below each end less bytes below each start."""
    first, last = runs
    lengths = last - first
    before = np.concatenate([[0], np.cumsum(lengths)])

    def below(address: Any) -> Any:
        run = np.searchsorted(first, address, side="right") - 1  # the run that begins at or before the address
        inside = np.where(run >= 0, np.minimum(np.maximum(address - first[run], 0), lengths[run]), 0)
        return np.where(run >= 0, before[run] + inside, 0)

    return int((below(ends) - below(starts)).sum())


def _solve(a: Form, b: Form) -> bool | None:
    """Do the regions share a byte? numpy's exact solver, bounded; None where its bound was reached."""
    base = 1 << 61  # every address stays positive; nothing is ever read there
    low, high = min(a.start, b.start), max(a.end, b.end)
    if low <= -base or high >= base or max(len(a.dims), len(b.dims)) > 32:
        return None
    try:
        return bool(np.shares_memory(_array(a, base), _array(b, base), max_work=cast("Any", MOST_WORK)))
    except _TooHardError:
        return None


class _Nowhere:
    """Describes an array at an address where there is no memory. Only its ends are compared; it is never read."""

    def __init__(self, form: Form, base: int) -> None:
        self.__array_interface__ = {
            "version": 3,
            "typestr": "|u1",
            "data": (base + form.start, True),
            "shape": tuple(n for _, n in form.dims),
            "strides": tuple(s for s, _ in form.dims),
        }


def _array(form: Form, base: int) -> Any:
    return np.asarray(_Nowhere(form, base))
