"""Cells with `import torch` as their first line, and what one rule says of them."""

from __future__ import annotations

import tensormagic
from tensormagic.analysis.findings import Finding


def told(rule: str, cell: str) -> list[Finding]:
    """What a rule finds in a cell, whose own lines count from 2."""
    return [finding for finding in tensormagic.run("import torch\n" + cell).findings if finding.rule == rule]


def one(rule: str, cell: str) -> Finding:
    """The only thing that a rule finds in a cell."""
    findings = told(rule, cell)
    assert len(findings) == 1, findings
    return findings[0]
