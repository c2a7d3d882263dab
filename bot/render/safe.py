r"""Make text from outside harmless to look at.

Control characters (ESC, carriage return, C1), bidirectional overrides, zero-width and other
format characters, line separators and lone surrogates are shown as ``\x1b``, ``\u202e`` and the
like instead of being obeyed. Everything a renderer prints goes through `visible`.
"""

from __future__ import annotations

import re
import unicodedata

# Cc: controls, Cf: format characters (bidi, zero width, tags), Cs: surrogates, Zl and Zp: line
# and paragraph separators.
_OBEYED = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_NAMED = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
_HARMLESS = re.compile(r"[\x20-\x7e]*")


def visible(text: str) -> str:
    """Return the text on one line, with every character that would be obeyed written out."""
    if _HARMLESS.fullmatch(text):
        return text
    return "".join(_escaped(c) if unicodedata.category(c) in _OBEYED else c for c in text)


def visible_lines(text: str) -> list[str]:
    """Return the lines of a text (split at newlines only), each made `visible`, tabs widened."""
    return [visible(part.expandtabs(4)) for part in text.replace("\r\n", "\n").split("\n")]


def _escaped(char: str) -> str:
    if char in _NAMED:
        return _NAMED[char]
    number = ord(char)
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
