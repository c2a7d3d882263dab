"""Slack's mrkdwn, written so that text from outside stays text.

``&``, ``<`` and ``>`` become entities, which also disarms mentions (``<!channel>``) and links.
mrkdwn has no escape for its other marks, so a word in which ``*``, ``_`` or ``~`` would format, or
that reads as an emoji (``:ab:``, as in a PCI address), is set as code, where it shows and copies as
it is. A backtick, which would end code, is shown as U+02CB (in a code block only one of three).

Source of the rules: https://docs.slack.dev/messaging/formatting-message-text
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter

from bot.answer import Line, Mark
from bot.render.safe import visible

_OBEYED = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_IN_CODE = str.maketrans(_OBEYED)
_ENTITIES = str.maketrans({**_OBEYED, "`": "\u02cb"})
_WORD = re.compile(r"\S+")
_AROUND = re.compile(r"(?P<before>[(\[\"']*)(?P<core>.*?)(?P<after>[.,;!?)\]\"':]*)", re.DOTALL)
# A mark formats where a word starts or ends, not between letters or digits.
_FORMATS = re.compile(r"(?<![A-Za-z0-9])[*_~](?=\S)|(?<=\S)[*_~](?![A-Za-z0-9])")
_ABOUT = re.compile(r"~(?=\d)")
# Names of digits alone are times of day, but for these two.
_EMOJI = re.compile(r":(?:[a-z0-9_+'-]*[a-z_+'-][a-z0-9_+'-]*|100|1234):", re.IGNORECASE)
_QUOTE = re.compile(r"\s*>")

# Longest run of one mark in a piece (characters). A character takes at most ten bytes, when it is
# written out as ``\\U000e0001``, so that a piece always fits in a section.
PIECE = 250


def escape(text: str) -> str:
    """Return text with the characters that Slack would obey written as entities."""
    return visible(text).translate(_ENTITIES)


def prose(text: str) -> str:
    """Return running text; words that would be formatted are set as code."""
    shown = visible(text)
    if _harmless(shown):
        return shown.translate(_ENTITIES)
    about = shown.count("~") == 1 and _ABOUT.search(shown) is not None
    quote = _QUOTE.match(shown)
    quoted = quote.end() if quote else 0
    return _WORD.sub(
        lambda found: _word(found[0], risky=found.start() < quoted, about=about), shown
    )


def strong(text: str) -> str:
    """Return text in bold, if that can be done without changing it."""
    shown = visible(text)
    core = shown.strip()
    if not core or "*" in core or not _harmless(core):
        return prose(text)
    before, _, after = shown.partition(core)
    return f"{before}*{core.translate(_ENTITIES)}*{after}"


def code(text: str) -> str:
    """Return text as inline code."""
    shown = visible(text)
    return f"`{shown.translate(_ENTITIES)}`" if shown.strip() else shown


def code_row(text: str) -> str:
    """Return a line of a code block; it cannot end the block."""
    return visible(text).translate(_IN_CODE).replace("```", "``\u02cb")


def fence(rows: Iterable[str]) -> str:
    """Return rows made by `code_row` as a code block."""
    return "```\n" + "\n".join(rows) + "\n```"


def pieces(line: Line, *, bold: bool = False) -> Iterator[tuple[Mark, str]]:
    """Yield a line as pieces of markup, each complete in itself and of at most 2,600 bytes.

    Args:
        line: the spans.
        bold: whether what has no mark of its own is bold, as in a heading.
    """
    for mark, text in _runs(line, bold=bold):
        for part in chunks(text, PIECE):
            yield mark, _WRITERS[mark](part)


def markup(line: Line, *, bold: bool = False) -> str:
    """Return a whole line as markup, however long."""
    return "".join(_WRITERS[mark](text) for mark, text in _runs(line, bold=bold))


def chunks(text: str, most: int) -> Iterator[str]:
    """Yield a text in parts of at most ``most`` characters, cut between words where it can be.

    A character is never cut from the accents and modifiers that follow it.
    """
    at = 0
    while len(text) - at > most:
        end = text.rfind(" ", at + most // 2, at + most) + 1 or at + most
        while end > at + most // 2 and _joins(text[end]):
            end -= 1
        yield text[at:end]
        at = end
    if at < len(text):
        yield text[at:]


def _runs(line: Line, *, bold: bool) -> Iterator[tuple[Mark, str]]:
    marked = ((_mark(span.mark, bold=bold), span.text) for span in line)
    for mark, group in groupby(marked, key=itemgetter(0)):
        yield mark, "".join(text for _, text in group)


def _mark(mark: Mark, *, bold: bool) -> Mark:
    if mark is Mark.MUTED:
        return Mark.PLAIN
    return Mark.STRONG if bold and mark is Mark.PLAIN else mark


def _harmless(shown: str) -> bool:
    return not (_FORMATS.search(shown) or _EMOJI.search(shown) or _QUOTE.match(shown))


def _word(word: str, *, risky: bool, about: bool) -> str:
    checked = _ABOUT.sub("", word) if about else word
    if not (risky or _FORMATS.search(checked) or _EMOJI.search(word)):
        return word.translate(_ENTITIES)
    parts = _AROUND.fullmatch(word)
    assert parts is not None, "every text has the form"
    before, core, after = parts["before"], parts["core"], parts["after"]
    if not core:
        before, core, after = "", word, ""
    return f"{before.translate(_ENTITIES)}`{core.translate(_ENTITIES)}`{after}"


def _joins(char: str) -> bool:
    return unicodedata.category(char).startswith("M") or "\U0001f3fb" <= char <= "\U0001f3ff"


_WRITERS = {Mark.PLAIN: prose, Mark.STRONG: strong, Mark.CODE: code}
