"""Every line of a finding is one of the traced cell, also where the function at fault was defined in another cell."""

from __future__ import annotations

import pytest

from tests.notebook.shells import ran, shell_with_magic

DEFINED = """# a cell that is longer than the traced one
#
#
#
#
def doubled(t):
    u = t.exp()
    u.mul_(2)
    return u * t
def written(t):
    t.mul_(2)
@torch.no_grad()
def measured(t):
    return t * 2
"""
W = "w = torch.ones(3, requires_grad=True)\n"


@pytest.mark.parametrize(
    ("cell", "rule", "line"),
    [
        (W + "y = doubled(w * 1)\ny.sum().backward()\n", "saved-tensor-overwritten", 3),
        (W + "written(w)\n", "leaf-written-in-place", 3),
        (W + "loss = measured(w).sum()\nloss.backward()\n", "no-graph-at-backward", 3),
    ],
)
def test_lines_are_those_of_the_cell(monkeypatch, cell, rule, line):
    with shell_with_magic(monkeypatch) as shell:
        ran(shell, DEFINED)
        ran(shell, "%%tensortrace --name t\n" + cell)
        trace = shell.user_ns["t"]
    assert len(trace.recording.sources) == 2  # the function's own lines were watched
    finding = next(finding for finding in trace.findings if finding.rule == rule)
    assert finding.line == line
    assert set(finding.lines.values()) <= set(range(2, 5))
    assert trace.explain("w").line in (-1, *range(2, 5))
