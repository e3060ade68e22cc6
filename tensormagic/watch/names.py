"""What every name stands for after a step. Looking runs no code of the user's: only exact types are followed, through
the base types' own readers; properties, `__getattr__`, `__iter__` and `__eq__` of theirs are never asked.
"""

from __future__ import annotations

import collections
import functools
import re
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import torch

from tensormagic.recording.model import NONE, ObjectKind, PathKind, Recording
from tensormagic.watch import private
from tensormagic.watch.arrays import Arrays
from tensormagic.watch.clock import Clock
from tensormagic.watch.memory import Live, Memory, Unreferable
from tensormagic.watch.objects import Classes
from tensormagic.watch.objects import attributes as attributes_of
from tensormagic.watch.options import Options
from tensormagic.watch.writes import Writes

# What IPython puts into the user's namespace.
_HIDDEN = re.compile(r"__.*__|_+|_\d+|_i+|_i\d+|_oh|_ih|_dh|In|Out|exit|quit|get_ipython|open|display")
_MAPPINGS = (dict, collections.OrderedDict, collections.defaultdict)
_SEQUENCES = (list, tuple, collections.deque)
_mro = type.__dict__["__mro__"].__get__
_NOTHING = 0


@functools.lru_cache(maxsize=4096)
def hidden(name: str) -> bool:
    """Is this one of the names that IPython or Python itself keeps in the namespace?"""
    return _HIDDEN.fullmatch(name) is not None


class Names:
    """Looks at names and writes down what changed.

    Args:
        recording, clock, memory, writes: what the watchers of one trace share.
        options: bounds.
        is_user_class: whether a class's module is the user's (its instances' attributes are followed).
    """

    def __init__(
        self, recording: Recording, clock: Clock, memory: Memory, writes: Writes, options: Options,
        is_user_code: Callable[[Any], bool],
    ) -> None:  # fmt: skip
        self.recording, self.clock, self.memory, self.writes, self.options = recording, clock, memory, writes, options
        self.is_user_code = is_user_code
        self.classes = Classes(is_user_code)
        self.arrays = Arrays(recording, clock, memory, writes)
        self.followers: dict[type, Any] = {}
        self.paths: dict[tuple[int, int, int], int] = {}
        self.bound: dict[int, dict[int, int]] = {}  # frame -> path -> object
        self.groups: dict[int, list[list[int]]] = {}  # optimizer -> its groups
        self.lengths: dict[int, Any] = {}
        self.count = 0
        self.late = 0
        self._seen: dict[int, int] = {}
        self._open: set[int] = set()
        self.tensors: list[tuple[Any, Live]] = []  # of one look at the end, for the graph walks

    # ---- a look --------------------------------------------------------------------------------------------------

    def look(self, frame: int, variables: dict[str, Any], late: int = 0, stored: dict[str, int] | None = None) -> None:
        """Compare what `variables` of `frame` reach with what they reached before.

        Args:
            frame: index of the frame, 0 for the cell's own namespace.
            variables: name -> value; not kept.
            late: the change may be older than this step.
            stored: name -> the light step whose line stored it last: that much is known of an older change.
        """
        before = self.bound.setdefault(frame, {})
        self.late = late
        self._seen = seen = {}
        self._open.clear()
        self.count = 0
        watch = self.options.watch if not frame else None
        for name, value in list(variables.items()):
            if type(value) in _ATOMS or type(name) is not str:
                continue
            if not frame and (hidden(name) or (watch is not None and name not in watch)):
                continue
            self._visit(value, self._path(NONE, PathKind.VARIABLE, self.clock.string(name)), 0)
        if seen != before:
            self._update(before, seen, frame, stored or {})

    def _update(self, before: dict[int, int], seen: dict[int, int], frame: int, stored: dict[str, int]) -> None:
        add, now, late = self.recording.bindings.add, self.clock.step, self.late
        for path, number in seen.items():
            if before.get(path) != number:
                step = stored.get(self._variable(path), NONE) if stored else NONE
                add(now if step < 0 else step, frame, path, number, late if step < 0 else 0)
        for path in before:
            if path not in seen:
                add(now, frame, path, NONE, late)
        self.bound[frame] = seen

    def _variable(self, path: int) -> str:
        """The name of a path that is a variable itself, "" of any other."""
        row = self.recording.paths[path]
        return self.recording.strings[row.key] if row.parent < 0 else ""

    def forget(self, frame: int) -> None:
        """The frame is gone."""
        self.bound.pop(frame, None)

    # ---- following -----------------------------------------------------------------------------------------------

    def _path(self, parent: int, kind: int, key: int) -> int:
        mark = (parent, kind, key)
        number = self.paths.get(mark)
        if number is None:
            number = self.paths[mark] = len(self.recording.paths)
            self.recording.paths.add(parent, kind, key)
        return number

    def _visit(self, value: Any, path: int, depth: int) -> None:
        kind = type(value)
        follow = self.followers.get(kind)
        if follow is None:
            follow = self.followers[kind] = self._follower(kind)
        if follow is _NOTHING:
            return
        if self.count >= self.options.max_names:
            self.clock.notice("names-bound", names=self.options.max_names)
            return
        self.count += 1
        follow(value, path, depth)

    def _follower(self, kind: type) -> Any:
        """How values of this exact type are followed; `_NOTHING` where they are not."""
        line = _mro(kind)
        if torch.Tensor in line:
            return self._tensor
        if np.ndarray in line:
            return self._array
        if torch.nn.Module in line:
            return self._module
        if torch.optim.Optimizer in line:
            return self._optimizer
        if any(base in line for base in _SEQUENCES):
            return self._sequence
        if dict in line:
            return self._mapping
        if types.FunctionType is kind:
            return self._function
        if kind is type:
            return self._class
        if self.classes.is_followed(kind):
            return self._instance
        return _NOTHING

    def _known(self, value: Any, kind: int) -> Live:
        """The record of a value that is no tensor. Lists and dicts allow no weak reference: they are known as long as
        the same path shows the same address in look after look, which the table of lengths keeps track of."""
        live = self.memory.live.get(id(value))
        if live is not None and (live() is value or (type(live) is Unreferable and live.type == id(type(value)))):
            return live
        return self.memory.register(value, kind)

    def _tensor(self, value: Any, path: int, depth: int) -> None:
        live = self.memory.tensor(value)
        self._seen[path] = live.object
        self.tensors.append((value, live)) if self._collect else None
        self.writes.look(value, live)
        if private.get_requires_grad(value) and (private.get_is_leaf(value) or private.get_retains_grad(value)):
            grad = private.get_grad(value)
            if grad is not None:
                self._visit(grad, self._path(path, PathKind.GRAD, NONE), depth)

    _collect = False

    def _array(self, value: Any, path: int, depth: int) -> None:
        number = self.arrays.number(value)
        if number >= 0:
            self._seen[path] = number

    def _enter(self, value: Any, kind: int, path: int, depth: int) -> bool:
        """Bind a value that contains others; False where it is not to be followed (a cycle, the bound)."""
        self._seen[path] = self._known(value, kind).object
        if id(value) in self._open:
            return False
        if depth >= self.options.depth:
            return False
        self._open.add(id(value))
        return True

    def _sequence(self, value: Any, path: int, depth: int) -> None:
        plain = tuple if tuple in _mro(type(value)) else list if list in _mro(type(value)) else collections.deque
        size = plain.__len__(value)
        if not self._enter(value, ObjectKind.CONTAINER, path, depth):
            return
        limit = self.options.max_items
        if size > limit:
            self.clock.notice("items-bound", str(path), items=limit, of=size)
        fields = _fields(type(value)) if plain is tuple else None
        indices = range(size) if size <= limit else [*range(limit), size - 1]
        for index, item in _items(plain, value, indices):
            if type(item) not in _ATOMS:
                if type(fields) is tuple and index < len(fields) and type(fields[index]) is str:
                    inner = self._path(path, PathKind.ATTRIBUTE, self.clock.string(fields[index]))
                    self._visit(item, inner, depth + 1)
                self._visit(item, self._path(path, PathKind.ITEM, index), depth + 1)
        self._open.discard(id(value))

    def _mapping(self, value: Any, path: int, depth: int) -> None:
        if not self._enter(value, ObjectKind.CONTAINER, path, depth):
            return
        if dict.__len__(value) > self.options.max_items * 10:
            self.clock.notice("items-bound", str(path), items=self.options.max_items * 10, of=dict.__len__(value))
        for index, (key, item) in enumerate(list(dict.items(value))):
            if index >= self.options.max_items * 10:
                break
            if type(item) not in _ATOMS and _is_plain(key):
                self._visit(item, self._path(path, PathKind.KEY, self.clock.string(repr(key))), depth + 1)
        self._open.discard(id(value))

    def _function(self, value: Any, path: int, depth: int) -> None:
        """A default argument lives as long as the function: the one list or tensor that every call shares."""
        defaults = value.__defaults__
        if defaults and self.is_user_code(value.__code__):
            inner = self._path(path, PathKind.ATTRIBUTE, self.clock.string("__defaults__"))
            for index, item in enumerate(defaults):
                if type(item) not in _ATOMS:
                    self._visit(item, self._path(inner, PathKind.ITEM, index), depth + 1)

    def _instance(self, value: Any, path: int, depth: int) -> None:
        if self._enter(value, ObjectKind.INSTANCE, path, depth):
            own = self.classes.own(value)
            self._attributes(own, path, depth, ())
            self._shared(type(value), path, depth, own)
            self._open.discard(id(value))

    def _shared(self, kind: type, path: int, depth: int, own: Any) -> None:
        """What an object reaches through its class: one list or tensor for all its instances."""
        for base in self.classes.of_user(kind):
            for name, item in self.classes.shared(base):
                if type(item) not in _ATOMS and name not in own:
                    self._visit(item, self._path(path, PathKind.ATTRIBUTE, self.clock.string(name)), depth + 1)

    def _class(self, value: Any, path: int, depth: int) -> None:
        if depth < self.options.depth and self.classes.is_users(value) and tuple not in _mro(value):
            for name, item in self.classes.shared(value):
                if type(item) not in _ATOMS:
                    self._visit(item, self._path(path, PathKind.ATTRIBUTE, self.clock.string(name)), depth + 1)

    def _module(self, value: Any, path: int, depth: int) -> None:
        if not self._enter(value, ObjectKind.MODULE, path, depth):
            return
        attributes = attributes_of(value)
        kind = _mro(type(value))
        indexed = torch.nn.ModuleList in kind or torch.nn.Sequential in kind or torch.nn.ParameterList in kind
        keyed = torch.nn.ModuleDict in kind or torch.nn.ParameterDict in kind
        for group, how in _REGISTERED:
            members = attributes.get(group)
            if dict not in _mro(type(members)):  # its truth is not asked: that may be code of the user's
                continue
            for name, item in list(dict.items(members)):
                if item is None or type(name) is not str:
                    continue
                if indexed and name.isdigit():
                    inner = self._path(path, PathKind.ITEM, int(name))
                elif keyed:
                    inner = self._path(path, PathKind.KEY, self.clock.string(repr(name)))
                else:
                    inner = self._path(path, how, self.clock.string(name))
                self._visit(item, inner, depth + 1 if how != PathKind.SUBMODULE else depth)
        self._attributes(attributes, path, depth, _MODULE_STATE)
        self._shared(type(value), path, depth, attributes)
        self._open.discard(id(value))

    def _attributes(self, attributes: dict[str, Any], path: int, depth: int, without: Any) -> None:
        for name, item in list(attributes.items()):
            if type(name) is str and type(item) not in _ATOMS and name not in without:
                self._visit(item, self._path(path, PathKind.ATTRIBUTE, self.clock.string(name)), depth + 1)

    def _optimizer(self, value: Any, path: int, depth: int) -> None:
        live = self._known(value, ObjectKind.OPTIMIZER)
        self._seen[path] = live.object
        groups = attributes_of(value).get("param_groups")
        if type(groups) is not list:
            return
        found = []
        for group in groups:
            members = group.get("params") if type(group) is dict else None
            given = list.__getitem__(members, slice(None)) if list in _mro(type(members)) else []
            found.append([self.memory.tensor(p).object for p in given if torch.Tensor in _mro(type(p))])
        if self.groups.get(live.object) != found:
            self.groups[live.object] = found
            for index, members in enumerate(found):
                self.recording.optimizer_groups.add(
                    self.clock.step, live.object, index, len(self.recording.members), len(members)
                )
                for number in members:
                    self.recording.members.add(number)

    def collect(
        self, frame: int, variables: dict[str, Any], late: int, stored: dict[str, int]
    ) -> list[tuple[Any, Live]]:
        """A last look that also gives the tensors that names reach; the caller drops them at once."""
        self._collect = True
        try:
            self.look(frame, variables, int(late), stored)
            return self.tensors
        finally:
            self._collect = False
            self.tensors = []


def _fields(kind: type) -> Any:
    """The names of a named tuple's items, or of what torch's functions return (`x.max(dim=1).values`)."""
    own = type.__dict__["__dict__"].__get__(kind)
    return own.get("__match_args__") if "n_sequence_fields" in own else own.get("_fields")


def _items(kind: Any, value: Any, indices: Iterable[int]) -> Iterator[tuple[int, Any]]:
    """Items of a list, tuple or deque, read as `kind` reads them."""
    for index in indices:
        try:
            item = kind.__getitem__(value, index)
        except IndexError:
            return  # another thread has shortened it since its length was asked: it has no more items
        yield index, item


def _is_plain(key: Any) -> bool:
    """Can a dict's key be written down without asking code of the user's?"""
    kind = type(key)
    return kind in _KEYS or (kind is tuple and all(type(part) in _KEYS for part in key))


_KEYS = {str, int, float, bool, type(None)}
_ATOMS = {int, float, bool, str, bytes, complex, type(None), torch.dtype, torch.device, torch.Size, range, slice}
_ATOMS |= {types.ModuleType, types.BuiltinFunctionType, types.MethodType}
_REGISTERED = (
    ("_parameters", PathKind.PARAMETER), ("_buffers", PathKind.BUFFER), ("_modules", PathKind.SUBMODULE),
)  # fmt: skip
_MODULE_STATE = {
    "_parameters", "_buffers", "_modules", "training", "_non_persistent_buffers_set", "_backward_pre_hooks",
    "_backward_hooks", "_is_full_backward_hook", "_forward_hooks", "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called", "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs", "_state_dict_hooks",
    "_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks",
}  # fmt: skip
