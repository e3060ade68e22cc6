"""Rows of whole numbers, kept flat: the form in which a long trace stays small.

A table knows the fields of its rows from a NamedTuple and keeps all rows in one `array('q')`. Adding a row is one call,
reading one gives the NamedTuple back. Strings, shapes and bytes live in side lists and are referred to by index.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from struct import Struct
from typing import Any, Generic, NamedTuple, TypeVar

Row = TypeVar("Row", bound=NamedTuple)


class Table(Generic[Row]):
    """A growing list of rows of 64-bit whole numbers.

    Args:
        row: the NamedTuple class of a row; every field is an int.
        flat: the rows one after the other, when they are there already (a loaded file).
    """

    __slots__ = ("flat", "pack", "row", "unpack", "width")

    def __init__(self, row: type[Row], flat: Any = ()) -> None:
        self.row = row
        self.width = len(row._fields)
        self.flat = array("q", flat)
        shape = Struct(f"{self.width}q")
        self.unpack = shape.unpack_from
        self.pack = shape.pack  # packing is half the price of array.extend
        if len(self.flat) % self.width:
            raise ValueError(f"{row.__name__}: {len(self.flat)} numbers do not make rows of {self.width}")

    def add(self, *values: int) -> None:
        """Append one row; the caller gives exactly `width` numbers (not checked: this is the hot path)."""
        self.flat.frombytes(self.pack(*values))

    def __len__(self) -> int:
        return len(self.flat) // self.width

    def __getitem__(self, index: int) -> Row:
        flat, width = self.flat, self.width
        start = index * width
        if index < 0:
            start += len(flat)
        if not 0 <= start < len(flat):
            raise IndexError(f"{self.row.__name__} {index} of {len(self)}")
        return self.row._make(self.unpack(flat, start * 8))

    def __iter__(self) -> Iterator[Row]:
        row, width, flat = self.row, self.width, self.flat
        for start in range(0, len(flat), width):
            yield row(*flat[start : start + width])

    def column(self, field: str) -> array[int]:
        """Every row's value of one field, in order."""
        return self.flat[self.row._fields.index(field) :: self.width]

    def set_column(self, field: str, values: Any) -> None:
        """Replace every row's value of one field; `values` has one number a row."""
        self.flat[self.row._fields.index(field) :: self.width] = array("q", values)
