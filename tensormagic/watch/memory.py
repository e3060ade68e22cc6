"""Identity and life of tensors and storages.

An object is known by `id()` *and* a weak reference that still answers, so that an address that is used again is never
mistaken. A storage is known by its one Python object, whose weak reference calls back when the memory is freed.
Nothing here keeps anything of the user's alive.
"""

from __future__ import annotations

import weakref
from array import array
from typing import Any

import torch

from tensormagic.recording.model import NONE, Geometry, ObjectKind, Recording, State, StateFlag
from tensormagic.watch import private
from tensormagic.watch.clock import Clock
from tensormagic.watch.raw import address_of, dtype_name, shape_of

_REQUIRES_GRAD, _LEAF = int(StateFlag.REQUIRES_GRAD), int(StateFlag.LEAF)  # plain numbers: this is the hot path
_RETAINS_GRAD, _INFERENCE = int(StateFlag.RETAINS_GRAD), int(StateFlag.INFERENCE)


_STATE = len(State._fields)
_name = type.__dict__["__name__"].__get__  # a metaclass may have an attribute access of its own
_MANY = 256  # freed storages that wait to be noted


class Live(weakref.ref):  # type: ignore[type-arg]
    """What the recorder knows of one object that lives: a weak reference with numbers. `live()` gives the object."""

    __slots__ = ("counter", "object", "state", "storage", "version")
    object: int
    state: int  # row of `states`
    storage: int
    version: int
    counter: int  # the object whose version counter this one shares


class Unreferable:
    """Stands in where a type allows no weak reference (list, dict): never gives the object, never keeps it."""

    __slots__ = ("counter", "object", "state", "storage", "type", "version")

    def __init__(self, value: Any) -> None:
        self.type = id(type(value))

    def __call__(self) -> Any:
        return None


class StorageRef(weakref.ref):  # type: ignore[type-arg]
    """A weak reference to a storage that knows its number and the last size seen."""

    __slots__ = ("first", "home", "nbytes", "number")
    number: int
    nbytes: int
    home: int  # the version counter that stands for the memory: that of the first tensor seen on it which lives
    first: Any  # weak reference to that tensor


class Memory:
    """Gives numbers to objects and storages, and notes their states.

    Args:
        recording: the tables to write to.
        clock: says which step and call it is.
    """

    def __init__(self, recording: Recording, clock: Clock) -> None:
        self.recording = recording
        self.clock = clock
        self.live: dict[int, Live] = {}
        self.storages: dict[int, StorageRef] = {}
        self.geometries: dict[Any, int] = {}
        self.devices: dict[Any, int] = {}
        # Freed since the last look: filled by the references themselves. A function of ours in their place would
        # swallow a Ctrl-C that arrives in it.
        self.freed: list[StorageRef] = []
        self.deaths = array("q")  # storage, step, storage, step, ...: a list of pairs would wake the collector
        self.unreadable: dict[str, str] = {}  # type -> why its memory could not be read

    # ---- objects -------------------------------------------------------------------------------------------------

    def find(self, value: Any) -> Live | None:
        """The record of a live object, None where it is new."""
        live = self.live.get(id(value))
        return live if live is not None and live() is value else None

    def register(self, value: Any, kind: int, call: int = NONE) -> Live:
        """A new object's record."""
        objects = self.recording.objects
        number = len(objects.flat) // objects.width
        objects.flat.frombytes(objects.pack(kind, self.clock.string(_name(type(value))), call, self.clock.step, NONE))
        try:
            live: Any = Live(value)
        except TypeError:
            live = Unreferable(value)
        live.object = live.counter = number
        live.state = live.storage = live.version = NONE
        self.live[id(value)] = live
        return live

    def tensor(self, value: Any, call: int = NONE) -> Live:
        """The record of a tensor, made and its state noted when it is new."""
        live = self.live.get(id(value))
        if live is None or live() is not value:
            live = self.register(value, ObjectKind.TENSOR, call)
            self.note_state(value, live, call)
        return live

    def note_state(self, value: Any, live: Live, call: int) -> None:
        """Read a tensor's layout and graph side; a State is added when anything differs.

        At a call the version alone makes none: that a call wrote is in its write.
        """
        recording, step = self.recording, self.clock.step
        try:
            memory = private.get_storage(value)
            ref = self.storages.get(id(memory))
            if ref is not None and ref() is memory and ref.nbytes == memory.nbytes():
                storage = ref.number
            else:
                storage = self.storage(memory, live, call)
            offset = private.get_offset(value)
            stride = private.get_stride(value)
        except (RuntimeError, NotImplementedError) as error:
            storage, offset, stride = NONE, 0, ()
            self.unreadable[type(value).__name__] = str(error).split("\n", 1)[0][:200]
        key = (
            shape_of(value), stride, private.get_dtype(value), private.get_device(value),
            private.get_layout(value),
        )  # fmt: skip
        geometry = self.geometries.get(key)
        if geometry is None:
            geometry = self.geometries[key] = self._new_geometry(key)
        flags, node, node_name = self._graph_side(value)
        live.version = version = self.version(value)
        live.storage = storage
        table = recording.states
        states = table.flat
        before = live.state
        if before >= 0:
            at = before * _STATE
            if states[at + 3] == storage and states[at + 4] == offset and states[at + 5] == geometry:
                if states[at + 6] == flags and states[at + 7] == node:
                    if call >= 0 or states[at + 9] == version:
                        return  # what a call did to the version is in its write; a look takes the sum
        live.state = len(states) // _STATE
        states.frombytes(
            table.pack(live.object, step, call, storage, offset, geometry, flags, node, node_name, version)
        )

    def is_stale(self, value: Any, live: Live, version: int) -> bool:
        """Has a tensor changed since its last State with no call of its own: its version through an alias, its
        requires_grad with its base's (`base.requires_grad_()`) or as the forward of a custom Function ended?"""
        at = live.state * _STATE
        if at < 0:
            return False
        states = self.recording.states.flat
        wanted, flags = private.get_requires_grad(value), states[at + 6]
        if states[at + 9] != version or bool(flags & _REQUIRES_GRAD) != wanted:
            return True
        # Inside the engine a view is not asked for its node, see _graph_side.
        return bool(wanted and not self.clock.engine and bool(flags & _LEAF) != private.get_is_leaf(value))

    def _graph_side(self, value: Any) -> tuple[int, int, int]:
        flags = 0
        node, node_name = NONE, NONE
        if private.get_requires_grad(value):
            flags = _REQUIRES_GRAD
            if private.get_is_leaf(value):
                flags |= _LEAF
            else:
                try:
                    # A node that runs holds a lock that making a view's grad_fn anew waits for: not inside the engine.
                    waits = self.clock.engine and private.get_is_view(value)
                    function = None if waits else private.get_grad_fn(value)
                except RuntimeError:
                    function = None  # a view whose base was changed: torch refuses to give its grad_fn
                if function is not None:
                    node = private.node_number(function)
                    node_name = self.clock.string(type(function).__name__)
                if private.get_retains_grad(value):
                    flags |= _RETAINS_GRAD
        else:
            flags = _LEAF
        if value.is_inference():
            flags |= _INFERENCE
        return flags, node, node_name

    def _new_geometry(self, key: Any) -> int:
        shape, stride, dtype, device, layout = key
        if not all(type(step) is int for step in stride):
            stride = ()  # of a jagged tensor: not known in whole numbers
        number = len(self.recording.geometries)
        itemsize = torch.empty((), dtype=dtype, device="meta").element_size() if dtype in _ODD else dtype.itemsize
        self.recording.geometries.append(
            Geometry(tuple(shape), tuple(stride), dtype_name(dtype), itemsize, str(device), str(layout)[6:])
        )
        return number

    @staticmethod
    def version(value: Any) -> int:
        """The version counter, -1 for inference tensors, which have none."""
        try:
            return int(private.get_version(value))
        except RuntimeError:
            return NONE

    # ---- storages ------------------------------------------------------------------------------------------------

    def storage(self, value: Any, live: Live | None = None, call: int = NONE) -> int:
        """The number of a storage, made when it is new; a changed size is noted."""
        known = self.storages.get(id(value))
        nbytes = value.nbytes()
        if known is not None and known() is value:
            if known.nbytes != nbytes:
                known.nbytes = nbytes
                self.recording.resizes.add(self.clock.step, known.number, nbytes)
            return known.number
        if len(self.freed) > _MANY:
            self.note_freed()
        ref = StorageRef(value, self.freed.append)
        storages = self.recording.storages
        ref.number = number = len(storages.flat) // storages.width
        ref.nbytes = nbytes
        ref.home = live.counter if live is not None else NONE
        ref.first = live
        self.storages[id(value)] = ref
        device = value.device
        name = self.devices.get(device)
        if name is None:
            name = self.devices[device] = self.clock.string(str(device))
        address = address_of(value) if device.type == "cpu" else 0
        storages.flat.frombytes(storages.pack(nbytes, name, self.clock.step, call, NONE, address))
        return number

    def tells(self, value: Any, live: Live) -> bool:
        """Does writing through this tensor tell the version counter that stands for the memory?

        The first tensor on a storage may be gone (`nn.Parameter(torch.empty(...))`): then the writer's counts.
        """
        try:
            known = self.storages.get(id(private.get_storage(value)))
        except (RuntimeError, NotImplementedError):
            return True  # a wrapped tensor, without memory of its own: nothing says otherwise
        if known is None or known.home == live.counter:
            return True
        if known.first is None or known.first() is None:
            known.home, known.first = live.counter, live
            return True
        return False

    def keep_home(self, alias: Any, source: Live) -> None:
        """`alias` has a version counter of its own (`.data`): it must not become the one that stands for the memory."""
        known = self.storages.get(id(private.get_storage(alias)))
        if known is not None and known.home != source.counter and (known.first is None or known.first() is None):
            known.home, known.first = source.counter, source

    def note_freed(self) -> None:
        """The storages that were freed since the last time died in the step that runs. Called before another begins."""
        freed, step = self.freed, self.clock.step
        numbers = [reference.number for reference in freed]
        del freed[: len(numbers)]  # those alone: more may have come meanwhile
        for number in numbers:
            self.deaths.append(number)
            self.deaths.append(step)

    def close(self) -> None:
        """Write the deaths into the table and drop every weak reference."""
        self.note_freed()
        death = self.recording.storages.column("death")
        for number, step in zip(self.deaths[::2], self.deaths[1::2], strict=True):
            death[number] = max(step, 0)
        self.recording.storages.set_column("death", death)
        self.live.clear()
        self.storages.clear()


_ODD = {dtype for dtype in vars(torch).values() if isinstance(dtype, torch.dtype) and not hasattr(dtype, "itemsize")}
