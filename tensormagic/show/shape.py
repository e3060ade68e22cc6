"""The JSON that the renderer draws: every word and every position in it was decided in Python.

Random access: whatever changes over time is a list of `[step, value]` pairs in order of step; at step k the last pair
with step <= k holds (step -1: before the first line). A *run* of text is `[text, style]`; styles are "" (plain), "code",
"strong", "warn", "soft". Colours are indices into the palette; every coloured thing also carries its sign (a letter or
glyph), so that colour is never the only mark. Everything is plain text: the renderer sets textContent.
"""

from __future__ import annotations

from typing import Any, TypedDict

Run = list[str]  # [text, style]
Timed = list[Any]  # [step, value]


class File(TypedDict):
    name: str  # "" for the cell
    lines: list[str]
    first: int  # number of the first line given (a function of another cell may be shown in part)


class Step(TypedDict, total=False):
    file: int
    line: int
    mark: str  # "create", "share", "write", "compute", "backward", "error", "none"
    say: list[Run]  # the sentence under the line
    warn: bool
    frame: str  # name of the function, "" in the cell
    callers: list[list[int]]  # [file, line] of the lines that are in progress, innermost first
    loop: list[int]  # index into View.loops and the iteration, 0-based
    light: bool  # recorded without detail


class Loop(TypedDict):
    file: int
    first: int  # lines of the body
    last: int
    starts: list[list[int]]  # [iteration, step at which it begins] of the iterations that are steps of this view
    total: int  # iterations that ran
    label: str


class Row(TypedDict, total=False):
    name: str
    why: str
    cover: list[list[int]]  # [first, count] element runs of the strip that the name sees, in strip cells
    shape: list[int]  # with stride and offset (in elements): for the arithmetic of an element pointed at
    stride: list[int]
    offset: int
    grad: list[str]  # values of its .grad, where it is small (same order as the tensor's elements)
    grad_why: str
    grad_name: str


class StorageState(TypedDict, total=False):
    head: str  # "float32 × 4 · 16 B · version 1"
    cells: list[str]  # values, element by element; absent for a large storage
    total: int  # elements of the storage
    changed: list[int]  # elements that the step changed: outlined at that very step only
    rows: list[Row]
    note: str  # "held by the graph alone", "freed"
    gone: bool  # nothing of it is left: not drawn (freed, or no name any more)


class Storage(TypedDict):
    name: str  # "S1"
    colour: int
    sign: str
    tip: str  # address and device
    states: list[Timed]  # [step, StorageState]


class Matrix(TypedDict):
    names: list[str]
    storages: list[
        int
    ]  # index into View.storages of each name's storage; negative, and different for different storages, where none is drawn (a .grad's)
    glyphs: str  # n*n characters, row by row
    answers: dict[str, list[Run]]  # "i,j" (i <= j) -> the sentence; absent: `other` with the two names
    way: dict[str, list[Run]]


class GraphNode(TypedDict, total=False):
    x: float
    y: float
    w: float
    h: float
    label: str
    sub: str  # of a fold: how much is in it
    kind: str  # "leaf", "result", "operation", "constant" (behind a cut), "fold", "outside" (of an opened fold)
    storage: int  # index into View.storages, -1 for none
    tip: str
    line: int
    opens: int  # of a fold: the index of the drawing of what is in it, -1 where that was not drawn


class GraphEdge(TypedDict, total=False):
    source: int  # data flows from source ...
    target: int  # ... to target
    points: list[list[float]]
    label: str  # "clone · 2"
    cut: bool  # the gradient does not come back
    label_at: list[float]


class Graph(TypedDict, total=False):
    label: str  # "" for the whole, else the fold that it is the inside of
    width: float
    height: float
    nodes: list[GraphNode]
    edges: list[GraphEdge]
    at: list[
        int | None
    ]  # of each text of the run's events in order: its edge; -1 - node where it stays inside one; None


class BackwardEvent(TypedDict, total=False):
    texts: list[str]  # what a node of the graph sent, gradient by gradient
    say: list[Run]


class Part(TypedDict):
    text: str
    source: str  # where it came from: "mul, line 4"


class Accumulation(TypedDict, total=False):
    name: str
    before: str
    parts: list[Part]
    after: str
    say: list[Run]
    more: str  # parts that are not listed


class BackwardRun(TypedDict):
    step: int
    label: str  # "loss.backward(), line 7"
    graph: int  # index into Gradients.graphs of the whole graph of this run, -1 where none was recorded
    events: list[BackwardEvent]
    leaves: list[Accumulation]
    note: str


class Gradients(TypedDict, total=False):
    graphs: list[Graph]
    runs: list[BackwardRun]
    legend: list[Run]
    note: str


class Finding(TypedDict, total=False):
    severity: str  # "error", "warning", "note"
    glyph: str
    title: list[Run]
    text: list[Run]
    fix: str
    lines: list[list[Any]]  # [role in words, line, step or -1]
    rule: str


class CallRow(TypedDict):
    step: int
    cells: list[str]  # as the columns of `labels.call_columns`


class View(TypedDict, total=False):
    version: int
    title: str
    summary: list[Run]
    alt: str  # the picture in words
    labels: dict[str, Any]  # every word of the interface
    files: list[File]
    steps: list[Step]
    loops: list[Loop]
    storages: list[Storage]
    matrix: list[Timed]  # [step, Matrix]
    gradients: Gradients
    findings: list[Finding]
    calls: list[CallRow]
    calls_total: int
    notices: list[str]  # what was not recorded, and why
    start: int  # the step shown first
