"""Look-ups over a recording: each is compared with a plain walk over the rows."""

from tensormagic.analysis.index import Index
from tensormagic.recording.model import Blob, PathKind
from tests.analysis.test_way import cell
from tests.builder import GRAD, ITEM, KEY, PARAM, Builder


def test_calls_and_what_went_through_them():
    index = Index(cell().recording)
    assert index.calls_of_step(1) == [1] and index.calls_of_step(99) == []
    assert (index.function(2), index.args(2), index.args(1)) == ("Tensor.__getitem__", "[:1]", "")
    assert [row.object for row in index.inputs(2)] == [1]
    assert [row.object for row in index.outputs(2)] == [2]
    assert index.calls_from(0) == [1, 3, 4] and index.calls_giving(0) == [0]
    assert index.maker(2) == 2 and index.maker(5) == -1


def test_lines_and_their_text():
    index = Index(cell().recording)
    assert (index.line_of(2), index.line_text(2), index.line_of(-1)) == (3, "z = y[:1]", -1)


def test_the_line_of_the_cell_that_a_line_elsewhere_stands_for():
    b = Builder("import helper\nhelper.f()\n")
    outer = b.frame("f", call_line=2)
    inner = b.frame("g", call_line=71, parent=outer)
    b.recording.frames.set_column("file", [0, b.string("helper.py"), b.string("helper.py")])
    b.recording.frames.set_column("file", [b.string("cell"), b.string("helper.py"), b.string("helper.py")])
    b.line(90, frame=inner)
    b.line(2)
    index = Index(b.recording)
    assert not index.in_cell(0) and index.in_cell(1)
    assert (index.cell_line(0), index.cell_line(1), index.cell_line(-1)) == (2, 2, -1)
    assert index.line_text(0) == ""


def test_states_by_time():
    b = Builder()
    b.line(1)
    x = b.tensor((8,))
    b.line(2)
    b.line(3)
    b.call("Tensor.resize_", "2", [x], (2,), out=x, storage=0)
    index = Index(b.recording)
    assert [index.state_row(x, step) for step in (-1, 0, 1, 2, None)] == [-1, 0, 0, 1, 1]
    assert index.geometry(index.state(x)).shape == (2,)
    assert index.geometry(index.state_before_call(x, 0)).shape == (8,)
    assert index.state_before_call(b.tensor((1,)), 0) is None
    assert index.has_memory(x)


def test_storages():
    b = cell()
    b.recording.resizes.add(3, 0, 64)
    b.recording.resizes.add(4, 0, 0)
    for step, call in ((1, 1), (3, 3)):
        b.recording.writes.add(step, call, 0, 0, 0, 0, 1, 0, -1)
    b.recording.blobs.append(Blob((4,), "float32", bytes(16)))
    for step in (0, 2):
        b.recording.snapshots.add(step, 0, -1, 0)
    index = Index(b.recording)
    assert [index.storage_nbytes(0, step) for step in (-1, 2, 3, 4, None)] == [16, 16, 64, 0, 0]
    assert index.resized(0) and not index.resized(1)
    assert index.objects_on(0) == [0, 1, 2, 3] and index.objects_on(7) == []
    assert index.writes_to(0) == [0, 1] and index.writes_of_step(3) == [1] and index.writes_to(1) == []
    assert [index.snapshot(0, step) and index.snapshot(0, step).step for step in (-1, 0, 1, 2, None)] == [
        None, 0, 0, 2, 2
    ]  # fmt: skip
    assert index.snapshot(0, object=3) is None


def test_paths_and_bindings():
    b = Builder()
    b.line(1)
    x = b.tensor((2,))
    b.bind(x, "best", (KEY, "'w'"), (ITEM, 3), (PARAM, "weight"), (GRAD, "grad"))
    b.recording.paths.add(0, int(PathKind.GRAD), -1)
    index = Index(b.recording)
    path = b.path("best", (KEY, "'w'"), (ITEM, 3), (PARAM, "weight"), (GRAD, "grad"))
    assert index.path_text(path) == "best['w'][3].weight.grad"
    assert index.path_text(len(b.recording.paths) - 1) == "best.grad"
    assert index.segments(path)[2] == (ITEM, 3)
    assert [row.object for row in index.bindings(0, path)] == [x]
    assert index.bindings_of_object[x] == [0]


def test_an_index_is_taken_as_it_is():
    index = Index(cell().recording)
    assert Index.of(index) is index
    assert Index.of(index.recording).recording is index.recording
