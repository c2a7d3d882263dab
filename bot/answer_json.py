"""An answer as JSON and back: how it is stored, and sent from a server to the command line.

The form is private to one version of gpuwhy talking to itself, but tolerant: what a reader does
not know makes it refuse the document with one line, never guess. ``data`` inside it is the
contract's document, unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bot.answer import (
    Align,
    Answer,
    Block,
    Bullet,
    Bullets,
    Code,
    Fields,
    Heading,
    Level,
    Line,
    Mark,
    Note,
    NoteKind,
    Rule,
    Span,
    Steps,
    Table,
    Text,
    Tone,
)
from engine.errors import GpuwhyError, InputError, SourceError
from engine.model import Step

SCHEMA = "gpuwhy/answer/1"
# Lists in lists: far more than any command makes, far less than what overflows the stack.
_DEEPEST = 32

Json = dict[str, Any]


def to_json(answer: Answer) -> Json:
    """Return an answer as JSON-able values."""
    return {
        "schema": SCHEMA,
        "title": _line(answer.title),
        "blocks": [_block(block) for block in answer.blocks],
        "level": answer.level.name.lower(),
        "errors": [error_to_json(error) for error in answer.errors],
        "data": dict(answer.data),
    }


def from_json(document: Any) -> Answer:
    """Return the answer that `to_json` wrote.

    Raises:
        InputError: it is no such document, or one of another version.
    """
    if not isinstance(document, Mapping) or document.get("schema") != SCHEMA:
        raise _unreadable(f"no {SCHEMA} document")
    try:
        return Answer(
            title=_read_line(document["title"]),
            blocks=tuple(_read_block(block) for block in document["blocks"]),
            data=dict(document["data"]),
            level=Level[document["level"].upper()],
            errors=tuple(error_from_json(error) for error in document["errors"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise _unreadable(f"{type(problem).__name__} at {problem}") from None


def error_to_json(error: GpuwhyError) -> Json:
    """Return an error as the contract writes it, with the exit status it leads to."""
    return {
        "code": error.code,
        "message": error.message,
        "hint": error.hint,
        "exit_status": error.exit_status,
    }


def error_from_json(document: Mapping[str, Any]) -> GpuwhyError:
    """Return the error that `error_to_json` wrote.

    Raises:
        KeyError, TypeError, AttributeError: it is no such document.
    """
    kind = SourceError if document.get("exit_status") == SourceError.exit_status else GpuwhyError
    return kind(document["message"], hint=document.get("hint", ""), code=document["code"])


def _line(spans: Line) -> list[Any]:
    return [_span(span) for span in spans]


def _span(span: Span) -> Any:
    """Return a span; one without mark and tone, which most are, as bare text."""
    if span.mark is Mark.PLAIN and span.tone is Tone.NEUTRAL:
        return span.text
    return {"text": span.text, "mark": str(span.mark), "tone": str(span.tone)}


def _block(block: Block) -> Json:
    match block:
        case Heading():
            return {"type": "heading", "line": _line(block.line), "level": block.level}
        case Text():
            return {"type": "text", "line": _line(block.line)}
        case Fields():
            return {"type": "fields", "pairs": [[name, _line(text)] for name, text in block.pairs]}
        case Table():
            return {
                "type": "table",
                "columns": list(block.columns),
                "rows": [[_line(cell) for cell in row] for row in block.rows],
                "align": [str(side) for side in block.align],
            }
        case Bullets():
            return {"type": "bullets", "items": [_bullet(item) for item in block.items]}
        case Code():
            return {"type": "code", "text": block.text, "language": block.language}
        case Steps():
            return {"type": "steps", "steps": [_step(step) for step in block.steps]}
        case Note():
            return {"type": "note", "kind": str(block.kind), "line": _line(block.line)}
        case Rule():
            return {"type": "rule"}


def _bullet(bullet: Bullet) -> Json:
    return {"line": _line(bullet.line), "under": [_bullet(item) for item in bullet.under]}


def _step(step: Step) -> Json:
    return {
        "do": step.do,
        "command": step.command,
        "argv": None if step.argv is None else list(step.argv),
        "risk": step.risk,
        "capture": step.capture,
    }


def _read_line(spans: Sequence[Any]) -> Line:
    if not isinstance(spans, list):
        msg = "a line that is no list"
        raise TypeError(msg)
    return tuple(_read_span(span) for span in spans)


def _read_span(span: Any) -> Span:
    if isinstance(span, str):
        return Span(span)
    return Span(_text(span["text"]), Mark(span["mark"]), Tone(span["tone"]))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        msg = "a value that is no text"
        raise TypeError(msg)
    return value


def _read_block(block: Mapping[str, Any]) -> Block:
    read = _READERS.get(block["type"])
    if read is None:
        msg = f"block {block['type']!r}"
        raise ValueError(msg)
    return read(block)


def _read_table(block: Mapping[str, Any]) -> Table:
    columns = tuple(_text(name) for name in block["columns"])
    align = tuple(Align(side) for side in block["align"])
    rows = tuple(tuple(_read_line(cell) for cell in row) for row in block["rows"])
    if any(len(part) != len(columns) for part in (align, *rows)):
        msg = "a table whose rows differ in length"
        raise ValueError(msg)
    return Table(columns, rows, align)


def _read_bullet(bullet: Mapping[str, Any], depth: int = 0) -> Bullet:
    if depth > _DEEPEST:
        msg = "lists nested too deeply"
        raise ValueError(msg)
    under = tuple(_read_bullet(item, depth + 1) for item in bullet["under"])
    return Bullet(_read_line(bullet["line"]), under)


def _read_step(step: Mapping[str, Any]) -> Step:
    argv = step["argv"]
    return Step(
        do=_text(step["do"]),
        command=step["command"],
        argv=None if argv is None else tuple(_text(word) for word in argv),
        risk=_text(step["risk"]),
        capture=step["capture"],
    )


_READERS: Mapping[str, Callable[[Mapping[str, Any]], Block]] = {
    "heading": lambda b: Heading(_read_line(b["line"]), int(b["level"])),
    "text": lambda b: Text(_read_line(b["line"])),
    "fields": lambda b: Fields(tuple((_text(n), _read_line(v)) for n, v in b["pairs"])),
    "table": _read_table,
    "bullets": lambda b: Bullets(tuple(_read_bullet(item) for item in b["items"])),
    "code": lambda b: Code(_text(b["text"]), _text(b["language"])),
    "steps": lambda b: Steps(tuple(_read_step(step) for step in b["steps"])),
    "note": lambda b: Note(NoteKind(b["kind"]), _read_line(b["line"])),
    "rule": lambda _: Rule(),
}


def _unreadable(what: str) -> InputError:
    return InputError(
        f"the answer cannot be read: {what}",
        hint="use the same version of gpuwhy on both sides",
        code="unreadable_answer",
    )
