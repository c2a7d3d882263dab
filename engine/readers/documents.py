"""JSON documents, whole files and those in a paste, offered to the kinds that know them.

Tools print JSON when asked to (``dcgmi diag -j``, ``fio --output-format=json`` …). A document is
parsed once, bounded in size, and given to the first kind of `engine.readers.document_table` that
recognises it by its keys.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import orjson

from engine.errors import InputError
from engine.readers.base import Context, Result
from engine.readers.joint import Document, Joint, Together
from engine.readers.text import Source

_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"')
# What a line inside a document begins with; "[   12.3] …" is a line of a kernel log.
_INSIDE = re.compile(
    r"\s*(?:[\"{}\],]|\[(?!\s{0,8}\d+\.\d+\])|-?\d[\d.eE+-]*\s*(?:[,\]}]|$)|true\b|false\b|null\b"
    r"|-?NaN\b|-?Infinity\b|$)"
)

MAX_DOCUMENT: Final = 8 * 1024 * 1024
"""Documents larger than this many bytes are not parsed."""

MAX_LINES: Final = 60_000
"""Nor, within a paste, are those of more lines: they are held until their end is found."""

MAX_MEMORY: Final = 24 * 1024 * 1024
"""Nor are those whose values would take more bytes of memory beside their texts."""

# What a value takes in CPython (bytes): an object of one key, a list of one value, a small value.
_OBJECT, _LIST, _VALUE = 232, 64, 56


@dataclass(frozen=True, slots=True)
class DocumentKind:
    """One kind of JSON document.

    Attributes:
        name: id of the kind, as in ``Read.kinds``.
        detect: whether a parsed value is of this kind; must not raise.
        read: what it shows; ``line`` is where the document starts, from 1. Must not raise.
        together: what all documents of this kind show, where they belong together; ``read`` is not
            called then.
        slim: what of a value is kept for ``together``.
    """

    name: str
    detect: Callable[[object], bool]
    read: Callable[[Any, Context, int], Result] | None
    together: Together | None = None
    slim: Callable[[Any], Any] | None = None


def is_inside(line: str) -> bool:
    """Return whether a line can stand inside a JSON document in several lines."""
    return _INSIDE.match(line) is not None


def fits(raw: bytes) -> bool:
    """Return whether a document is small enough to be parsed; what is in strings counts as well."""
    memory = _OBJECT * raw.count(b"{") + _LIST * raw.count(b"[") + _VALUE * raw.count(b",")
    return len(raw) <= MAX_DOCUMENT and memory <= MAX_MEMORY


def parse(raw: bytes) -> object | None:
    """Return a JSON value, None if the text is no JSON.

    ``NaN`` and ``Infinity``, which several tools print, are understood.
    """
    value: object
    if not fits(raw):
        return None
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        if b"NaN" not in raw and b"Infinity" not in raw:
            return None
        try:
            value = json.loads(raw)
        except (ValueError, RecursionError):
            return None
    return value


def read_document(
    value: object, context: Context, line: int, joint: Joint, name: str = ""
) -> Result | None:
    """Read a parsed document; None if no kind recognises it.

    Args:
        value: the parsed document.
        context: knowledge and judge.
        line: where it starts, from 1.
        joint: keeps it if its kind is judged together with others.
        name: of the input that it stands in.
    """
    from engine.readers.document_table import DOCUMENTS  # noqa: PLC0415 - the kinds import this

    for kind in DOCUMENTS:
        if kind.detect(value):
            result = Result()
            if kind.together is not None:
                kept = value if kind.slim is None else kind.slim(value)
                joint.keep(kind.together, Document(name, line, kept))
            elif kind.read is not None:
                result = kind.read(value, context, line)
            if kind.name not in result.kinds:
                result.kinds.insert(0, kind.name)
            return result
    return None


class DocumentReader:
    """Collects the lines of a JSON document in a paste."""

    triggers: ClassVar[tuple[bytes, ...]] = ()
    # A line that can start a document; "[   12.3] …" is a line of a kernel log.
    pattern: ClassVar[bytes] = rb'(?m)^[ \t]{0,8}(?:\{[ \t\r]*(?:"|$)|\[[ \t\r]*(?:[{"\[]|$))'
    holds: ClassVar[bool] = True
    # Logs in JSON have a document in each line: after so many of no known kind, no more is tried.
    PATIENCE = 200

    def __init__(self, context: Context) -> None:
        self.open = False
        self._context = context
        self._lines: list[str] = []
        self._start = 0
        self._size = self._depth = 0
        self._misses = 0
        self._results: list[Result] = []
        self._joint = Joint(context)
        self._input = ""

    def join(self, joint: Joint, name: str) -> None:
        """Say where documents are kept that belong together, and which input this is."""
        self._joint, self._input = joint, name

    def feed(self, number: int, text: str) -> bool:
        """Take a line; those of a document in several lines are all taken."""
        if not self.open:
            if self._misses >= self.PATIENCE:
                return False
            self._lines, self._start, self._size, self._depth = [], number, 0, 0
        elif not is_inside(text):
            return self._give_up()
        self._lines.append(text)
        self._size += len(text) + 1
        self._depth += _deeper(text)
        if self._depth == 0:
            return self._whole()
        fits = self._size <= MAX_DOCUMENT and len(self._lines) <= MAX_LINES
        self.open = self._depth > 0 and fits
        return self.open or self._give_up()

    def finish(self) -> Result:
        """Return what all documents show."""
        result = merged(self._results)
        if self.open:
            result.notes.append(
                f"No end was found of the JSON document that starts in line {self._start}."
            )
        return result

    def _give_up(self) -> bool:
        """What was collected is no document."""
        self._lines, self.open = [], False
        self._misses += 1
        return False

    def _whole(self) -> bool:
        """Read the lines, whose brackets match."""
        text = "\n".join(self._lines).encode("utf-8", "replace")
        value = parse(text)
        result = None
        if isinstance(value, dict | list):
            result = read_document(value, self._context, self._start, self._joint, self._input)
            if result is None:
                result = _trace(text, self._context)
        self._lines, self.open = [], False
        self._misses = 0 if result else self._misses + 1
        if result is not None:
            self._results.append(result)
        return result is not None


def _trace(text: bytes, context: Context) -> Result | None:
    """Return what a document shows that is a timeline, None if it is none."""
    from engine.readers.tracefile import read_tracefile  # noqa: PLC0415 - formats import this

    try:
        results = read_tracefile(Source(text), context)
    except InputError:
        return None
    return None if results is None else merged(results)


def merged(results: Sequence[Result]) -> Result:
    """Put several results together, in order."""
    whole = Result()
    for one in results:
        whole.kinds += [k for k in one.kinds if k not in whole.kinds]
        whole.findings += one.findings
        whole.causes += [c for c in one.causes if c not in whole.causes]
        whole.notes += one.notes
        whole.diagnoses += one.diagnoses
        whole.unknown += one.unknown
    return whole


def _deeper(text: str) -> int:
    """Return how many more brackets a line opens than it closes, strings left out."""
    bare = _STRING.sub("", text)
    return bare.count("{") + bare.count("[") - bare.count("}") - bare.count("]")
