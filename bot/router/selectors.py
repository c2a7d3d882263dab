"""Label selectors in plain words: ``cluster=a``, ``Hostname=~"node-.*"``, "in cluster a".

Marks are SELECTOR, written as `bot.selector` reads them.
"""

from __future__ import annotations

import re

from bot.router.spans import Marked, pattern, word_set

_VALUE = r"(?:\"[^\"\n]*\"|'[^'\n]*'|`[^`\n]*`|[^\s,{}\"'`?!]+)"
_PAIR = rf"[A-Za-z_]\w{{0,63}}(?:=~|!~|!=|=){_VALUE}"
_SELECTOR = re.compile(
    rf"(?<![^\s(])\{{?\s*{_PAIR}(?:\s*,\s*{_PAIR})*\s*\}}?(?=[\s.,;?!)]|$)", re.ASCII
)
_NAMED = pattern(
    r"(?<![\w-])(?:in |on |of |for )?(?:the )?cluster (?P<value>[A-Za-z0-9][\w.-]{0,62})(?![\w:/-])"
)
_CODE_LABELS = word_set("xid sxid field mask throttle")
# Words after "cluster" that are no name.
_NO_VALUE = word_set(
    "is are was were has have ok okay fine status health healthy sick slow broken down in on of",
    "for at now right today and or the an doing going looking with like running up wide level",
    "where why what how looks seems",
)


def mark_selectors(marked: Marked) -> None:
    """Mark label matchers, and clusters named in words."""
    marked.find("SELECTOR", _SELECTOR, _selector)
    marked.find("SELECTOR", _NAMED, _named)


def _selector(found: re.Match[str]) -> str | None:
    text = found[0].strip().removeprefix("{").removesuffix("}").strip()
    label = re.split(r"\W", text, maxsplit=1)[0].lower()
    if label in _CODE_LABELS or label.endswith(("_reasons", "reasons_active")):
        return None
    return text.rstrip(".;:")


def _named(found: re.Match[str]) -> str | None:
    value, rest = found["value"], found.string[found.end() :].lstrip()
    # "cluster a" is a name at the end of a phrase, and an article before a word.
    if value.lower() in _NO_VALUE or (value.lower() == "a" and rest[:1].isalnum()):
        return None
    return f"cluster={value}"
