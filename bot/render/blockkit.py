"""Block Kit: what Slack takes in one message, checked before anything is sent.

Slack refuses a whole message for one block that is too long, and says so only when it is sent.
`validate` holds a payload against the published limits and against what is known of the
unpublished ones; it knows the blocks that gpuwhy sends and calls every other one unknown.

Sources: https://docs.slack.dev/reference/block-kit and the checks of ``slack_sdk.models.blocks``.
The total of all text is not documented: Slack has refused 11,341 characters as
``msg_blocks_too_long``, so 10,000 are used. ``chat.update`` has refused more than 4,000 bytes of
``text`` as ``msg_too_long``.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from bot.render.blocks import (
    ALLOWED,
    ANGLED,
    MAX_BLOCKS,
    Payload,
    Problem,
    Surface,
    check_block,
    check_markup,
    units,
)

log = logging.getLogger(__name__)

MESSAGE_TEXT = 4000
TOTAL_TEXT = 10_000

_MESSAGE_KEYS = frozenset(
    {
        "text",
        "blocks",
        "unfurl_links",
        "unfurl_media",
        "response_type",
        "replace_original",
        "delete_original",
        "thread_ts",
    }
)


def size(text: str) -> int:
    """Return the bytes of a text in UTF-8: never fewer than its characters or UTF-16 units."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def validate(payload: Payload, surface: Surface = Surface.MESSAGE) -> tuple[Problem, ...]:
    """Return everything in a message or a view that Slack would refuse; empty if nothing.

    Args:
        payload: ``text`` and ``blocks``, without the channel.
        surface: where it is to be shown.
    """
    return tuple(_problems(payload, surface))


def sendable(payload: Payload) -> dict[str, Any]:
    """Return a message as it is, or all its words without blocks if Slack would refuse it.

    Nothing that was to be said is lost but what exceeds 4,000 bytes; the log says what was wrong.
    """
    problems = validate(payload)
    if not problems:
        return dict(payload)
    log.error("a message breaks the limits of Slack, sent as text: %s", problems[0])
    return as_text(payload)


def as_text(payload: Payload) -> dict[str, Any]:
    """Return a message without its blocks: their text, as much as Slack takes, disarmed."""
    blocks = payload.get("blocks")
    found = list(_texts(blocks)) if isinstance(blocks, list) else []
    said = "\n".join(found) or str(payload.get("text", ""))
    # Entities stay; what would be obeyed becomes one.
    safe = ANGLED.sub(lambda angled: _disarmed(angled[0]), said)
    return {"text": _first_bytes(safe, MESSAGE_TEXT) or "gpuwhy"}


def _problems(payload: Payload, surface: Surface) -> Iterator[Problem]:
    if surface is Surface.MESSAGE:
        for key in sorted(set(payload) - _MESSAGE_KEYS, key=str):
            yield Problem(f"/{key}", "no part of a message")
        yield from _message_text(payload.get("text"))
    blocks = payload.get("blocks", [])
    if not isinstance(blocks, list):
        yield Problem("/blocks", "no list")
        return
    if len(blocks) > MAX_BLOCKS[surface]:
        yield Problem("/blocks", f"{len(blocks)} blocks, {MAX_BLOCKS[surface]} at most")
    total = sum(units(text) for text in _texts(blocks))
    if surface is Surface.MESSAGE and total > TOTAL_TEXT:
        yield Problem("/blocks", f"{total} characters of text, {TOTAL_TEXT} at most")
    yield from _duplicates(blocks)
    for number, block in enumerate(blocks):
        yield from check_block(block, f"/blocks/{number}", surface)


def _message_text(text: Any) -> Iterator[Problem]:
    if not isinstance(text, str) or not text.strip():
        yield Problem("/text", "empty: notifications and screen readers need it")
        return
    if size(text) > MESSAGE_TEXT:
        yield Problem("/text", f"{size(text)} bytes, {MESSAGE_TEXT} at most")
    yield from check_markup(text, "/text")


def _duplicates(blocks: Sequence[Any]) -> Iterator[Problem]:
    blocks = [block for block in blocks if isinstance(block, Mapping)]
    for name in _repeated(block.get("block_id") for block in blocks):
        yield Problem("/blocks", f"block_id {name!r} is used twice")
    for block in blocks:
        elements = block.get("elements")
        inside = elements if isinstance(elements, list) else []
        for name in _repeated(one.get("action_id") for one in inside if isinstance(one, Mapping)):
            yield Problem("/blocks", f"action_id {name!r} is used twice in a block")


def _repeated(names: Iterable[Any]) -> list[str]:
    counted = Counter(name for name in names if isinstance(name, str))
    return sorted(name for name, count in counted.items() if count > 1)


def _disarmed(angled: str) -> str:
    if ALLOWED.fullmatch(angled):
        return angled
    return angled.replace("<", "&lt;").replace(">", "&gt;")


def _first_bytes(text: str, most: int) -> str:
    """Return the beginning of a text, not ending in half an entity or half a mention."""
    text = text.encode("utf-8", "replace").decode()
    if size(text) <= most:
        return text.strip()
    begun = text.encode()[: most - 4].decode("utf-8", "ignore")
    return re.sub(r"(?:&[a-z]{0,3}|<[^>]*)\Z", "", begun).strip() + " …"


def _texts(item: Any) -> Iterator[str]:
    """Yield every text that is shown, at any depth."""
    if isinstance(item, Mapping):
        text = item.get("text")
        if isinstance(text, str):
            yield text
        for value in item.values():
            yield from _texts(value)
    elif isinstance(item, list):
        for value in item:
            yield from _texts(value)
