"""A Recording by hand: what a watcher would have written, in a few words, for tests of the rooms behind it."""

from __future__ import annotations

from tensormagic.recording.model import Geometry, ObjectKind, PathKind, Recording, StateFlag

V, ATTR, ITEM, KEY = PathKind.VARIABLE, PathKind.ATTRIBUTE, PathKind.ITEM, PathKind.KEY
PARAM, BUFFER, SUB, GRAD = PathKind.PARAMETER, PathKind.BUFFER, PathKind.SUBMODULE, PathKind.GRAD
SIZES = {"float32": 4, "float64": 8, "int64": 8, "uint8": 1, "int16": 2}


def contiguous(shape):
    stride, size = [], 1
    for n in reversed(shape):
        stride.insert(0, size)
        size *= n
    return tuple(stride)


class Builder:
    """Rows in the order of time. `line()` begins a step; what follows belongs to it. Frame 0 is the cell."""

    def __init__(self, source="x = 1\n"):
        self.recording = Recording(sources={"cell": source}, cell="cell")
        self.recording.frames.add(self.string(""), self.string("cell"), -1, -1)
        self.now = -1

    def string(self, text):
        strings = self.recording.strings
        if text not in strings:
            strings.append(text)
        return strings.index(text)

    def frame(self, function, call_line=-1, parent=0):
        self.recording.frames.add(self.string(function), self.string("cell"), parent, call_line)
        return len(self.recording.frames) - 1

    def line(self, line, frame=0, parent=-1):
        self.recording.steps.add(frame, line, 0, 0, parent, 1, len(self.recording.calls))
        self.now = len(self.recording.steps) - 1
        return self.now

    def storage(self, nbytes, address=0, device="cpu", death=-1):
        self.recording.storages.add(nbytes, self.string(device), self.now, -1, death, address)
        return len(self.recording.storages) - 1

    def object(self, kind, type="Tensor", call=-1):
        self.recording.objects.add(kind, self.string(type), call, self.now, -1)
        return len(self.recording.objects) - 1

    def state(self, object, storage, shape, stride=None, offset=0, dtype="float32", call=-1, step=None):
        stride = contiguous(shape) if stride is None else stride
        geometry = Geometry(tuple(shape), tuple(stride), dtype, SIZES[dtype], "cpu", "strided")
        if geometry not in self.recording.geometries:
            self.recording.geometries.append(geometry)
        index = self.recording.geometries.index(geometry)
        step = self.now if step is None else step
        self.recording.states.add(object, step, call, storage, offset, index, StateFlag.LEAF, -1, -1, 0)

    def tensor(self, shape, stride=None, storage=None, kind=ObjectKind.TENSOR, call=-1, **more):
        """A new tensor with its state; without `storage`, on a new one of just its size."""
        if storage is None:
            size = SIZES[more.get("dtype", "float32")]
            for n in shape:
                size *= n
            storage = self.storage(size)
        made = self.object(kind, "ndarray" if kind == ObjectKind.ARRAY else "Tensor", call)
        self.state(made, storage, shape, stride, call=call, **more)
        return made

    def call(self, function, args, ins, shape, stride=None, out=None, **more):
        """A call with one output: a new tensor, or `out`, which is known and gets the new state."""
        calls, inputs, outputs = self.recording.calls, self.recording.inputs, self.recording.outputs
        number = len(calls)
        fresh = out is None
        if fresh:
            out = self.tensor(shape, stride, call=number, **more)
        elif more:
            self.state(out, shape=shape, stride=stride, call=number, **more)
        text = self.string(args) if args else -1
        calls.add(self.now, self.string(function), text, len(inputs), len(ins), len(outputs), 1, 0, 1)
        for item in ins:
            inputs.add(item, 0)
        outputs.add(out, int(fresh))
        return out

    def path(self, *segments):
        """The row of a path: a name, then (kind, key) pairs."""
        parent = -1
        for segment in segments:
            kind, key = (V, segment) if isinstance(segment, str) else segment
            row = (parent, int(kind), key if kind == ITEM else self.string(key))
            paths = list(map(tuple, self.recording.paths))
            if row not in paths:
                self.recording.paths.add(*row)
                paths.append(row)
            parent = paths.index(row)
        return parent

    def bind(self, object, *segments, frame=0, step=None, late=0):
        step = self.now if step is None else step
        self.recording.bindings.add(step, frame, self.path(*segments), object, late)
