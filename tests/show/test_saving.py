"""Files that a trace is saved as, and the command line."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tensormagic

CELL = "import torch\nx = torch.ones(3, requires_grad=True)\nv = x.detach()[:2]\nv += 1\n(x * 2).sum().backward()\n"


@pytest.fixture(scope="module")
def trace():
    return tensormagic.run(CELL)


@pytest.mark.parametrize("ending, start", [
    (".html", b"<!doctype html>"), (".png", b"\x89PNG"), (".svg", b"<?xml"), (".json", b"{"), (".json.gz", b"\x1f\x8b"),
])  # fmt: skip
def test_each_ending(trace, tmp_path, ending, start):
    target = tmp_path / f"lesson{ending}"
    trace.save(target)
    assert target.read_bytes().startswith(start)


def test_another_ending_is_refused_with_the_known_ones(trace, tmp_path):
    with pytest.raises(ValueError, match=r"'\.pdf'.*\.html"):
        trace.save(tmp_path / "lesson.pdf")


def test_a_saved_trace_answers_the_same(trace, tmp_path):
    trace.save(tmp_path / "lesson.json")
    again = tensormagic.load(tmp_path / "lesson.json")
    assert again.sharing("x", "v") is trace.sharing("x", "v")
    assert again["x"].grad.values == [2.0, 2.0, 2.0]
    assert again.summary() == trace.summary()
    assert [f.message for f in again.findings] == [f.message for f in trace.findings]


def test_plots_draw_into_the_axes_given(trace):
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    assert trace.plot_gradients(ax=ax) is ax
    assert len(ax.patches) == 1
    other = trace.plot_sharing()
    assert [label.get_text() for label in other.get_xticklabels()][:2] == ["x", "v"]


def test_a_script_from_the_command_line(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import sys, torch\nx = torch.ones(2)\ny = x[:1]\nprint(sys.argv[1:])\nsys.exit(3)\n")
    done = subprocess.run(
        [sys.executable, "-m", "tensormagic", str(script), "-o", str(tmp_path / "out.html"), "--flag"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    assert "['--flag']" in done.stdout
    assert "y looks at element 0 of S1" in done.stdout
    assert (tmp_path / "out.html").read_text().startswith("<!doctype html>")
