"""Label selectors as people type them: ``Hostname=~"node-.*",cluster="a"``.

The syntax is PromQL's, braces optional; a value that is one bare word needs no quotes, since a
shell eats them.
"""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING

from engine.errors import UsageError

if TYPE_CHECKING:
    from engine.samples import Matcher

_LABEL = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*", re.ASCII)
_OPERATOR = re.compile(r"(=~|!~|!=|=)\s*")
_QUOTED = re.compile(r"\"((?:[^\"\\\n]|\\.)*)\"|'((?:[^'\\\n]|\\.)*)'|`([^`]*)`")
# No value starts like an operator: `==` is a slip, not a value that begins with "=".
_BARE = re.compile(r"[^\s,{}\"'`=~!][^\s,{}\"'`]*")
_END = re.compile(r"\s*(,|$)")
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|.)")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "'": "'"}
_SURROGATE = re.compile("[\ud800-\udfff]")
_MAX_TEXT = 4096
_FORM = 'write it like Hostname=~"node-.*",cluster="a"'


def parse_selector(text: str) -> tuple[Matcher, ...]:
    """Return the matchers of a selector, in written order; none for an empty one.

    Raises:
        UsageError: it is no selector, with the column; or a pattern is no regular expression.
    """
    from engine.samples import Matcher  # noqa: PLC0415 - numpy, which decode must not load

    body = text.strip()
    if _SURROGATE.search(body):
        raise UsageError("selector holds bytes that are not UTF-8", hint=_FORM)
    if len(body) > _MAX_TEXT:
        raise UsageError(f"selector is longer than {_MAX_TEXT} characters", hint=_FORM)
    if body.startswith("{") and body.endswith("}"):
        body = body[1:-1].strip()
    found = []
    at = 0
    while at < len(body):
        label, at = _take(_LABEL, body, at, "a label name")
        operator, at = _take(_OPERATOR, body, at, "one of = != =~ !~")
        value, at = _value(body, at)
        if "~" in operator[1]:
            _check_pattern(value)
        found.append(Matcher(label[1], operator[1], value))
        _, at = _take(_END, body, at, "a comma")
    return tuple(found)


def format_selector(matchers: tuple[Matcher, ...]) -> str:
    """Return matchers as PromQL writes them, without braces."""
    return ",".join(f"{m.label}{m.op}{_quote(m.value)}" for m in matchers)


def _value(body: str, at: int) -> tuple[str, int]:
    if quoted := _QUOTED.match(body, at):
        if quoted[3] is not None:
            return quoted[3], quoted.end()
        return _unescape(quoted[1] if quoted[1] is not None else quoted[2]), quoted.end()
    bare, at = _take(_BARE, body, at, "a value")
    return bare[0], at


def _take(what: re.Pattern[str], body: str, at: int, name: str) -> tuple[re.Match[str], int]:
    found = what.match(body, at)
    if not found:
        got = repr(body[at : at + 12]) if at < len(body) else "the end"
        raise UsageError(f"selector, column {at + 1}: expected {name}, got {got}", hint=_FORM)
    return found, found.end()


def _unescape(value: str) -> str:
    return _ESCAPE.sub(_unescaped, value)


def _unescaped(found: re.Match[str]) -> str:
    what = found[1]
    if len(what) > 1:
        char = chr(int(what[1:], 16))
        if _SURROGATE.match(char):
            raise UsageError(f"selector: \\{what} is half a character", hint="write it out")
        return char
    if what not in _ESCAPED:
        raise UsageError(f"selector: unknown escape \\{what}", hint="double the backslash")
    return _ESCAPED[what]


def _quote(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped.replace(chr(10), chr(92) + "n")}"'


def _check_pattern(value: str) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # "[[" means itself, here and in RE2
            re.compile(value)
    except (re.error, OverflowError, RecursionError) as problem:
        shown = value if len(value) <= 60 else value[:57] + "..."
        raise UsageError(
            f"selector: {shown!r} is no regular expression: {problem}",
            hint="patterns are RE2 and must match the whole label value",
        ) from None
