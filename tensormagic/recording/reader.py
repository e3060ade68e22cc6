"""From parsed JSON to a checked Recording. The format is told in `file.py`, the contract of the numbers in `schema.py`.

Everything is taken by type and bound before it is used: what comes back is a Recording that analysis can walk without
a check of its own, or a RecordingFileError.
"""

from __future__ import annotations

import base64
import binascii
import math
from array import array
from collections.abc import Callable
from typing import Any, TypeVar

from tensormagic.recording import schema, values
from tensormagic.recording.model import TABLES, Blob, ErrorInfo, Geometry, Notice, Recording
from tensormagic.recording.table import Table

FORMAT = "tensormagic-recording"
VERSION = 1
DEEPEST = 30  # levels of `about` and of a notice's facts
MOST_DIMENSIONS = 1000

T = TypeVar("T")


class RecordingFileError(ValueError):
    """A file that is no valid recording. The message says what is wrong and where."""


class _Bad(Exception):
    """What is wrong, without the file's name."""


def read(document: Any, name: str) -> Recording:
    """Build a Recording from parsed JSON.

    Args:
        document: what the JSON parser gave.
        name: what errors call the file.

    Raises:
        RecordingFileError: some part is missing, of a wrong type, or points outside its table.
    """
    try:
        recording = _recording(document)
        problem = next(schema.problems(recording), None)
    except _Bad as bad:
        raise RecordingFileError(f"{name}: {bad}") from None
    if problem is None:
        problem = _side_lists(recording)
    if problem is not None:
        raise RecordingFileError(f"{name}: {problem}")
    return recording


def _recording(document: Any) -> Recording:
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise _Bad(f'not a recording of tensormagic: no "format": "{FORMAT}"')
    version = document.get("version")
    if type(version) is not int or version < 1:
        raise _Bad(f"version is {_short(version)}, not a whole number from 1 on")
    if version > VERSION:
        raise _Bad(f"version {version} of the format is newer than this tensormagic, which reads up to {VERSION}")
    tables = _part(document, "tables", dict)
    recording = Recording()
    for key, row in TABLES.items():
        setattr(recording, key, _table(tables, key, row))
    recording.strings = _list(document, "strings", _text)
    recording.geometries = _list(document, "geometries", _geometry)
    recording.blobs = _list(document, "blobs", _blob)
    recording.elements = _list(document, "elements", _whole_numbers)
    sources = _part(document, "sources", dict)
    recording.sources = {key: _text(text, f"sources[{_short(key)}]") for key, text in sources.items()}
    recording.cell = _text(document.get("cell"), "cell")
    recording.error = None if document.get("error") is None else _error(document["error"], "error")
    recording.notices = _list(document, "notices", _notice)
    recording.about = _plain(_part(document, "about", dict), "about", DEEPEST)
    return recording


def _table(tables: dict[str, Any], name: str, row: Any) -> Table[Any]:
    where = f"table '{name}'"
    if name not in tables:
        raise _Bad(f"{where} is missing")
    content = tables[name]
    if not isinstance(content, dict):
        raise _Bad(f"{where} is {_short(content)}, not an object with 'fields' and 'rows'")
    names = list(row._fields)
    if content.get("fields") != names:
        raise _Bad(f"{where}: its fields are {_short(content.get('fields'))}, expected {', '.join(names)}")
    rows = content.get("rows")
    if not isinstance(rows, list):
        raise _Bad(f"{where}: its rows are {_short(rows)}, not a list of whole numbers")
    if len(rows) % len(names):
        raise _Bad(f"{where}: {len(rows)} numbers do not make rows of {len(names)}")
    try:
        flat = array("q", rows)
    except (TypeError, OverflowError):
        flat = None
    # array() takes True for 1; a set of the types is the quick way to see one among a million numbers.
    if flat is None or set(map(type, rows)) - {int}:
        position = next(i for i, value in enumerate(rows) if not _is_whole(value))
        field = names[position % len(names)]
        raise _Bad(
            f"{where} row {position // len(names)}: field '{field}' is {_short(rows[position])}, "
            "not a whole number of 64 bits"
        )
    return Table(row, flat)


def _side_lists(recording: Recording) -> str | None:
    """What the tables' rules do not cover: steps that are named outside the tables, and the cell's own source."""
    steps = len(recording.steps)
    if recording.cell not in recording.sources and (recording.cell or steps):
        return f"cell is {_short(recording.cell)}, but sources have no such name"
    if recording.error is not None and not -1 <= recording.error.step < steps:
        return f"error: step is {recording.error.step}, but there are {steps} steps"
    for i, notice in enumerate(recording.notices):
        if not -1 <= notice.step < steps:
            return f"notices[{i}]: step is {notice.step}, but there are {steps} steps"
    return None


def _geometry(value: Any, where: str) -> Geometry:
    shape, stride = _shape(value, where), tuple(_whole_numbers(_member(value, "stride", where), f"{where}.stride"))
    if stride and len(stride) != len(shape):
        raise _Bad(f"{where}: {len(stride)} strides for {len(shape)} dimensions")
    return Geometry(
        shape,
        stride,
        _text(_member(value, "dtype", where), f"{where}.dtype"),
        _count(_member(value, "itemsize", where), f"{where}.itemsize"),
        _text(_member(value, "device", where), f"{where}.device"),
        _text(_member(value, "layout", where), f"{where}.layout"),
    )


def _blob(value: Any, where: str) -> Blob:
    shape = _shape(value, where)
    dtype = _text(_member(value, "dtype", where), f"{where}.dtype")
    coded = _member(value, "data", where)
    data = None
    if coded is not None:
        try:
            data = base64.b64decode(_text(coded, f"{where}.data"), validate=True)
        except (binascii.Error, ValueError) as error:  # ValueError: a character outside ASCII
            raise _Bad(f"{where}.data is not base64: {error}") from error
        size = values.itemsize(dtype)
        if size is not None and len(data) != math.prod(shape) * size:
            raise _Bad(
                f"{where}: {len(data)} bytes for shape {_short(list(shape))} of {dtype}, which takes {math.prod(shape) * size}"
            )
    low, high, mean = (_number(_member(value, key, where), f"{where}.{key}") for key in ("low", "high", "mean"))
    nans, infs = (_count(_member(value, key, where), f"{where}.{key}") for key in ("nans", "infs"))
    return Blob(shape, dtype, data, low, high, mean, nans, infs)


def _error(value: Any, where: str) -> ErrorInfo:
    frames = []
    for i, frame in enumerate(_part(value, "frames", list, where)):
        at = f"{where}.frames[{i}]"
        if not isinstance(frame, list) or len(frame) != 3:
            raise _Bad(f"{at} is {_short(frame)}, not [file, function, line]")
        frames.append((_text(frame[0], at), _text(frame[1], at), _whole(frame[2], at)))
    kind, message = (_text(_member(value, key, where), f"{where}.{key}") for key in ("type", "message"))
    line, step = (_whole(_member(value, key, where), f"{where}.{key}") for key in ("line", "step"))
    return ErrorInfo(kind, message, line, step, frames)


def _notice(value: Any, where: str) -> Notice:
    code = _text(_member(value, "code", where), f"{where}.code")
    facts = _plain(_part(value, "facts", dict, where), f"{where}.facts", DEEPEST)
    return Notice(code, facts, _whole(_member(value, "step", where), f"{where}.step"))


def _plain(value: Any, where: str, depth: int) -> Any:
    """JSON's types back to Python's: tagged floats, and keys without their extra `$`."""
    if depth < 0:
        raise _Bad(f"{where[:60]}...: nested deeper than {DEEPEST} levels")
    if isinstance(value, list):
        return [_plain(item, f"{where}[{i}]", depth - 1) for i, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    if "$float" in value:
        return _number(value, where)
    single = [key for key in value if key.startswith("$") and not key.startswith("$$")]
    if single:
        raise _Bad(f"{where}: unknown tag {_short(single[0])}")
    return {k[1:] if k[:1] == "$" else k: _plain(v, f"{where}[{_short(k)}]", depth - 1) for k, v in value.items()}


def _part(parent: Any, key: str, kind: type[T], where: str = "") -> T:
    value = _member(parent, key, where)
    if not isinstance(value, kind):
        raise _Bad(
            f"{where}{'.' if where else ''}{key} is {_short(value)}, not {'a list' if kind is list else 'an object'}"
        )
    return value


def _list(document: dict[str, Any], key: str, item: Callable[[Any, str], T]) -> list[T]:
    return [item(value, f"{key}[{i}]") for i, value in enumerate(_part(document, key, list))]


def _member(value: Any, key: str, where: str) -> Any:
    if not isinstance(value, dict):
        raise _Bad(f"{where} is {_short(value)}, not an object")
    if key not in value:
        raise _Bad(f"{where}{': ' if where else ''}'{key}' is missing")
    return value[key]


def _shape(value: Any, where: str) -> tuple[int, ...]:
    shape = _whole_numbers(_member(value, "shape", where), f"{where}.shape")
    if len(shape) > MOST_DIMENSIONS or any(n < 0 for n in shape):
        raise _Bad(f"{where}.shape is {_short(shape)}: a size is below 0, or there are more than {MOST_DIMENSIONS}")
    return tuple(shape)


def _whole_numbers(value: Any, where: str) -> list[int]:
    if not isinstance(value, list):
        raise _Bad(f"{where} is {_short(value)}, not a list of whole numbers")
    return [_whole(item, f"{where}[{i}]") for i, item in enumerate(value)]


def _is_whole(value: Any) -> bool:
    return type(value) is int and -(2**63) <= value < 2**63


def _whole(value: Any, where: str) -> int:
    if not _is_whole(value):
        raise _Bad(f"{where} is {_short(value)}, not a whole number of 64 bits")
    return int(value)


def _count(value: Any, where: str) -> int:
    if _whole(value, where) < 0:
        raise _Bad(f"{where} is {value}, below 0")
    return int(value)


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise _Bad(f"{where} is {_short(value)}, not a text")
    return value


def _number(value: Any, where: str) -> float | None:
    """A float, None, or a tagged float."""
    if isinstance(value, dict) and list(value) == ["$float"] and value["$float"] in ("nan", "inf", "-inf"):
        return float(value["$float"])
    if value is None:
        return None
    huge = type(value) is int and value.bit_length() > 1000  # float() would raise
    if type(value) not in (int, float) or huge or not math.isfinite(value):  # 1e999 parses as infinity
        raise _Bad(f"{where} is {_short(value)}, not a number")
    return float(value)


def _short(value: Any) -> str:
    """A value in an error message, cut to one line. Only outer parts are written: a nested value may be huge."""
    if isinstance(value, dict):
        return f"an object of {len(value)}"
    if isinstance(value, list) and len(value) > 8:
        return f"a list of {len(value)}"
    if isinstance(value, list):
        return "[" + ", ".join(_short(item) if not isinstance(item, list) else "[...]" for item in value) + "]"
    if isinstance(value, int) and value.bit_length() > 200:
        return "a number of more than 60 digits"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
