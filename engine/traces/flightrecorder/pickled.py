"""Read the pickles that PyTorch's Flight Recorder writes, without executing anything in them.

A pickle is a program: it may import and call what it likes. Here nothing can be imported but three
names that PyTorch's own writer uses for lists of numbers, and those stand for a plain list; a
pickle that asks for more, or that could be made to use much memory, is refused before it is run.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from collections.abc import Iterator
from itertools import chain
from typing import Any, Final

from engine.errors import InputError

MAX_PICKLE: Final = 24 * 1024 * 1024
"""Larger dumps (bytes) are not read: 2,000 collectives with stacks take some 10 MB."""

MAX_OPERATIONS: Final = 1_500_000
"""Nor are those of more steps: an entry with its stack takes some 200."""

MAX_VALUES: Final = 3_000_000
MAX_DEPTH: Final = 32
"""Nor those of more values, or nested deeper."""

# Steps that build numbers, texts, tuples, lists and dictionaries. What calls something or imports
# is not here, except for the two that build a list of numbers (checked in `Unpickler`).
_PLAIN: Final = frozenset(
    (
        "PROTO",
        "FRAME",
        "STOP",
        "MARK",
        "POP",
        "POP_MARK",
        "DUP",
        "NONE",
        "NEWTRUE",
        "NEWFALSE",
        "INT",
        "BININT",
        "BININT1",
        "BININT2",
        "LONG",
        "LONG1",
        "LONG4",
        "FLOAT",
        "BINFLOAT",
        "UNICODE",
        "BINUNICODE",
        "SHORT_BINUNICODE",
        "BINUNICODE8",
        "STRING",
        "BINSTRING",
        "SHORT_BINSTRING",
        "BINBYTES",
        "SHORT_BINBYTES",
        "BINBYTES8",
        "EMPTY_LIST",
        "LIST",
        "APPEND",
        "APPENDS",
        "EMPTY_TUPLE",
        "TUPLE",
        "TUPLE1",
        "TUPLE2",
        "TUPLE3",
        "EMPTY_DICT",
        "DICT",
        "SETITEM",
        "SETITEMS",
        "GET",
        "BINGET",
        "LONG_BINGET",
        "PUT",
        "BINPUT",
        "LONG_BINPUT",
        "MEMOIZE",
        "GLOBAL",
        "STACK_GLOBAL",
        "REDUCE",
    )
)
_PUTS: Final = frozenset(("PUT", "BINPUT", "LONG_BINPUT"))
# pytorch torch/csrc/jit/serialization/pickler.cpp: how lists of one type are written.
_LISTS: Final = frozenset(("build_intlist", "build_doublelist", "build_boollist"))
_MODULE: Final = "torch.jit._pickle"


class Unpickler(pickle.Unpickler):
    """Builds plain values only."""

    def find_class(self, module: str, name: str) -> Any:
        """Return what stands for PyTorch's list builders; refuse everything else.

        Raises:
            UnpicklingError: always, except for those.
        """
        if module == _MODULE and name in _LISTS:
            return _listed
        raise pickle.UnpicklingError(f"it asks for {module}.{name}"[:120])

    def persistent_load(self, pid: Any) -> Any:
        """Refuse references to data outside of the pickle.

        Raises:
            UnpicklingError: always.
        """
        raise pickle.UnpicklingError(f"it refers to data outside ({type(pid).__name__})")


def loads(raw: bytes) -> object:
    """Return the value that a pickle of plain data holds.

    Raises:
        InputError: it is broken, too large, or would execute something.
    """
    if len(raw) > MAX_PICKLE:
        raise InputError(
            f"the pickle has {len(raw) >> 20} MiB, more than {MAX_PICKLE >> 20}",
            hint="record fewer collectives (TORCH_FR_BUFFER_SIZE), or dump without stacks",
        )
    try:
        _check(raw)
        value: object = Unpickler(io.BytesIO(raw), encoding="utf-8", errors="replace").load()
        return _bounded(value)
    except InputError:
        raise
    except Exception as error:
        raise _refused(str(error) or type(error).__name__) from error


def _check(raw: bytes) -> None:
    """Walk the steps without running them.

    Raises:
        InputError: one of them is not plain, or there are too many.
    """
    for count, (step, argument, _) in enumerate(pickletools.genops(raw), 1):
        if step.name not in _PLAIN:
            raise _refused(f"it uses {step.name}, which builds more than plain data")
        if count > MAX_OPERATIONS:
            raise _refused(f"it has more than {MAX_OPERATIONS:,} steps")
        # The place in the memo is allocated as a whole up to that number.
        if step.name in _PUTS and isinstance(argument, int) and argument > count:
            raise _refused("its memo numbers make no sense")


def _bounded(value: object) -> object:
    """Return a value if it is as large as its text: memo references can make it far larger.

    Raises:
        InputError: it has more than `MAX_VALUES` values, counted as often as they are referred to,
            or is nested deeper than `MAX_DEPTH`.
    """
    left: list[Iterator[object]] = [iter((value,))]
    count = 0
    while left:
        for one in left[-1]:
            count += 1
            if count > MAX_VALUES or len(left) > MAX_DEPTH:
                raise _refused("its values refer to each other, or are nested, beyond any dump")
            if isinstance(one, dict):
                left.append(chain.from_iterable(one.items()))
                break
            if isinstance(one, list | tuple):
                left.append(iter(one))
                break
        else:
            left.pop()
    return value


def _listed(values: Any) -> list[Any]:
    """Stand for a list builder."""
    return list(values) if isinstance(values, list | tuple) else []


def _refused(why: str) -> InputError:
    printable = "".join(c if c.isprintable() else " " for c in why)[:160]
    return InputError(
        f"the pickle is not read: {printable}",
        hint="only dumps of PyTorch's Flight Recorder are read; nothing in a pickle is executed. "
        "Give the JSON form if the dump comes from elsewhere",
    )
