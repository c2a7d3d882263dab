"""Render an answer as its JSON document."""

from __future__ import annotations

import json
from typing import Any

from bot.answer import Answer
from engine.errors import CatalogueError, GpuwhyError


def render(answer: Answer) -> str:
    """Return the document, keys in the contract's order, with a newline at the end.

    Only ASCII is written (other characters as escapes), so that no terminal, pipe or encoding
    can change what it means. ``errors`` is added if something went wrong beside the answer.

    Raises:
        ValueError: a number in the document is NaN or infinite.
    """
    data = dict(answer.data)
    if answer.errors:
        data["errors"] = [_described(error) for error in answer.errors]
    return dump(data)


def render_error(error: GpuwhyError, *, one_line: bool = False) -> str:
    """Return the document for a command that could not answer; on one line in a stream of them."""
    document = {"error": _described(error)}
    return dump_line(document) if one_line else dump(document)


def dump(data: Any) -> str:
    """Return any JSON value the way all documents are written."""
    return json.dumps(data, indent=2, allow_nan=False) + "\n"


def dump_line(data: Any) -> str:
    """Return any JSON value on one line, for streams of documents."""
    return json.dumps(data, allow_nan=False) + "\n"


def _described(error: GpuwhyError) -> dict[str, Any]:
    described: dict[str, Any] = {
        "code": error.code,
        "message": error.message,
        "hint": error.hint,
    }
    if isinstance(error, CatalogueError):
        described["problems"] = [str(problem) for problem in error.problems]
    return described
