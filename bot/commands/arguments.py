"""The arguments of a request, read one by one, each with a message of its own if it is wrong."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bot.attachments import MAX_FILES, FileRef
from bot.times import parse_moment, parse_span
from engine.catalogue.nearest import did_you_mean
from engine.errors import UsageError

if TYPE_CHECKING:
    from bot.commands.read import Input

# Rules look at minutes; a day of raw samples is more than any of them asks for.
MIN_WINDOW_S = 60.0
MAX_WINDOW_S = 86400.0
_MAX_INPUTS = 64


class Arguments:
    """Reads the arguments of one request; `done` refuses those that nobody asked for.

    Every method raises `UsageError` for a value that cannot be used.
    """

    def __init__(self, command: str, args: Mapping[str, Any]) -> None:
        self._command = command
        self._args = args
        self._asked: list[str] = []

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text; it must be there if it has no default."""
        value = self._take(name, default)
        if value is None:
            raise UsageError(f"{self._command} needs {name!r}", hint=f"give {name} as text")
        if not isinstance(value, str):
            raise UsageError(f"{name!r} of {self._command} must be text")
        return value

    def texts(self, name: str) -> list[str]:
        """Return a list of texts, empty if it is not given."""
        value = self._take(name, [])
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise UsageError(f"{name!r} of {self._command} must be a list of texts")
        return value

    def number(self, name: str) -> float:
        """Return a number, which must be there."""
        value = self._take(name, None)
        if not _is_number(value):
            raise UsageError(f"{self._command} needs {name!r}", hint=f"give {name} as a number")
        return float(value)

    def moment(self, name: str, now: float) -> float | None:
        """Return a moment (Unix seconds), or None if it is not given."""
        value = self._take(name, None)
        if value is None:
            return None
        return parse_moment(_as_text(name, value), now=now)

    def window(self, name: str, default: float) -> float:
        """Return a window to look back (s)."""
        value = self._take(name, None)
        if value is None:
            return default
        text = f"{value}s" if _is_number(value) else _as_text(name, value)
        seconds = parse_span(text)
        if not MIN_WINDOW_S <= seconds <= MAX_WINDOW_S:
            raise UsageError(f"window {text} is out of range", hint="give 1m to 1d")
        return seconds

    def files(self) -> Sequence[FileRef]:
        """Return the files of a message that are to be read."""
        files = self._take("files", None) or []
        if not isinstance(files, list):
            raise UsageError("'files' must be a list")
        return [FileRef.from_json(one) for one in files[:MAX_FILES]]

    def inputs(self, *, optional: bool = False) -> Sequence[Input]:
        """Return what is to be read: ``text`` alone, or ``inputs`` with a name each.

        An input holds its text as ``text``, or any bytes as ``base64``.

        Args:
            optional: there may be none.
        """
        from bot.commands.read import Input  # noqa: PLC0415 - only this command needs it

        several = self._take("inputs", None)
        if several is None and optional:
            text = self.text("text", "")
            return [Input("text", [_bytes(text)])] if text else []
        if several is None:
            return [Input("text", [_bytes(self.text("text"))])]
        if not isinstance(several, list) or not 0 < len(several) <= _MAX_INPUTS:
            raise UsageError(f"'inputs' must be a list of 1 to {_MAX_INPUTS} inputs")
        return [_input(one) for one in several]

    def done(self) -> None:
        """Refuse arguments that the command does not have."""
        for name in self._args:
            if name not in self._asked:
                hint = did_you_mean(name, self._asked, otherwise=f"it has {', '.join(self._asked)}")
                raise UsageError(f"{self._command} has no argument {name!r}", hint=hint)

    def _take(self, name: str, default: Any) -> Any:
        self._asked.append(name)
        value = self._args.get(name)
        return default if value is None else value


def _input(one: Any) -> Input:
    from bot.commands.read import Input  # noqa: PLC0415

    known = isinstance(one, Mapping) and isinstance(one.get("name"), str)
    if known and isinstance(one.get("text"), str):
        return Input(one["name"], [_bytes(one["text"])])
    if known and isinstance(one.get("base64"), str):
        try:
            return Input(one["name"], [base64.b64decode(one["base64"], validate=True)])
        except binascii.Error:
            raise UsageError(f"input {one['name']!r} is no base64") from None
    raise UsageError("an input must have 'name', and 'text' or 'base64'")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _as_text(name: str, value: Any) -> str:
    if _is_number(value):
        return f"{value:f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
    if not isinstance(value, str):
        raise UsageError(f"{name!r} must be text or a number")
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
