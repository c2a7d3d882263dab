"""Printing answers and errors, and choosing the renderer for where they go."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from contextlib import suppress
from io import TextIOWrapper

from bot.answer import Answer, Level
from bot.render import plain
from bot.render.safe import visible
from engine.errors import GpuwhyError

_PIPED_WIDTH = 100


class OutputClosedError(Exception):
    """Nobody reads the output any more (``gpuwhy … | head``)."""


def show(
    answer: Answer, *, as_json: bool, color: str = "auto", fail_on: Level | None = None
) -> int:
    """Print an answer and return the exit status.

    Args:
        answer: what to print.
        as_json: the JSON document instead of text.
        color: ``auto`` (a terminal gets colours), ``always`` or ``never``.
        fail_on: the level from which the status is 1.
    """
    write(_rendered(answer, as_json, color))
    for error in answer.errors:
        _complain(error)
    if answer.errors:
        return max(error.exit_status for error in answer.errors)
    return int(fail_on is not None and answer.level >= fail_on)


def report(error: GpuwhyError, *, as_json: bool, one_line: bool = False) -> None:
    """Print an error as one line to stderr, and with ``as_json`` as a document to stdout.

    ``one_line``: the document is one of a stream, a line each.
    """
    if as_json:
        from bot.render import json  # noqa: PLC0415 - only what is needed is loaded

        write(json.render_error(error, one_line=one_line))
    _complain(error)


def _rendered(answer: Answer, as_json: bool, color: str) -> str:
    if as_json:
        from bot.render import json  # noqa: PLC0415

        return json.render(answer)
    colour = color == "always" or (color == "auto" and not os.environ.get("NO_COLOR"))
    terminal = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    if not terminal and color != "always":
        return plain.render(answer)
    from bot.render import terminal as styled  # noqa: PLC0415 - rich, which pipes do not need

    width = shutil.get_terminal_size((_PIPED_WIDTH, 24)).columns
    return styled.render(answer, width=width, colour=colour)


def write(text: str) -> None:
    """Print text as it is.

    Raises:
        OutputClosedError: nobody reads any more.
        GpuwhyError: it cannot be written.
    """
    if isinstance(sys.stdout, TextIOWrapper):
        # A locale that lacks a character must not lose the answer.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        # What is still buffered must not be tried again when the interpreter closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise OutputClosedError from None
        said = f"the answer cannot be written: {error.strerror or error}"
        raise GpuwhyError(said, hint="see where the output goes", code="output") from error


def warn(texts: Iterable[str]) -> None:
    """Print warnings to stderr, a line each."""
    for text in texts:
        _say(f"warning: {text}")


def _complain(error: GpuwhyError) -> None:
    _say(error.one_line())


def _say(text: str) -> None:
    if isinstance(sys.stderr, TextIOWrapper):
        sys.stderr.reconfigure(errors="backslashreplace")
    with suppress(OSError):  # nobody is left to tell
        sys.stderr.write(f"gpuwhy: {visible(text)}\n")
        sys.stderr.flush()
