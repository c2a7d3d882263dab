"""Reading one YAML file into plain data, with the place of everything in it.

Only the part of YAML that reads the same everywhere is accepted: mappings with text keys, lists,
text, whole numbers, decimal numbers, ``true``/``false`` and ``null``. Anchors, aliases, tags,
merge keys, several documents, duplicate keys and the words that YAML 1.1 turns into something
else (``yes``, ``12:30``, ``2026-01-31``, ``010`` …) are refused with a hint, so that a file can
neither blow up in memory nor mean something its author did not see. Parsing is done by libyaml
(PyYAML's C loader); the data is built from its events here, so nothing is ever instantiated.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from engine.catalogue.scalars import plain_scalar
from engine.catalogue.types import Place
from engine.errors import CatalogueError, Problem

MAX_DEPTH = 24

Steps = tuple[str | int, ...]

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class Document:
    """One parsed file: ``data`` is its top mapping, ``values`` and ``keys`` say where things are.

    A path is the keys and list positions that lead to a value: ``("tests", 0, "given")``.
    """

    file: str
    data: dict[str, Any]
    values: dict[Steps, tuple[int, int]]
    keys: dict[Steps, tuple[int, int]]

    def place(self, path: Steps = ()) -> Place:
        """Return where a value starts, or the nearest thing around it that is in the file."""
        return Place(self.file, *_nearest_mark(self.values, path))

    def key_place(self, path: Steps) -> Place:
        """Return where the key of a value stands (for keys that should not be there)."""
        return Place(self.file, *(self.keys.get(path) or _nearest_mark(self.values, path)))

    def problem(self, path: Steps, message: str, hint: str = "", *, key: bool = False) -> Problem:
        """Return a problem at a value, or at its key."""
        place = self.key_place(path) if key else self.place(path)
        return Problem(place.file, place.line, place.column, message, hint)


def _nearest_mark(marks: dict[Steps, tuple[int, int]], path: Steps) -> tuple[int, int]:
    while path and path not in marks:
        path = path[:-1]
    return marks.get(path, (1, 1))


def parse_yaml(raw: bytes, shown: str) -> Document:
    """Parse the bytes of one file; ``shown`` is how messages name it.

    Raises:
        CatalogueError: the text is no YAML, or uses what is refused here.
    """
    text = _decode(raw, shown)
    builder = _Builder(shown, text)
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        builder.problems.append(_syntax(shown, text, error))
    except yaml.YAMLError as error:
        message = f"is not valid YAML: {error}"
        builder.problems.append(Problem(shown, 1, 1, message, "check the characters in the file"))
    except _StopReadingError:
        pass
    data = builder.root
    if not builder.problems:
        if data is None:
            raise _one(shown, "is empty", "write at least one entry, or delete the file")
        if not isinstance(data, dict):
            found = describe(data)
            raise _one(shown, f"must hold a mapping at the top, found {found}", "start with 'key:'")
        return Document(shown, data, builder.values, builder.keys)
    raise CatalogueError(builder.problems)


def describe(value: Any) -> str:
    """Name a YAML value for a message: ``the text 'abc'``, ``the number 5``, ``a list``."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, str):
        short = value if len(value) <= 40 else value[:37] + "..."
        return f"the text {short!r}"
    return "a list" if isinstance(value, list | tuple) else "a mapping"


def _one(shown: str, message: str, hint: str) -> CatalogueError:
    return CatalogueError([Problem(shown, 1, 1, message, hint)])


def _decode(raw: bytes, shown: str) -> str:
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        line = before.count(b"\n") + 1
        column = error.start - (before.rfind(b"\n") + 1) + 1
        problem = Problem(shown, line, column, "is not UTF-8 text", "save the file as UTF-8")
        raise CatalogueError([problem]) from error
    bad = _CONTROL.search(text)
    if bad:
        line = text.count("\n", 0, bad.start()) + 1
        column = bad.start() - (text.rfind("\n", 0, bad.start()) + 1) + 1
        message = f"holds a control character (U+{ord(bad[0]):04X})"
        raise CatalogueError([Problem(shown, line, column, message, "remove it")])
    return text


def _syntax(shown: str, text: str, error: yaml.MarkedYAMLError) -> Problem:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    lines = text.splitlines()
    here = lines[line - 1] if 0 < line <= len(lines) else ""
    if "\t" in here[: len(here) - len(here.lstrip())] or here[column - 1 : column] == "\t":
        message = "a tab is used for indentation, which YAML forbids"
        return Problem(shown, line, here.index("\t") + 1, message, "use spaces")
    what = (error.problem or "cannot be parsed").strip()
    hint = "check indentation and quotes here"
    if "mapping values are not allowed" in what:
        hint = "put the text in quotes if it holds ': '"
    return Problem(shown, line, column, f"is not valid YAML: {what}", hint)


class _StopReadingError(Exception):
    """Raised inside this module when reading on would be pointless or costly."""


@dataclass(slots=True)
class _Open:
    """A mapping or list that is being filled. ``key`` is the key whose value comes next."""

    holder: dict[str, Any] | list[Any]
    path: Steps
    key: str | None = None
    skip: bool = False


@dataclass(slots=True)
class _Builder:
    """Builds data from parser events, one at a time, without recursion."""

    file: str
    text: str
    root: Any = None
    problems: list[Problem] = field(default_factory=list)
    values: dict[Steps, tuple[int, int]] = field(default_factory=dict)
    keys: dict[Steps, tuple[int, int]] = field(default_factory=dict)
    _stack: list[_Open] = field(default_factory=list)
    _documents: int = 0
    _lines: list[str] | None = None

    def take(self, event: yaml.Event) -> None:
        """Work one parser event in."""
        if isinstance(event, yaml.ScalarEvent):
            self._scalar(event)
        elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            self._open(event)
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            self._stack.pop()
        elif isinstance(event, yaml.AliasEvent):
            self._refuse(event, f"alias '*{event.anchor}' is not allowed", "write the value out")
        elif isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                self._refuse(event, "a second document starts here", "use one file for each")

    def _refuse(self, event: yaml.Event, message: str, hint: str) -> None:
        self._report(event, message, hint)
        raise _StopReadingError

    def _report(self, event: yaml.Event, message: str, hint: str) -> None:
        line, column = _mark(event)
        self.problems.append(Problem(self.file, line, column, message, hint))

    def _node_checks(self, event: yaml.NodeEvent, tag: str | None) -> None:
        if event.anchor:
            self._refuse(event, f"anchor '&{event.anchor}' is not allowed", "write the value out")
        if tag not in {None, "!", "tag:yaml.org,2002:str"}:
            self._report(event, f"tag '{tag}' is not allowed", "remove it")

    def _open(self, event: yaml.MappingStartEvent | yaml.SequenceStartEvent) -> None:
        self._node_checks(event, event.tag)
        if len(self._stack) >= MAX_DEPTH:
            self._refuse(event, f"is nested deeper than {MAX_DEPTH} levels", "flatten it")
        holder: dict[str, Any] | list[Any]
        holder = {} if isinstance(event, yaml.MappingStartEvent) else []
        parent = self._stack[-1] if self._stack else None
        if parent and isinstance(parent.holder, dict) and parent.key is None and not parent.skip:
            self._refuse(event, "a key must be text", "put the key in quotes")
        path = self._place_value(holder, _mark(event))
        self._stack.append(_Open(holder, path))

    def _place_value(self, value: Any, mark: tuple[int, int]) -> Steps:
        """Put a value where the parser stands; return its path."""
        if not self._stack:
            self.root = value
            self.values[()] = mark
            return ()
        parent = self._stack[-1]
        if isinstance(parent.holder, list):
            path = (*parent.path, len(parent.holder))
            parent.holder.append(value)
        else:
            key = parent.key
            path = (*parent.path, key or "")
            if key is not None and not parent.skip:
                parent.holder[key] = value
            parent.key, parent.skip = None, False
        self.values.setdefault(path, mark)
        return path

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        self._node_checks(event, event.tag)
        parent = self._stack[-1] if self._stack else None
        if parent and isinstance(parent.holder, dict) and parent.key is None and not parent.skip:
            self._key(parent, event)
            return
        self._place_value(self._resolve(event), self._content_mark(event))

    def _key(self, parent: _Open, event: yaml.ScalarEvent) -> None:
        value = self._resolve(event)
        if isinstance(value, bool | float) or value is None:
            self._report(event, f"a key must be text, found {describe(value)}", "put it in quotes")
            value = event.value
        key = str(value)
        path = (*parent.path, key)
        if key in parent.holder:
            first = self.keys[path][0]
            hint = "remove one of them"
            self._report(event, f"key '{key}' is written twice (first in line {first})", hint)
            parent.skip = True
        else:
            self.keys[path] = _mark(event)
        parent.key = key

    def _resolve(self, event: yaml.ScalarEvent) -> Any:
        """Return what a scalar means; quoted and block text is always text."""
        text: str = event.value
        if event.tag is not None or event.style not in {None, ""}:
            return text
        value, complaint = plain_scalar(text)
        if complaint:
            self._report(event, complaint, "put it in quotes if it is text")
        return value

    def _content_mark(self, event: yaml.ScalarEvent) -> tuple[int, int]:
        """Return where the characters of a text begin: behind a quote, below a block's ``|``."""
        line, column = _mark(event)
        if event.style in {"'", '"'}:
            return line, column + 1
        if event.style not in {"|", ">"}:
            return line, column
        if self._lines is None:
            self._lines = self.text.splitlines()
        for number in range(line, len(self._lines)):
            content = self._lines[number]
            if content.strip():
                return number + 1, len(content) - len(content.lstrip()) + 1
        return line, column


def _mark(event: yaml.Event) -> tuple[int, int]:
    mark = event.start_mark
    return (mark.line + 1, mark.column + 1) if mark else (1, 1)
