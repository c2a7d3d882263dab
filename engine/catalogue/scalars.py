"""What an unquoted YAML word means, and which words are refused as ambiguous."""

from __future__ import annotations

import re

_NULL = frozenset(("", "~", "null", "Null", "NULL"))
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_YES_NO = re.compile(r"y|yes|n|no|on|off", re.IGNORECASE)
_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)", re.ASCII)
_HEX = re.compile(r"0x[0-9a-fA-F]+", re.ASCII)
_FLOAT = re.compile(
    r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?", re.ASCII
)
_DATE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt \t].*)?", re.ASCII)
_ODD_NUMBER = re.compile(
    r"[-+]?(?:0[0-9_]+|0b[01_]+|0x[0-9a-fA-F_]+|[0-9][0-9_]*_[0-9_]*(?:\.[0-9_]*)?"
    r"|[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?)",
    re.ASCII,
)
_MERGE = re.compile("<<")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|nan)", re.IGNORECASE)

_SURPRISES = (
    (_YES_NO, "means true or false to some YAML readers; write true or false"),
    (_DATE, "is a date to some YAML readers"),
    (_ODD_NUMBER, "is another number to some YAML readers"),
    (_NOT_FINITE, "is no finite number"),
    (_MERGE, "is a merge key, which is not allowed"),
)

_LONGEST_NUMBER = 40
_INFINITY = float("inf")


def plain_scalar(text: str) -> tuple[str | int | float | bool | None, str]:
    """Return what an unquoted word means, and what is wrong with it (nothing if all is well).

    Numbers are decimal, hexadecimal (``0x48``) or with a point or exponent; ``true`` and ``false``
    are the only booleans. Words that YAML 1.1 takes for something else come with a complaint.
    """
    if text in _NULL:
        return None, ""
    if text in _BOOL:
        return _BOOL[text], ""
    if len(text) > _LONGEST_NUMBER:
        return text, ""
    if _HEX.fullmatch(text):
        return int(text, 16), ""
    if _INT.fullmatch(text):
        return int(text), ""
    if _FLOAT.fullmatch(text):
        value = float(text)
        return value, f"'{text}' is too large for a number" if abs(value) == _INFINITY else ""
    for pattern, what in _SURPRISES:
        if pattern.fullmatch(text):
            return text, f"'{text}' {what}"
    return text, ""
