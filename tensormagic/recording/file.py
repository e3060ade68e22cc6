"""Save and load a Recording: JSON, compressed by gzip when the file name ends in `.gz`.

The format is open: strict JSON (no NaN literals), each table with the names of its fields beside its numbers.

    {"format": "tensormagic-recording", "version": 1,
     "tables": {"steps": {"fields": ["frame", "line", ...], "rows": [0, 1, ...]}, ...},   rows one after the other
     "strings": [...], "geometries": [{"shape": [2, 3], "stride": [3, 1], ...}, ...],
     "blobs": [{"shape": [2], "dtype": "float32", "data": base64 of little-endian bytes or null, ...}, ...],
     "elements": [[0, 1], ...], "sources": {"cell": "..."}, "cell": "cell",
     "error": null or {...}, "notices": [...], "about": {...}}

A float that JSON has no word for is {"$float": "nan"}, "inf" or "-inf"; a key of a dict that begins with `$` gets
another `$` in front. Tuples become lists. A file may come from anywhere: it is read with a bound on its size, nothing in it is
run, and every index is checked before anyone follows it.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import io
import json
import math
import os
import secrets
import zlib
from dataclasses import fields
from typing import Any

from tensormagic.recording import reader
from tensormagic.recording.model import TABLES, Blob, Recording
from tensormagic.recording.reader import FORMAT, VERSION, RecordingFileError

__all__ = ["RecordingFileError", "from_json_text", "load", "save", "to_json_text", "write_atomically"]

LIMIT_BYTES = 256 * 2**20
"""Default bound on the text of a file after decompression."""


def save(recording: Recording, path: str | os.PathLike[str]) -> None:
    """Write a recording to `path`, compressed if the name ends in `.gz`.

    An old file of that name stays whole until the new one is complete on the disk.

    Args:
        recording: what to write; `about` and the facts of notices hold plain values (None, bool, int, float, str,
            list, dict with str keys).
        path: the file.

    Raises:
        TypeError: `about` or a notice holds something else; says where.
        OSError: the file cannot be written.
    """
    data = to_json_text(recording).encode("ascii")
    if os.fspath(path).endswith(".gz"):
        data = gzip.compress(data, mtime=0)  # no time stamp: equal recordings give equal files
    write_atomically(path, data)


def load(path: str | os.PathLike[str], limit_bytes: int = LIMIT_BYTES) -> Recording:
    """Read a recording that `save` wrote. Compression is told from the content, not from the name.

    Args:
        path: the file.
        limit_bytes: the most text that is read, in bytes after decompression. Building the recording takes up to
            about twenty times as much memory.

    Raises:
        RecordingFileError: the file is damaged, cut off, too large or no recording; says what and where.
        OSError: there is no such file, or it cannot be read.
    """
    name = os.path.basename(os.fspath(path))
    with open(path, "rb") as file:
        data = file.read(limit_bytes + 1)
        packed = data[:2] == b"\x1f\x8b"
    if packed and len(data) <= limit_bytes:
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as unpacked:
                data = unpacked.read(limit_bytes + 1)
        except (OSError, EOFError, zlib.error) as error:  # BadGzipFile is an OSError; no disk is read here
            raise RecordingFileError(f"{name}: the compressed data is damaged or cut off ({error})") from error
    if len(data) > limit_bytes:
        raise RecordingFileError(
            f"{name}: larger than {limit_bytes} bytes; pass a larger limit_bytes if the file is to be trusted"
        )
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RecordingFileError(f"{name}: not a text file (byte {error.start} is not UTF-8)") from error
    return from_json_text(text, name)


def to_json_text(recording: Recording) -> str:
    """The recording as JSON text, ASCII only, one part a line.

    Raises:
        TypeError: `about` or a notice holds a value that JSON has no form for; says where.
    """
    parts: dict[str, Any] = {"format": FORMAT, "version": VERSION}
    body = {
        "strings": recording.strings,
        "geometries": [shape._asdict() for shape in recording.geometries],
        "blobs": [_blob(blob) for blob in recording.blobs],
        "elements": recording.elements,
        "sources": recording.sources,
        "cell": recording.cell,
        "error": None if recording.error is None else {f.name: getattr(recording.error, f.name) for f in fields(recording.error)},
        "notices": [
            {"code": notice.code, "facts": _plain(notice.facts, f"notices[{i}].facts"), "step": notice.step}
            for i, notice in enumerate(recording.notices)
        ],
        "about": _plain(recording.about, "about"),
    }  # fmt: skip
    tables = ",\n".join(
        f"{_json(name)}: {_json({'fields': list(row._fields), 'rows': getattr(recording, name).flat.tolist()})}"  # type: ignore[attr-defined]
        for name, row in TABLES.items()
    )
    lines = [f"{_json(key)}: {_json(value)}" for key, value in parts.items()]
    lines.append(f'"tables": {{\n{tables}}}')
    lines.extend(f"{_json(key)}: {_json(value)}" for key, value in body.items())
    return "{" + ",\n".join(lines) + "}\n"


def from_json_text(text: str, name: str = "the recording") -> Recording:
    """Read a recording from JSON text.

    Args:
        text: what `to_json_text` gave.
        name: what errors call it, such as the file's name.

    Raises:
        RecordingFileError: the text is no valid recording; says what and where.
    """
    try:
        document = json.loads(text, parse_constant=_no_constant)
    except RecursionError:  # the parser's own bound; the error it would chain is a thousand frames long
        raise RecordingFileError(f"{name}: nested too deeply") from None
    except json.JSONDecodeError as error:
        if not text.strip():
            raise RecordingFileError(f"{name}: empty") from None
        ended = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated")
        whole = "cut off" if ended else "not JSON"
        raise RecordingFileError(f"{name}: {whole} at line {error.lineno} column {error.colno}: {error.msg}") from error
    except ValueError as error:  # a NaN literal, or a number with more digits than Python turns into an int
        raise RecordingFileError(f"{name}: {error}") from error
    return reader.read(document, name)


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Replace the file at `path` by `data` in one step: other readers see the old content or the new, never a part.

    Raises:
        OSError: the file cannot be written (its `.filename` is `path`); the old one is as it was, and nothing is left
            beside it that could be removed.
    """
    target = os.path.realpath(path)  # a link stays a link: its target is replaced
    folder, name = os.path.split(target)
    beside = os.path.join(folder, f".{name[:100]}.{secrets.token_hex(6)}.tmp")
    try:
        _write(beside, target, data)
    except BaseException as error:
        _remove(beside)
        if isinstance(error, OSError):  # the user knows the path that was asked for, not the one beside it
            error.filename = os.fspath(path)
            del error.filename2
        raise


def _write(beside: str, target: str, data: bytes) -> None:
    with open(beside, "xb") as file:
        if os.path.exists(target):
            os.chmod(beside, os.stat(target).st_mode & 0o7777)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())  # without it, a crash after the rename can leave an empty file on some systems
    os.replace(beside, target)


def _remove(beside: str) -> None:
    """What stops the writing is what the user must hear: that the rest of it stays there too is no news."""
    with contextlib.suppress(OSError):
        os.unlink(beside)


def _json(value: Any) -> str:
    return json.dumps(value, allow_nan=False, separators=(",", ":"))


def _no_constant(word: str) -> Any:
    raise ValueError(f"not strict JSON: it holds the literal {word}")


def _blob(blob: Blob) -> dict[str, Any]:
    return {
        "shape": blob.shape,
        "dtype": blob.dtype,
        "data": None if blob.data is None else base64.b64encode(blob.data).decode("ascii"),
        "low": _plain(blob.low, "low"),
        "high": _plain(blob.high, "high"),
        "mean": _plain(blob.mean, "mean"),
        "nans": blob.nans,
        "infs": blob.infs,
    }


def _plain(value: Any, where: str) -> Any:
    """The value in JSON's types, floats without a JSON word tagged."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return int(value)  # an IntEnum is written as its number
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"$float": str(float(value))}
    if isinstance(value, (list, tuple)):
        return [_plain(item, f"{where}[{i}]") for i, item in enumerate(value)]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {("$" + k if k.startswith("$") else k): _plain(v, f"{where}[{k!r}]") for k, v in value.items()}
    raise TypeError(
        f"{where} is a {type(value).__name__}; only None, bool, int, float, str, list and dict can be saved"
    )
