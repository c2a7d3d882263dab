"""Render an answer as Slack messages: the verdict first, all within Slack's limits.

What does not fit in one message goes into more, meant for its thread; the last of them says so if
even they do not hold everything. Blocks are sections of mrkdwn, which every client shows, reads out
and can copy from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

from bot.answer import (
    Answer,
    Block,
    Fields,
    Heading,
    Line,
    Mark,
    Note,
    NoteKind,
    Rule,
    Text,
    Tone,
    line,
    text_of,
)
from bot.render import mrkdwn
from bot.render.blockkit import size
from bot.render.plain import spaced
from bot.render.slackrows import ROW, Row, rows

# Below Block Kit's own numbers (see `bot.render.blockkit`), counted in bytes, which are never
# fewer than what Slack counts; the room left is for a notice and buttons.
_MESSAGE = 9000
_BLOCKS = 44
_MESSAGES = 5
_NOTICE = 3000
_CUT = (
    "The answer goes on, but not here: ask about less at once, or ask on the command line, "
    "which shows all of it."
)
_SIGNS = {Tone.BAD: "\U0001f534", Tone.WARNING: "\U0001f7e1", Tone.GOOD: "\U0001f7e2"}
_Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Message:
    """One message.

    Attributes:
        text: what notifications and screen readers say.
        blocks: what is shown.
    """

    text: str
    blocks: tuple[_Json, ...]

    def payload(self) -> _Json:
        """Return the message as the Web API takes it."""
        return {"text": self.text, "blocks": list(self.blocks)}


@dataclass(slots=True)
class _Part:
    """What belongs together: rows of markup, each in a code block or not."""

    rows: list[Row] = field(default_factory=list)
    context: bool = False


def render(answer: Answer) -> tuple[Message, ...]:
    """Return an answer as one to five messages; those after the first belong in its thread."""
    title = _Part([Row(_title(answer.title))])
    parts = chain([title], _parts(answer.blocks), _errors(answer))
    blocks = (block for part in parts for block in _blocks(part))
    # One page too many is enough to know that there are too many.
    first, *more = islice(_pages(blocks), _MESSAGES + 1)
    if len(more) == _MESSAGES:
        more[-2].append(context(_CUT))
        more.pop()
    said = _notice(answer)
    continued = notice(f"{text_of(answer.title)} (continued)")
    return (Message(said, tuple(first)), *(Message(continued, tuple(page)) for page in more))


def section(text: str) -> _Json:
    """Return a section of markup."""
    return {"type": "section", "text": _mrkdwn(text)}


def context(*texts: str) -> _Json:
    """Return a line of small markup."""
    return {"type": "context", "elements": [_mrkdwn(text) for text in texts]}


def notice(text: str) -> str:
    """Return text for a notification: one paragraph, escaped, not too long."""
    said = mrkdwn.prose(_cut(text))
    return said if said.strip() else "gpuwhy"


def _mrkdwn(text: str) -> _Json:
    # verbatim: names that look like addresses or channels stay text.
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def _cut(text: str) -> str:
    # Ten bytes a character at most, in a section of 3,000.
    return text if len(text) <= mrkdwn.PIECE else f"{text[: mrkdwn.PIECE]} …"


def _notice(answer: Answer) -> str:
    """Return the title and the first paragraph."""
    said = " ".join(text_of(answer.title).split())
    if answer.blocks and isinstance(first := answer.blocks[0], Text):
        said = f"{said}\n{text_of(first.line)}"
    text = "\n".join(mrkdwn.prose(paragraph) for paragraph in said.split("\n"))
    return text if text.strip() and size(text) <= _NOTICE else notice(text_of(answer.title))


def _title(title: Line) -> str:
    tones = {span.tone for span in title}
    sign = next((sign for tone, sign in _SIGNS.items() if tone in tones), "")
    said = mrkdwn.markup(title)
    if size(said) > ROW:
        said = notice(text_of(title))
    return f"{sign} {said}".strip() or "gpuwhy"


def _errors(answer: Answer) -> Iterator[_Part]:
    if answer.errors:
        notes = [Note(NoteKind.WARNING, line(error.one_line())) for error in answer.errors]
        yield from _parts(notes)


def _parts(blocks: Iterable[Block]) -> Iterator[_Part]:
    """Yield the blocks as parts; what is tied to a heading or a paragraph is in its part."""
    part = _Part()
    for block, gap in spaced(blocks):
        small = _is_small(block)
        if gap or small or part.context:
            if part.rows:
                yield part
            part = _Part(context=small)
        if isinstance(block, Rule) or (isinstance(block, Heading) and block.level == 1):
            yield _Part()
        part.rows.extend(rows(block))
    if part.rows:
        yield part


def _is_small(block: Block) -> bool:
    """Return whether a block only tells where the answer comes from."""
    match block:
        case Text(line=spans):
            return bool(spans) and spans[0].mark is Mark.MUTED
        case Fields(pairs=pairs):
            return any(span.mark is Mark.MUTED for _, value in pairs for span in value)
        case _:
            return False


def _blocks(part: _Part) -> Iterator[_Json]:
    if not part.rows:
        yield {"type": "divider"}
        return
    group: list[Row] = []
    used = 0
    for row in part.rows:
        # Eight bytes for the fences that a row may open and close, one for its end.
        cost = size(row.text) + 9
        if group and used + cost > ROW:
            yield _shown(group, small=part.context)
            group, used = [], 0
        group.append(row)
        used += cost
    yield _shown(group, small=part.context)


def _shown(group: list[Row], *, small: bool) -> _Json:
    texts: list[str] = []
    fenced: list[str] = []
    for text, is_code in (*group, Row("")):
        if is_code:
            fenced.append(text)
            continue
        if fenced:
            texts.append(mrkdwn.fence(fenced))
            fenced = []
        texts.append(text)
    joined = "\n".join(texts).strip("\n")
    return context(joined) if small else section(joined)


def _pages(blocks: Iterable[_Json]) -> Iterator[list[_Json]]:
    page: list[_Json] = []
    used = 0
    for block in blocks:
        cost = _cost(block)
        if page and (used + cost > _MESSAGE or len(page) >= _BLOCKS):
            yield page
            page, used = [], 0
        if page or block["type"] != "divider":
            page.append(block)
            used += cost
    if page:
        yield page


def _cost(block: _Json) -> int:
    texts = [block["text"]] if "text" in block else block.get("elements", [])
    return sum(size(text["text"]) for text in texts)
