"""The tests of the line watchers, on every other interpreter that can be found.

The two backends stand on details that change from one Python to the next: where a frame stands while it yields, which
events there are. These tests need only pytest, no torch; so each other Python gets an environment of its own with
pytest in it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

VERSIONS = ["3.10", "3.11", "3.12", "3.13"]
ROOT = Path(__file__).parents[2]


def answers(command):
    """What a command prints, or None when it cannot be run."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def candidates(version):
    """Places where a Python of this version may be: on PATH, with pyenv, with uv."""
    yield shutil.which(f"python{version}")
    root = os.environ.get("PYENV_ROOT") or (shutil.which("pyenv") and answers(["pyenv", "root"]))
    if root:
        for folder in sorted(Path(root, "versions").glob(f"{version}.*"), reverse=True):
            yield str(folder / "bin" / "python")
    if shutil.which("uv"):
        yield answers(["uv", "python", "find", "--no-python-downloads", version])


def interpreter(version):
    """A Python that runs and is of this version; a pyenv shim on PATH, for one, may not run."""
    ask = "import sys; print('%d.%d' % sys.version_info[:2])"
    return next((path for path in candidates(version) if path and answers([path, "-c", ask]) == version), None)


@pytest.mark.parametrize("version", VERSIONS)
def test_on_another_python(version, tmp_path):
    if version == f"{sys.version_info[0]}.{sys.version_info[1]}":
        pytest.skip("this is the interpreter that runs the tests already")
    base = interpreter(version)
    if base is None:
        pytest.skip(f"no Python {version} on PATH, with pyenv or with uv")
    made = subprocess.run([base, "-m", "venv", tmp_path / "env"], capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"Python {version} cannot make an environment: {made.stderr.strip()[-200:]}")
    python = str(tmp_path / "env" / ("Scripts" if os.name == "nt" else "bin") / "python")
    got = subprocess.run([python, "-m", "pip", "install", "-q", "pytest"], capture_output=True, text=True, check=False)
    if got.returncode:
        pytest.skip(f"pytest cannot be installed for Python {version}: {got.stderr.strip()[-200:]}")

    here = Path(__file__)
    files = [
        path
        for path in sorted([*here.parent.glob("test_lines*.py"), here.parent / "test_statements.py"])
        if path != here
    ]
    options = ["-q", "-p", "no:cacheprovider", f"--rootdir={ROOT}", "--noconftest", "-o", "addopts="]
    done = subprocess.run(
        [python, "-m", "pytest", *options, *map(str, files)],
        cwd=ROOT,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert " passed" in done.stdout
