"""What is wrong, or about to be: one rule, one file. A module here that has a `RULE` is a rule; see CONTRIBUTING."""

from __future__ import annotations

import functools
import importlib
import pkgutil

from tensormagic.analysis.findings.base import ERROR, NOTE, WARNING, Facts, Finding, Rule
from tensormagic.analysis.index import Index

__all__ = ["ERROR", "NOTE", "WARNING", "Facts", "Finding", "Rule", "find", "rules"]
_ORDER = {ERROR: 0, WARNING: 1, NOTE: 2}


@functools.cache
def rules() -> tuple[Rule, ...]:
    """Every rule, in the order of their ids."""
    found = []
    for module in pkgutil.iter_modules(__path__):
        rule = getattr(importlib.import_module(f"{__name__}.{module.name}"), "RULE", None)
        if isinstance(rule, Rule):
            found.append(rule)
    return tuple(sorted(found, key=lambda rule: rule.id))


def find(index: Index) -> list[Finding]:
    """What every rule finds in a recording: errors first, then warnings, then notes, each in order of line."""
    facts = Facts(index)
    found: list[Finding] = []
    for rule in rules():
        for finding in rule.find(facts):
            if finding not in found:
                found.append(finding)
    return sorted(found, key=lambda finding: (_ORDER[finding.severity], finding.line))
