"""What a trace is made of: plain data, no torch, no IPython.

Words: a *step* is one execution of a line; a *call* is one torch call made by a step; an *object* is one Python object
that a name reached or a call returned (a tensor, an array, a module, a container); a *storage* is a piece of memory; a
*path* is how a name reaches an object; a *write* is an in-place change. Everything refers to everything else by index;
-1 stands for "none" throughout.

Order. Steps are numbered in the order in which they *ended*: the lines of a function come before the line that called
it, and "at step k" always means "after line k had run". Calls are numbered in the order in which they were made.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tensormagic.recording.table import Table

NONE = -1


class ObjectKind(enum.IntEnum):
    """What sort of Python object stands behind a name."""

    TENSOR = 0
    ARRAY = 1  # a numpy array that shares memory with a tensor
    MODULE = 2
    OPTIMIZER = 3
    CONTAINER = 4  # list, tuple, dict
    INSTANCE = 5  # an object of a class of the user's


class PathKind(enum.IntEnum):
    """How one segment of a name leads to the next object."""

    VARIABLE = 0  # a global or a local: `w`
    ATTRIBUTE = 1  # `.obs`, a plain attribute
    ITEM = 2  # `[0]` of a list or tuple, or of a ModuleList or Sequential
    KEY = 3  # `['weight']` of a dict
    PARAMETER = 4  # `.weight`, registered
    BUFFER = 5  # `.running_var`, registered
    SUBMODULE = 6  # `.fc`, registered
    GRAD = 7  # `.grad`


class WriteKind(enum.IntEnum):
    """How memory was changed in place."""

    CALL = 0  # an in-place torch call that told the version counter
    DATA = 1  # a torch call whose write the version counter was not told of (through .data, set to a detached alias)
    OUTSIDE = 2  # the bytes changed and no torch call of that step touched them: numpy, a memory view
    KERNEL = 3  # the bytes of an input changed during a call that does not declare it (batch norm's running statistics)
    ACCUMULATE = 4  # backward added into an existing .grad


class StepKind(enum.IntEnum):
    """How a step ended."""

    LINE = 0
    RETURN = 1  # the frame's last line
    RAISED = 2


class Step(NamedTuple):
    """One execution of a line."""

    frame: int  # index into frames
    line: int  # 1-based, in the frame's file
    kind: int  # StepKind
    iteration: int  # executions of this line in this frame before this one, 0 for the first
    parent: int  # the step of the calling frame that was running (a later number: it ends later), or -1
    detail: int  # 1: names, values and gradients were looked at; 0: light record, past the bound
    first_call: int  # index of the first torch call made after this step's line began


class Frame(NamedTuple):
    """One activation of the cell or of a function of the user's."""

    function: int  # string: "" for the cell itself, else the qualified name
    file: int  # string: key of Recording.sources
    parent: int  # the calling frame, or -1
    call_line: int  # the line of the parent that called, or -1


class Call(NamedTuple):
    """One torch call."""

    step: int
    function: int  # string: "Tensor.clone", "torch.relu", "Tensor.data", "torch.optim.SGD.step", ...
    args: int  # string: the plain arguments as source text ("[:2]", "dim=1"), or -1
    first_in: int  # rows of `inputs` from here ...
    ins: int  # ... this many
    first_out: int  # rows of `outputs` from here ...
    outs: int  # ... this many
    seq: int  # autograd's sequence number after the call: nodes made by the call have the numbers before it
    flags: int  # CallFlag bits


class CallFlag(enum.IntFlag):
    GRAD_ENABLED = 1
    INFERENCE = 2
    RAISED = 4
    NAN_OUT = 8  # some output holds a NaN
    INF_OUT = 16  # some output holds an infinity
    IN_BACKWARD = 128  # made while the engine ran (a hook, a custom Function's backward)
    CHECKED = 256  # outputs were looked at for NaN and infinity


class Input(NamedTuple):
    object: int
    version: int  # before the call, -1 where it cannot be read


class Output(NamedTuple):
    object: int
    fresh: int  # 1: a new Python object; 0: one that was known before the call (x.to(same), x.mul_())


class Object(NamedTuple):
    """One Python object, for as long as it lived."""

    kind: int  # ObjectKind
    type: int  # string: the class name ("Tensor", "Parameter", "ndarray", "Linear")
    call: int  # the call that made it, or -1
    step: int  # the step during which it was first seen; -1: it was there before the cell
    death: int  # the step during which the object died, or -1 while it lived at the end or where this is not known


class State(NamedTuple):
    """What a tensor or array was, from `call`/`step` on until its next State."""

    object: int
    step: int
    call: int  # -1: a look at names found it
    storage: int
    offset: int  # elements from the start of the storage
    geometry: int  # index into geometries
    flags: int  # StateFlag bits
    node: int  # autograd sequence number of its grad_fn, -1 for none
    node_name: int  # string: "MulBackward0", or -1
    version: int  # -1 where it cannot be read


class StateFlag(enum.IntFlag):
    REQUIRES_GRAD = 1
    LEAF = 2
    RETAINS_GRAD = 4
    INFERENCE = 8


class Geometry(NamedTuple):
    """Shape and layout, shared by every tensor that has it (not a table row: kept as a list)."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]  # elements; () where the layout has no strides
    dtype: str  # "float32", "int64", ...
    itemsize: int  # bytes
    device: str  # "cpu", "cuda:0", "meta"
    layout: str  # "strided", "sparse_coo", ...


class Storage(NamedTuple):
    """A piece of memory; S1, S2, ... in the order of this table."""

    nbytes: int  # at birth; later sizes are in `resizes`
    device: int  # string
    step: int  # birth; -1: before the cell
    call: int
    death: int  # step during which it was freed, or -1 while it lived at the end
    address: int  # of the first byte; shown in tooltips only


class Resize(NamedTuple):
    step: int
    storage: int
    nbytes: int


class Path(NamedTuple):
    """A name, as a chain of segments."""

    parent: int
    kind: int  # PathKind
    key: int  # string for names and string keys (as repr for KEY), a whole number for ITEM


class Binding(NamedTuple):
    """From the end of `step` on, `path` in `frame` stands for `object` (-1: for nothing any more)."""

    step: int
    frame: int
    path: int
    object: int
    late: int  # 1: found at the next full look after light steps, so the change may be older than `step`


class Write(NamedTuple):
    step: int
    call: int  # -1 for OUTSIDE
    kind: int  # WriteKind
    object: int  # the tensor written through, -1 where only the memory is known
    storage: int
    before: int  # version counter, -1 where it cannot be read
    after: int
    state: int  # row of `states` that the object had while it was written
    elements: int  # index into `elements`: changed storage elements; -1: not known one by one


class Snapshot(NamedTuple):
    """The values of a storage (object -1) or of one tensor, from the end of `step` on."""

    step: int
    storage: int
    object: int
    blob: int


class Node(NamedTuple):
    """One node of autograd's graph that a walk met."""

    seq: int  # sequence number; -1 - object for the AccumulateGrad of a leaf
    name: int  # string
    saved: int  # bytes that only this node is known to hold, -1 when not asked


class Edge(NamedTuple):
    source: int  # seq of the node nearer the loss
    slot: int  # which input of the forward operation
    target: int  # seq of the node nearer the leaves; -1 - object for a leaf
    target_slot: int  # which output of the target's forward operation


class Backward(NamedTuple):
    """One run of the autograd engine."""

    step: int
    call: int
    kind: int  # string: "backward" or "grad"
    root: int  # object of the first root
    flags: int  # BackwardFlag bits
    first_edge: int  # rows of `gradients` from here ...
    edges: int  # ... this many


class BackwardFlag(enum.IntFlag):
    RETAIN = 1
    CREATE = 2
    RAISED = 4
    LIGHT = 8  # past the bound: gradients on edges were not recorded


class EdgeGradient(NamedTuple):
    """The gradient that passed an edge in a run, in the order in which the engine sent it."""

    run: int
    source: int  # seq; -1 stands for the start: what backward was called with
    slot: int
    target: int  # seq, or -1 - object for a leaf
    blob: int  # -1: nothing (None) was sent


class Accumulation(NamedTuple):
    """What one backward run did to one leaf's .grad."""

    run: int
    object: int  # the leaf
    before: int  # blob, -1: .grad was None
    added: int  # blob: the sum that this run brought (parts are the EdgeGradients that end in the leaf)
    after: int  # blob
    grad: int  # object that .grad is afterwards
    in_place: int  # 1: added into the tensor that was there


class Walk(NamedTuple):
    """How much graph hung on a tensor when it was asked for (at backward and at the end of the cell)."""

    step: int
    object: int
    nodes: int  # nodes reachable from its grad_fn
    truncated: int  # 1: the walk stopped at its bound, `nodes` is a lower bound


class OptimizerGroup(NamedTuple):
    step: int  # when it was seen
    object: int  # the optimizer
    group: int
    first: int  # rows of `members` from here ...
    size: int  # ... this many


class Member(NamedTuple):
    object: int


class Saved(NamedTuple):
    """A tensor that a node had saved for backward, read at the step of a backward run."""

    run: int
    seq: int
    attribute: int  # string: "_saved_result"
    object: int  # the saved tensor, -1 where reading it raised
    stale: int  # SavedFlag


class SavedFlag(enum.IntEnum):
    READ = 0  # it could be read: torch's own version check passed
    OVERWRITTEN = 1  # reading it raised: its version counter has moved since it was saved
    FREED = 2  # reading it raised: an earlier backward had freed it


@dataclass
class Blob:
    """The values of a tensor, or what is known of a large one. `data` is raw, contiguous, of `dtype`."""

    shape: tuple[int, ...]
    dtype: str
    data: bytes | None = None
    low: float | None = None  # smallest and largest finite value, mean of the finite ones
    high: float | None = None
    mean: float | None = None
    nans: int = 0  # counted for kept values after the cell, see values.count_non_finite
    infs: int = 0


@dataclass
class ErrorInfo:
    """The exception that ended the cell."""

    type: str
    message: str
    line: int  # of the cell
    step: int
    frames: list[tuple[str, str, int]] = field(default_factory=list)  # (file, function, line), outermost first


@dataclass
class Notice:
    """Something that was not recorded, and why. `code` is a key of the word catalogue, `facts` fills its template."""

    code: str
    facts: dict[str, Any] = field(default_factory=dict)
    step: int = NONE


TABLES: dict[str, type] = {
    "steps": Step, "frames": Frame, "calls": Call, "inputs": Input, "outputs": Output, "objects": Object,
    "states": State, "storages": Storage, "resizes": Resize, "paths": Path, "bindings": Binding, "writes": Write,
    "snapshots": Snapshot, "nodes": Node, "edges": Edge, "backwards": Backward, "gradients": EdgeGradient,
    "accumulations": Accumulation, "walks": Walk, "optimizer_groups": OptimizerGroup, "members": Member,
    "saved": Saved,
}  # fmt: skip


@dataclass
class Recording:
    """Everything that was recorded of one cell. Questions are answered in `analysis/`, not here."""

    steps: Table[Step] = field(default_factory=lambda: Table(Step))
    frames: Table[Frame] = field(default_factory=lambda: Table(Frame))
    calls: Table[Call] = field(default_factory=lambda: Table(Call))
    inputs: Table[Input] = field(default_factory=lambda: Table(Input))
    outputs: Table[Output] = field(default_factory=lambda: Table(Output))
    objects: Table[Object] = field(default_factory=lambda: Table(Object))
    states: Table[State] = field(default_factory=lambda: Table(State))
    storages: Table[Storage] = field(default_factory=lambda: Table(Storage))
    resizes: Table[Resize] = field(default_factory=lambda: Table(Resize))
    paths: Table[Path] = field(default_factory=lambda: Table(Path))
    bindings: Table[Binding] = field(default_factory=lambda: Table(Binding))
    writes: Table[Write] = field(default_factory=lambda: Table(Write))
    snapshots: Table[Snapshot] = field(default_factory=lambda: Table(Snapshot))
    nodes: Table[Node] = field(default_factory=lambda: Table(Node))
    edges: Table[Edge] = field(default_factory=lambda: Table(Edge))
    backwards: Table[Backward] = field(default_factory=lambda: Table(Backward))
    gradients: Table[EdgeGradient] = field(default_factory=lambda: Table(EdgeGradient))
    accumulations: Table[Accumulation] = field(default_factory=lambda: Table(Accumulation))
    walks: Table[Walk] = field(default_factory=lambda: Table(Walk))
    optimizer_groups: Table[OptimizerGroup] = field(default_factory=lambda: Table(OptimizerGroup))
    members: Table[Member] = field(default_factory=lambda: Table(Member))
    saved: Table[Saved] = field(default_factory=lambda: Table(Saved))

    strings: list[str] = field(default_factory=list)
    geometries: list[Geometry] = field(default_factory=list)
    blobs: list[Blob] = field(default_factory=list)
    elements: list[list[int]] = field(default_factory=list)  # changed storage elements of a write
    sources: dict[str, str] = field(default_factory=dict)  # file name -> text; the cell's is `cell`
    cell: str = ""  # key of `sources`
    error: ErrorInfo | None = None
    notices: list[Notice] = field(default_factory=list)
    about: dict[str, Any] = field(default_factory=dict)  # versions, bounds, name, when
