"""The sharing matrix of 2,000 names over 50 storages, against numpy.shares_memory for every pair."""

from __future__ import annotations

import time

import numpy as np
import torch

import tensormagic
from tensormagic.analysis.sharing import Sharing

_NAMES, _STORAGES, _LENGTH = 2_000, 50, 64
_APART = (Sharing.SAME_STORAGE, Sharing.SEPARATE)  # no byte in common


def _views() -> dict[str, torch.Tensor]:
    """Slices of random starts, ends and strides, the same in every run."""
    random = np.random.default_rng(0)
    bases = [torch.zeros(_LENGTH) for _ in range(_STORAGES)]
    views = {}
    for number in range(_NAMES):
        start, end = sorted(int(place) for place in random.integers(0, _LENGTH + 1, 2))
        views[f"v{number}"] = bases[number % _STORAGES][start : end + 1 : int(random.integers(1, 4))]
    return views


def report() -> None:
    views = _views()
    trace = tensormagic.run("pass", {"torch": torch, **views}, max_names=3 * _NAMES)
    names = list(views)
    begin = time.perf_counter()
    found, matrix = trace.sharing_matrix(names)
    ours = time.perf_counter() - begin
    arrays = [views[name].numpy() for name in found]
    shared = np.zeros((len(arrays), len(arrays)), dtype=bool)
    begin = time.perf_counter()
    for i, one in enumerate(arrays):
        for j in range(i, len(arrays)):
            shared[i, j] = shared[j, i] = np.shares_memory(one, arrays[j])
    theirs = time.perf_counter() - begin
    said = np.array([[sharing not in _APART for sharing in row] for row in matrix])
    np.fill_diagonal(said, shared.diagonal())  # a name and itself are one object; two empty views of it share no byte
    wrong = int((said != shared).sum())
    print(
        f"sharing matrix, {len(found)} names: {ours:.2f} s (aim 1 s); numpy.shares_memory on all pairs {theirs:.2f} s;"
        f" pairs that differ: {wrong}"
    )
    if wrong:
        raise SystemExit("the sharing matrix and numpy.shares_memory do not agree")
