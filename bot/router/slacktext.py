"""Slack's message text, undone: what a person typed, told apart into prose, code and quotations.

Slack sends ``&``, ``<`` and ``>`` as entities, mentions and links in angle brackets, and what the
client makes of typed text (curly quotes, long dashes, non-breaking hyphens). This is the one place
that knows. Source of the forms: https://docs.slack.dev/messaging/formatting-message-text
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

_ANGLED = re.compile(r"<([@#!]?)([^<>|\n]{1,3000})(?:\|([^<>\n]{0,3000}))?>")
_ENTITY = re.compile(r"&(amp|lt|gt);")
_ENTITIES = {"amp": "&", "lt": "<", "gt": ">"}
_FENCE = re.compile(r"```(?:[^\S\n]*\n)?(.*?)(?:```|\Z)", re.DOTALL)
_QUOTED_LINE = re.compile(r"^(?:&gt;|>)(?:&gt;|>)*[ \t]?(.*)$", re.MULTILINE)
_QUOTED_REST = re.compile(r"^(?:&gt;){3}(.*)\Z", re.MULTILINE | re.DOTALL)

# Whatever needs a look: no-break spaces, direction marks, control characters.
_ODD = re.compile(r"[^\n\t -~\w]")
_INLINE = 80
_EXCERPT = 300
# Longer prose is no question, and is not tidied.
_LONGEST = 2_000

_LETTERS = str.maketrans(
    {
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb\u2033", '"'),
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4", "'"),
        **dict.fromkeys("\u2010\u2011\u2012\u2212\ufe63", "-"),
        "\u2026": "...",
    }
)
# Clients turn a typed "--" into a long dash: before a word it is an option's.
_OPTION_DASH = re.compile(r"(?<!\S)[\u2013\u2014](?=[A-Za-z])")
_INNER_DASH = re.compile(r"(?<=\w)\u2013(?=\w)")
_DASH = re.compile(r"\s*[\u2013\u2014]\s*")
_STRUCK = re.compile(r"(?<!\S)~(?=\S)[^~\n]*~(?=[\s.,;!?]|$)")
_EMPHASIS = re.compile(r"(?<![^\s(])([*_])(?=\S)([^\n]{0,300}?\S)\1(?=[\s.,;:!?)]|$)")
_EMOJI = re.compile(r"(?<!\S):[a-z0-9_+'-]{2,60}:(?=[\s.,;!?]|$)")


@dataclass(frozen=True, slots=True)
class Message:
    """A message, told apart.

    Attributes:
        raw: everything with Slack's forms undone, lines and spacing kept.
        prose: what the writer says: no fences, quotations, struck text or emphasis marks; inline
            code stays, in backticks.
        fences: contents of code fences.
        quoted: lines of block quotations, joined by line feeds: somebody else's words.
    """

    raw: str
    prose: str
    fences: tuple[str, ...] = ()
    quoted: str = ""

    @property
    def excerpt(self) -> str:
        """The beginning, by which people recognise their message."""
        return self.raw if len(self.raw) <= _EXCERPT else self.raw[: _EXCERPT - 1] + "\u2026"


def read_message(text: str) -> Message:
    """Tell a message apart; any text will do."""
    fences: list[str] = []
    quoted: list[str] = []

    def keep_fence(found: re.Match[str]) -> str:
        body = found[1].strip("\n")
        fences.append(plain(body))
        # A fence of one short line is inline code, written large.
        return " " if "\n" in body or len(body) > _INLINE else f" `{body}` "

    def keep_quote(found: re.Match[str]) -> str:
        quoted.append(found[1])
        return ""

    prose = _FENCE.sub(keep_fence, text)
    prose = _QUOTED_LINE.sub(keep_quote, _QUOTED_REST.sub(keep_quote, prose))
    prose = plain(prose)
    if len(prose) <= _LONGEST:
        prose = tidy(prose)
    return Message(plain(text).strip(), prose, tuple(fences), plain("\n".join(quoted)))


def plain(text: str) -> str:
    """Return text with mentions dropped, links as shown, entities and odd spaces undone."""
    without = _ANGLED.sub(_shown, text)
    return _ODD.sub(_letter, _ENTITY.sub(lambda found: _ENTITIES[found[1]], without))


def tidy(text: str) -> str:
    """Return undone text as it would be typed on a terminal: plain quotes, dashes and letters."""
    clean = unicodedata.normalize("NFKC", text.translate(_LETTERS)).translate(_LETTERS)
    clean = _OPTION_DASH.sub("--", clean)
    clean = _DASH.sub(", ", _INNER_DASH.sub("-", clean))
    clean = _EMOJI.sub("", _STRUCK.sub("", clean))
    return _EMPHASIS.sub(r"\2", clean).strip()


def _shown(found: re.Match[str]) -> str:
    mark, body, label = found[1], found[2], found[3]
    if mark == "!" and body.startswith("date^"):
        return label or ""
    if mark == "#":
        return f"#{label}" if label else ""
    if mark:
        return ""
    if label:
        return label
    return body.removeprefix("mailto:").removeprefix("tel:")


def _letter(found: re.Match[str]) -> str:
    """Return what stands for an odd character: nothing where it has no shape, or a space."""
    if found[0].isprintable():
        return found[0]
    return "" if unicodedata.category(found[0]) in {"Cf", "Co"} else " "
