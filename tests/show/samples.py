"""Views that are drawn in the tests: the one of the lesson, and one with many steps."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.show.browser import Opened

SAMPLE = json.loads(Path(__file__).with_name("sample_view.json").read_text(encoding="utf-8"))
Open = Callable[..., Opened]


def looping(steps: int = 1000) -> dict[str, Any]:
    """A view with many steps: a loop of two lines that writes one storage, then another."""
    view = copy.deepcopy(SAMPLE)
    view["files"] = [{"name": "", "first": 1, "lines": ["for i in range(500):", "    w += 1", "    v *= 2"]}]
    view["steps"] = [
        {
            "file": 0,
            "line": 2 + k % 2,
            "mark": "write",
            "say": [[f"step {k}", ""]],
            "frame": "",
            "callers": [],
            "loop": [0, k // 2],
        }
        for k in range(steps)
    ]
    starts = [[k // 2, k] for k in range(0, steps, 2)]
    view["loops"] = [{"file": 0, "first": 2, "last": 3, "starts": starts, "total": steps // 2, "label": "for i"}]
    row = SAMPLE["storages"][0]["states"][0][1]["rows"][0]

    def state(s: int, k: int) -> dict[str, Any]:
        cells = [str(k + i) for i in range(16)]
        rows = [{**row, "name": f"w{s}"}]
        return {"head": f"v{k}", "cells": cells, "total": 16, "changed": [k % 16], "rows": rows}

    view["storages"] = [
        {
            "name": f"S{s + 1}",
            "colour": s,
            "sign": "",
            "tip": "",
            "states": [[k, state(s, k)] for k in range(s, steps, 2)],
        }
        for s in range(2)
    ]
    view["gradients"] = {"graphs": [], "runs": []}
    view["findings"], view["calls"], view["start"] = [], [], 0
    return view
