"""`ipython` in a terminal: cells are typed line by line and get the summary as text; and what the README shows works."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.notebook.shells import shell_with_magic

README = Path(__file__).parents[2] / "README.md"


@pytest.fixture(scope="module")
def terminal():
    pexpect = pytest.importorskip("pexpect", reason="no terminal on this system")
    if not hasattr(pexpect, "spawn"):
        pytest.skip("no terminal on this system")
    command = ["-m", "IPython", "--simple-prompt", "--no-banner", "--colors=NoColor", "--HistoryManager.enabled=False"]
    child = pexpect.spawn(sys.executable, command, encoding="utf-8", timeout=30, dimensions=(60, 200))

    def typed(*lines):
        for number, line in enumerate(lines):
            if number:
                child.expect(r"\.\.\.: ")
            child.sendline(line)
        child.expect(r"In \[\d+\]: ")
        return child.before

    child.expect(r"In \[\d+\]: ")
    typed("%load_ext tensormagic")
    typed("import torch")
    yield typed
    child.close(force=True)


def test_a_cell_that_is_typed_line_by_line(terminal):
    told = terminal("%%tensortrace", "w = torch.ones(2)", "v = w.detach()", "v += 1", "v.tolist()", "", "")
    assert "[2.0, 2.0]" in told
    assert "4 lines · 2 tensors · 1 storages" in told or "4 lines · 2 tensors · 1 storage (8 B)" in told
    assert "v: w.detach(), line 3" in told and "Sharing matrix" in told


def test_a_statement_that_raises(terminal):
    told = terminal("%tensortrace torch.ones(2) @ torch.ones(3)")
    assert "RuntimeError" in told and "This line raised RuntimeError" in told and "tensormagic" not in told


def test_a_cell_is_whole_when_that_of_any_cell_magic_is(monkeypatch):
    with shell_with_magic(monkeypatch) as shell:
        for body in ("", "\na = 1", "\na = 1\n", "\nif a:\n    b\n", "\n\n"):
            whole = [shell.check_complete(f"%%{name}{body}")[0] for name in ("time", "tensortrace")]
            assert whole[0] == whole[1], body


def test_the_example_for_a_courses_own_tests(tmp_path, pytester_command):
    """The README's block runs under pytest as it stands there."""
    (block,) = [
        block for block in re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.S) if "def test_" in block
    ]
    assert "is Sharing.SAME_BYTES" in block
    (tmp_path / "test_course.py").write_text(block, encoding="utf-8")
    done = pytester_command(tmp_path)
    assert done.returncode == 0, done.stdout[-3000:]
    assert f"{block.count('def test_')} passed" in done.stdout


@pytest.fixture
def pytester_command():
    import subprocess

    def run(folder):
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-c",
            "/dev/null",
            "--rootdir",
            str(folder),
        ]
        return subprocess.run([*command, str(folder)], capture_output=True, text=True, check=False, cwd=folder)

    return run
