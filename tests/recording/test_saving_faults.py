"""A disk that is full, a folder that is not there, a process killed while it saves: the old file stays whole."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from tensormagic.recording import file
from tensormagic.recording.model import Recording

CHILD = """
import sys
from tensormagic.recording import file
from tensormagic.recording.model import Recording
recording = Recording()
recording.strings.extend(f"{number:09}" for number in range(20_000))
"""


def large() -> Recording:
    recording = Recording()
    recording.strings.extend(f"{number:09}" for number in range(20_000))
    return recording


def child(code: str, *args: str) -> subprocess.Popen[str]:
    source = CHILD + textwrap.dedent(code)
    return subprocess.Popen(
        [sys.executable, "-c", source, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on the size of files")
@pytest.mark.parametrize("old", [True, False])
def test_a_disk_that_is_full(tmp_path: Path, old: bool) -> None:
    path = tmp_path / "trace.json"
    if old:
        file.save(Recording(), path)
    before = path.read_bytes() if old else None
    process = child(
        """
        import resource, signal
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
        try:
            file.save(recording, sys.argv[1])
        except OSError as error:
            print(type(error).__name__, error.filename)
        """,
        str(path),
    )
    out, err = process.communicate(timeout=120)
    assert (out, err) == (f"OSError {path}\n", "")
    assert [entry.name for entry in tmp_path.iterdir()] == (["trace.json"] if old else [])
    assert not old or path.read_bytes() == before


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_a_process_killed_while_it_saves(tmp_path: Path) -> None:
    """Killed at many moments: the file is the old one or the new one, whole."""
    path = tmp_path / "trace.json"
    file.save(Recording(), path)
    sizes = set()
    for number in range(8):
        process = child("print('ready', flush=True)\nwhile True:\n    file.save(recording, sys.argv[1])\n", str(path))
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        time.sleep(0.011 * number)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        sizes.add(len(file.load(path).strings))
    assert sizes <= {len(Recording().strings), len(large().strings)}
    assert len(large().strings) in sizes, "no save came to its end: the test killed too early to say anything"


def test_a_folder_that_is_not_there_is_said_with_the_path_that_was_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "trace.json"
    with pytest.raises(FileNotFoundError) as caught:
        file.save(Recording(), path)
    assert caught.value.filename == str(path) and ".tmp" not in str(caught.value)


def test_a_path_that_is_a_folder(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError if sys.platform != "win32" else OSError) as caught:
        file.save(Recording(), tmp_path)
    assert caught.value.filename == str(tmp_path) and "->" not in str(caught.value)
    assert [entry for entry in tmp_path.parent.iterdir() if entry.suffix == ".tmp"] == []


@pytest.mark.parametrize(
    "first", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=["full", "interrupted"]
)
def test_the_first_error_is_told_where_cleaning_up_fails_too(tmp_path: Path, monkeypatch, first: BaseException) -> None:
    def refuse(*args: object) -> None:
        raise PermissionError(1, "Operation not permitted", "beside")

    def fail(descriptor: int) -> None:
        raise first

    monkeypatch.setattr(os, "unlink", refuse)
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(type(first)) as caught:
        file.save(Recording(), tmp_path / "trace.json")
    if isinstance(first, OSError):
        assert caught.value.errno == 28 and caught.value.filename == str(tmp_path / "trace.json")
