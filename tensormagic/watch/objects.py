"""What an object of a class holds, read without running any code of its class: through Python's own descriptors only."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from typing import Any

import torch

_mro = type.__dict__["__mro__"].__get__
_class_dict = type.__dict__["__dict__"].__get__
_flags = type.__dict__["__flags__"].__get__  # a metaclass may have an attribute access of its own
_HEAP = 1 << 9  # a class that was made by a `class` statement
_OWN_MODULES = (
    "__main__",
    "builtins",
)  # of a cell; without a `__name__` in its namespace a class is told to be of builtins
# Classes of torch that hold the user's tensors in plain attributes.
_HOLDERS = (torch.utils.data.Dataset, torch.utils.data.DataLoader, torch.distributions.Distribution)


class Classes:
    """Which classes are the user's, and what their instances and they themselves hold.

    Args:
        is_user_code: whether a code object is the user's.
    """

    def __init__(self, is_user_code: Callable[[Any], bool]) -> None:
        self.is_user_code = is_user_code
        self.users: dict[type, bool] = {}
        self.bases: dict[type, tuple[type, ...]] = {}  # class -> those of its mro that are the user's
        self.slots: dict[type, tuple[tuple[str, Any], ...]] = {}

    def is_followed(self, kind: type) -> bool:
        """Are the attributes of its instances the user's business? A namespace's, a dataclass's, those of their classes."""
        if kind is types.SimpleNamespace:
            return True
        if not _flags(kind) & _HEAP:
            return False
        line = _mro(kind)
        return any(base in line for base in _HOLDERS) or bool(self.of_user(kind))

    def of_user(self, kind: type) -> tuple[type, ...]:
        """The class and those it inherits from, as far as they are the user's."""
        found = self.bases.get(kind)
        if found is None:
            found = self.bases[kind] = tuple(base for base in _mro(kind) if self.is_users(base))
        return found

    def is_users(self, kind: type) -> bool:
        """Was this class made by the user's code? Told by its functions, its module, or its being a dataclass."""
        known = self.users.get(kind)
        if known is None:
            members = _class_dict(kind)
            known = self.users[kind] = bool(_flags(kind) & _HEAP) and (
                (type(module := members.get("__module__")) is str and module in _OWN_MODULES)
                or "__dataclass_fields__" in members
                or any(map(self._is_users_function, members.values()))
            )
        return known

    def _is_users_function(self, member: Any) -> bool:
        function = member.__func__ if type(member) in (staticmethod, classmethod) else member
        return type(function) is types.FunctionType and self.is_user_code(function.__code__)

    def own(self, value: Any) -> dict[str, Any]:
        """An object's own attributes: its `__dict__` and its slots."""
        found = attributes(value)
        slots = self.slots.get(type(value))
        if slots is None:
            slots = self.slots[type(value)] = tuple(_slots(type(value)))
        if not slots:
            return found
        filled = dict(found)
        for name, member in slots:
            try:
                filled[name] = member.__get__(value)
            except AttributeError:
                pass  # nothing was put into this slot
        return filled

    def shared(self, kind: type) -> Iterator[tuple[str, Any]]:
        """(name, value) of what a class holds itself, for all instances: no method, no descriptor, no name of Python's."""
        for name, value in list(_class_dict(kind).items()):
            if type(value) not in _DESCRIPTORS and type(name) is str and not name.startswith("__"):
                yield name, value


def attributes(value: Any) -> dict[str, Any]:
    """An object's `__dict__`; empty where its class gives one of its own making."""
    member = _attributes_member(type(value))
    if member is None:
        return {}
    found = member.__get__(value)
    return found if type(found) is dict else {}


def _attributes_member(kind: type) -> Any:
    """The descriptor through which Python itself gives an object's `__dict__`; None where a class has its own."""
    for base in _mro(kind):
        member = _class_dict(base).get("__dict__")
        if member is not None:
            return member if type(member) in (types.GetSetDescriptorType, types.MemberDescriptorType) else None
    return None


def _slots(kind: type) -> Iterator[tuple[str, Any]]:
    """(name, descriptor) of the slots of a class that a `class` statement made."""
    for base in _mro(kind):
        if _flags(base) & _HEAP and "__slots__" in _class_dict(base):
            for name, member in _class_dict(base).items():
                if type(member) is types.MemberDescriptorType and type(name) is str and not name.startswith("__"):
                    yield name, member


_DESCRIPTORS = {
    types.FunctionType, types.MemberDescriptorType, types.GetSetDescriptorType, types.BuiltinFunctionType, property,
    staticmethod, classmethod, type,
}  # fmt: skip
