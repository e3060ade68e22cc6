"""The file format: what goes in comes out, and whatever else comes in is refused with a sentence."""

import copy
import enum
import gzip
import json
import math
import os
import stat

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tensormagic.recording import file, schema
from tensormagic.recording.file import RecordingFileError, from_json_text, load, save, to_json_text
from tensormagic.recording.model import TABLES, Blob, ErrorInfo, Notice, PathKind, Recording
from tests.builder import GRAD, ITEM, Builder


def small():
    """A recording with something in every part of the format."""
    b = Builder("x = torch.zeros(2, 3)\ny = x[:1]\n")
    b.line(1)
    x = b.call("torch.zeros", "2, 3", [], (2, 3))
    b.bind(x, "x")
    b.line(2)
    y = b.call("Tensor.__getitem__", "[:1]", [x], (1, 3), storage=0)
    b.bind(y, "y")
    b.bind(y, "rows", (ITEM, 0))
    b.bind(x, "x", (GRAD, "grad"))
    r = b.recording
    r.elements.append([0, 1, 5])
    r.writes.add(1, 1, 0, y, 0, 0, 1, 1, 0)
    r.blobs += [Blob((2,), "float32", b"\0\0\xc0\x7f\0\0\x80?", 1.0, 1.0, math.nan, 1, 0)]
    r.blobs += [Blob((1000,), "float8_e5m2", None, -math.inf, 2.0, None, 0, 3)]
    r.snapshots.add(1, 0, -1, 0)
    r.backwards.add(1, 1, b.string("backward"), y, 0, 0, 1)
    r.gradients.add(0, -1, 0, -1 - x, 0)
    r.error = ErrorInfo("ValueError", "no \ud800 </script> \x00", 2, 1, [("cell", "f", 2), ("lib.py", "g", 70)])
    r.notices.append(Notice("too-many-names", {"count": 12, "$odd": [1.5, math.inf, None, True]}, 1))
    r.about = {"torch": "2.13", "bounds": {"values": 64}, "when": math.nan}
    return r


def same(one, two):
    """Equal parts; NaN equals NaN, which `==` does not say."""
    return repr(parts(one)) == repr(parts(two))


def parts(recording):
    return {name: getattr(recording, name).flat.tolist() if name in TABLES else getattr(recording, name)
            for name in vars(recording)}  # fmt: skip


def test_round_trip_of_every_part():
    text = to_json_text(small())
    assert same(from_json_text(text), small())
    assert to_json_text(from_json_text(text)) == text


def test_an_empty_recording_makes_the_round_trip():
    assert same(from_json_text(to_json_text(Recording())), Recording())


def test_another_reader_understands_the_tables():
    document = json.loads(to_json_text(small()), parse_constant=lambda word: pytest.fail(word))
    table = document["tables"]["steps"]
    width = len(table["fields"])
    rows = [dict(zip(table["fields"], table["rows"][i : i + width])) for i in range(0, len(table["rows"]), width)]
    assert [row["line"] for row in rows] == [1, 2]


@pytest.mark.parametrize("name", ["lesson.json", "lesson.json.gz"])
def test_files(tmp_path, name):
    save(small(), tmp_path / name)
    assert same(load(tmp_path / name), small())
    assert (tmp_path / name).read_bytes().startswith(b"\x1f\x8b") == name.endswith(".gz")
    assert os.listdir(tmp_path) == [name]


def test_equal_recordings_give_equal_files(tmp_path):
    save(small(), tmp_path / "a.gz")
    save(small(), tmp_path / "b.gz")
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


class Disk(enum.Enum):
    FULL = "write"
    GONE = "fsync"
    KILLED = "replace"


@pytest.mark.parametrize("fault", Disk)
def test_the_old_file_stays_whole_when_writing_fails(tmp_path, monkeypatch, fault):
    path = tmp_path / "t.json"
    save(small(), path)
    before = path.read_bytes()

    def fail(*args):
        raise KeyboardInterrupt if fault is Disk.KILLED else OSError(28, "No space left on device")

    monkeypatch.setattr(file.os, "replace" if fault is Disk.KILLED else "fsync", fail)
    with pytest.raises((OSError, KeyboardInterrupt)):
        save(Recording(), path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["t.json"]


def test_mode_and_link_of_the_old_file_are_kept(tmp_path):
    path, link = tmp_path / "t.json", tmp_path / "link.json"
    save(small(), path)
    os.chmod(path, 0o640)
    link.symlink_to(path)
    save(Recording(), link)
    assert link.is_symlink() and same(load(path), Recording())
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_missing_file_is_the_system_s_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none.json")


@pytest.mark.parametrize("value", [object(), {1: 2}, b"bytes", {"a": [{"b": {3}}]}])
def test_what_json_cannot_hold_is_refused_before_anything_is_written(tmp_path, value):
    recording = Recording(about={"key": value})
    with pytest.raises(TypeError, match=r"about\['key'\].* is a (object|dict|bytes|set)"):
        save(recording, tmp_path / "t.json")
    assert os.listdir(tmp_path) == []


def edited(change):
    document = json.loads(to_json_text(small()))
    change(document)
    return json.dumps(document)


def cell(table, row, field, value):
    def change(document):
        content = document["tables"][table]
        content["rows"][row * len(content["fields"]) + content["fields"].index(field)] = value

    return change


def put(*keys_and_value):
    *keys, last, value = keys_and_value

    def change(document):
        for key in keys:
            document = document[key]
        document[last] = value

    return change


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (cell("calls", 1, "step", 912), "table 'calls' row 1: field 'step' is 912, but there are 2 steps"),
        (cell("states", 0, "geometry", -1), "table 'states' row 0: field 'geometry' is -1, but the smallest"),
        (cell("steps", 1, "kind", 3), "table 'steps' row 1: field 'kind' is 3, but allowed are 0 to 2"),
        (cell("calls", 0, "ins", 7), "table 'calls' row 0: 'first_in' 0 and 'ins' 7 reach past the 1 rows of 'inputs'"),
        (cell("gradients", 0, "target", -9), "table 'gradients' row 0: field 'target' is -9, but there are 2 objects"),
        (cell("paths", 0, "key", -1), "table 'paths' row 0: field 'key' is -1, but there are"),
        (cell("paths", 2, "parent", 3), "table 'paths' row 2: its parents go round in a circle"),
        (cell("steps", 0, "line", "1"), "table 'steps' row 0: field 'line' is '1', not a whole number of 64 bits"),
        (cell("steps", 1, "line", True), "table 'steps' row 1: field 'line' is True, not a whole number"),
        (cell("steps", 1, "line", 2**63), "table 'steps' row 1: field 'line' is 9223372036854775808, not a whole"),
        (put("tables", "steps", "rows", [1, 2]), "table 'steps': 2 numbers do not make rows of 7"),
        (put("tables", "steps", "fields", ["a"]), "table 'steps': its fields are ['a'], expected frame, line"),
        (put("format", "something"), 'not a recording of tensormagic: no "format": "tensormagic-recording"'),
        (put("version", 2), "version 2 of the format is newer than this tensormagic, which reads up to 1"),
        (put("version", True), "version is True, not a whole number"),
        (put("blobs", 0, "data", "?"), "blobs[0].data is not base64"),
        (put("blobs", 0, "data", "AAAA"), "blobs[0]: 3 bytes for shape [2] of float32, which takes 8"),
        (put("blobs", 0, "low", 10**400), "blobs[0].low is a number of more than 60 digits, not a number"),
        (put("geometries", 0, "shape", [-1, 2]), "geometries[0].shape is [-1, 2]: a size is below 0"),
        (put("geometries", 0, "stride", [1]), "geometries[0]: 1 strides for 2 dimensions"),
        (put("elements", 0, 2, 1.5), "elements[0][2] is 1.5, not a whole number"),
        (put("error", "step", 5), "error: step is 5, but there are 2 steps"),
        (put("notices", 0, "facts", {"$no": 1}), "notices[0].facts: unknown tag '$no'"),
        (put("cell", "other"), "cell is 'other', but sources have no such name"),
        (put("strings", 0, None), "strings[0] is None, not a text"),
    ],
)
def test_the_error_says_what_and_where(change, sentence):
    with pytest.raises(RecordingFileError) as caught:
        from_json_text(edited(change), "trace.json")
    assert str(caught.value).startswith("trace.json: " + sentence)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "t: empty"),
        ("{", "t: cut off at line 1 column 2"),
        ('{"format": "tensorm', "t: cut off at line 1"),
        ("<html>", "t: not JSON at line 1 column 1"),
        ("[" * 100_000, "t: nested too deeply"),
        ('{"a": NaN}', "t: not strict JSON: it holds the literal NaN"),
        ("9" * 10_000, "t: "),
        ("[]", "t: not a recording"),
        (edited(put("about", "a", json.loads("[" * 200 + "]" * 200))), "t: about['a'][0]"),
    ],
)
def test_text_that_is_no_recording(text, sentence):
    with pytest.raises(RecordingFileError) as caught:
        from_json_text(text, "t")
    assert str(caught.value).startswith(sentence)
    assert len(str(caught.value)) < 300


def test_a_name_of_thousands_of_segments_is_refused():
    b = Builder()
    b.path("x")
    for i in range(5000):
        b.recording.paths.add(i, int(ITEM), 0)
    with pytest.raises(RecordingFileError, match="table 'paths' row 100: a name of more than 100 segments"):
        from_json_text(to_json_text(b.recording))


def test_a_file_that_grows_when_unpacked_is_bounded(tmp_path):
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(b" " * 10_000_000))
    with pytest.raises(RecordingFileError, match=r"bomb.gz: larger than 1000000 bytes; pass a larger limit_bytes"):
        load(tmp_path / "bomb.gz", limit_bytes=1_000_000)
    (tmp_path / "plain.json").write_bytes(b" " * 2000)
    with pytest.raises(RecordingFileError, match="larger than 1000 bytes"):
        load(tmp_path / "plain.json", limit_bytes=1000)


@pytest.mark.parametrize("name", ["t.json", "t.json.gz"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(data=st.data())
def test_damaged_bytes(tmp_path, name, data):
    save(small(), tmp_path / name)
    content = bytearray((tmp_path / name).read_bytes())
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content) - 1)) :]
    for _ in range(data.draw(st.integers(0, 3))):
        if content:
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    (tmp_path / name).write_bytes(content)
    recording_or_refusal(lambda: load(tmp_path / name))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.integers(-2, 4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def places(value, keys=()):
    """The keys of every place inside a JSON value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inside:
        yield (*keys, key)
        yield from places(item, (*keys, key))


PLACES = list(places(json.loads(to_json_text(small()))))


@settings(max_examples=400, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(PLACES), JSON | st.just("remove")), min_size=1, max_size=3))
def test_a_changed_file_is_refused_or_valid(changes):
    document = json.loads(to_json_text(small()))
    for keys, value in changes:
        inner = document
        try:
            for key in keys[:-1]:
                inner = inner[key]
            if value == "remove":
                del inner[keys[-1]]
            else:
                inner[keys[-1]] = copy.deepcopy(value)
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change took this place away
    text = json.dumps(document)
    recording_or_refusal(lambda: from_json_text(text))


def recording_or_refusal(read):
    try:
        recording = read()
    except RecordingFileError:
        return
    assert list(schema.problems(recording)) == []
    assert same(from_json_text(to_json_text(recording)), recording)


def test_every_field_of_every_table_has_a_rule():
    assert set(schema.RULES) == set(TABLES)
    for name, row in TABLES.items():
        for field in row._fields:
            assert isinstance(schema.rule_of(name, field), schema.Rule)
        assert set(schema.RULES[name]) <= set(row._fields)


@st.composite
def recordings(draw):
    """Any recording that keeps the contract, straight from the rules."""
    recording = Recording()
    recording.strings = draw(st.lists(st.text(max_size=4), min_size=1, max_size=3))
    recording.geometries = list(small().geometries)
    recording.blobs = draw(st.lists(st.sampled_from(small().blobs), min_size=1, max_size=3))
    recording.elements = draw(st.lists(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=3), min_size=1, max_size=2))
    recording.sources = {"c": draw(st.text(max_size=9))}
    recording.cell = "c"
    recording.about = draw(st.dictionaries(st.text(max_size=3), JSON, max_size=3))
    sizes = {name: draw(st.integers(1, 3)) for name in TABLES}
    for name, row in TABLES.items():
        for index in range(sizes[name]):
            numbers = []
            for field in row._fields:
                rule = schema.rule_of(name, field)
                length = sizes.get(rule.target) or len(getattr(recording, rule.target)) if rule.target else 2**63
                low = -(2**63) if rule.low is None else rule.low
                high = length - 1 + rule.one_past if rule.high is None else rule.high
                if field == "parent":
                    high = index - 1
                numbers.append(draw(st.integers(low, high)))
            for table, first, count, target in schema.RANGES:
                if table == name:
                    start = draw(st.integers(0, sizes[target]))
                    numbers[row._fields.index(first)] = start
                    numbers[row._fields.index(count)] = draw(st.integers(0, sizes[target] - start))
            for table, field in schema.LEAVES:
                if table == name:
                    numbers[row._fields.index(field)] = draw(st.integers(-sizes["objects"], 2**63 - 1))
            if name == "paths":
                string = draw(st.integers(0, len(recording.strings) - 1))
                numbers[2] = draw(st.integers()) % 99 if numbers[1] == PathKind.ITEM else string
            getattr(recording, name).add(*numbers)
    return recording


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None)
@given(recordings())
def test_round_trip_of_any_recording(recording):
    again = from_json_text(to_json_text(recording))
    assert same(again, recording)
