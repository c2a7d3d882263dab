"""The neutral answer: what a command says, before anybody decides how it looks.

A command returns an `Answer`: a title line, blocks for people, and ``data`` for programs. Blocks
hold text as data (`Span` with a mark and a tone), never as markup, so that a label or a log line
from outside cannot become formatting, a mention or an escape sequence in any renderer. Renderers
are pure functions from an `Answer` to text, Slack blocks or HTML.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Any

from engine.errors import GpuwhyError
from engine.model import Step


class Mark(StrEnum):
    """What a span is."""

    PLAIN = "plain"
    STRONG = "strong"
    CODE = "code"
    MUTED = "muted"


class Tone(StrEnum):
    """How a span is meant; a renderer without colour may drop it, the words say it too."""

    NEUTRAL = "neutral"
    GOOD = "good"
    INFO = "info"
    WARNING = "warning"
    BAD = "bad"


class Level(IntEnum):
    """How bad an answer is, for ``--fail-on``: met when the answer's level is at least that.

    info: only benign findings. unknown: no verdict could be given. degraded: some cause holds,
    whatever its severity. The rest are the severities of the worst cause.
    """

    CLEAR = 0
    INFO = 1
    UNKNOWN = 2
    DEGRADED = 3
    LOW = 4
    MEDIUM = 5
    HIGH = 6
    CRITICAL = 7


class Align(StrEnum):
    """Side to which a table column is set."""

    LEFT = "left"
    RIGHT = "right"


class NoteKind(StrEnum):
    """What sort of note it is."""

    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Span:
    """A run of text with one mark and one tone."""

    text: str
    mark: Mark = Mark.PLAIN
    tone: Tone = Tone.NEUTRAL


Line = tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Heading:
    """The head of a part of the answer; level 1 is the part, 2 a part of that."""

    line: Line
    level: int = 1


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph."""

    line: Line


@dataclass(frozen=True, slots=True)
class Fields:
    """Short facts, each with its name."""

    pairs: tuple[tuple[str, Line], ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells; every row and ``align`` are as long as ``columns``."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Line, ...], ...]
    align: tuple[Align, ...]


@dataclass(frozen=True, slots=True)
class Bullet:
    """One point of a list, with the points under it."""

    line: Line
    under: tuple[Bullet, ...] = ()


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list of points."""

    items: tuple[Bullet, ...]


@dataclass(frozen=True, slots=True)
class Code:
    """Text to copy as it is; it may have several lines. ``language`` is a name like ``csv``."""

    text: str
    language: str = ""


@dataclass(frozen=True, slots=True)
class Steps:
    """What to do next, in order, each with its command and its risk."""

    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Note:
    """A remark about the answer itself, such as a warning from the source."""

    kind: NoteKind
    line: Line


@dataclass(frozen=True, slots=True)
class Rule:
    """A line between two parts."""


Block = Heading | Text | Fields | Table | Bullets | Code | Steps | Note | Rule


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command found.

    Attributes:
        title: one line that makes sense alone.
        blocks: the rest, in reading order.
        data: the JSON document of the contract; ``schema`` comes first.
        level: how bad it is.
        errors: what went wrong beside the answer, such as one unreadable file of several; the
            answer stands, the errors decide the exit status.
    """

    title: Line
    blocks: tuple[Block, ...]
    data: Mapping[str, Any]
    level: Level = Level.CLEAR
    errors: tuple[GpuwhyError, ...] = field(default=())


def plain(text: str, tone: Tone = Tone.NEUTRAL) -> Span:
    """Return text without a mark."""
    return Span(text, Mark.PLAIN, tone)


def strong(text: str, tone: Tone = Tone.NEUTRAL) -> Span:
    """Return emphasised text."""
    return Span(text, Mark.STRONG, tone)


def code(text: str) -> Span:
    """Return text that is a name, a query or a command."""
    return Span(text, Mark.CODE)


def muted(text: str) -> Span:
    """Return text that matters less."""
    return Span(text, Mark.MUTED)


def line(*parts: Span | str) -> Line:
    """Join spans and bare strings into a line."""
    return tuple(part if isinstance(part, Span) else Span(part) for part in parts)


def bullets(items: Iterable[Bullet | Line]) -> Bullets:
    """Make a list of points from bullets or bare lines."""
    return Bullets(tuple(i if isinstance(i, Bullet) else Bullet(i) for i in items))


def text_of(spans: Line) -> str:
    """Return a line as bare text, marks dropped."""
    return "".join(span.text for span in spans)
