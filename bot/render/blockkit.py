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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

log = logging.getLogger(__name__)

MESSAGE_TEXT = 4000
TOTAL_TEXT = 10_000
SECTION_TEXT = 3000
FIELDS = 10
FIELD_TEXT = 2000
HEADER_TEXT = 150
CONTEXT_ELEMENTS = 10
ACTIONS = 25
BUTTON_TEXT = 75
BUTTON_VALUE = 2000
IDENTIFIER = 255
CONFIRM_TITLE = 100
CONFIRM_TEXT = 300
CONFIRM_BUTTON = 30
ALT_TEXT = 2000
URL = 3000
MARKDOWN_TEXT = 12_000

Payload = Mapping[str, Any]

_ANGLED = re.compile(r"<[^>]*>?")
# What gpuwhy writes in angle brackets: a user to be named, and a link. Nothing that calls many.
_ALLOWED = re.compile(r"<@[UW][A-Z0-9]+>|<https?://[^\s<>|]+(?:\|[^<>]+)?>")
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


class Surface(StrEnum):
    """Where blocks are shown."""

    MESSAGE = "message"
    MODAL = "modal"
    HOME = "home"


MAX_BLOCKS = {Surface.MESSAGE: 50, Surface.MODAL: 100, Surface.HOME: 100}
_EVERYWHERE = frozenset(Surface)
_SURFACES = {
    "section": _EVERYWHERE,
    "header": _EVERYWHERE,
    "divider": _EVERYWHERE,
    "context": _EVERYWHERE,
    "actions": _EVERYWHERE,
    "image": _EVERYWHERE,
    "markdown": frozenset({Surface.MESSAGE}),
}


@dataclass(frozen=True, slots=True)
class Problem:
    """What Slack would refuse, and where (a JSON pointer)."""

    pointer: str
    message: str

    def __str__(self) -> str:
        return f"{self.pointer}: {self.message}"


def units(text: str) -> int:
    """Return the length of a text as Slack counts it at worst: in UTF-16 units."""
    return len(text) + sum(1 for char in text if char > "\uffff")


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
    safe = _ANGLED.sub(lambda angled: _disarmed(angled[0]), said)
    return {"text": _first_bytes(safe, MESSAGE_TEXT) or "gpuwhy"}


def _problems(payload: Payload, surface: Surface) -> Iterator[Problem]:
    if surface is Surface.MESSAGE:
        for key in sorted(set(payload) - _MESSAGE_KEYS):
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
        yield from _block(block, f"/blocks/{number}", surface)


def _message_text(text: Any) -> Iterator[Problem]:
    if not isinstance(text, str) or not text.strip():
        yield Problem("/text", "empty: notifications and screen readers need it")
        return
    if size(text) > MESSAGE_TEXT:
        yield Problem("/text", f"{size(text)} bytes, {MESSAGE_TEXT} at most")
    yield from _markup(text, "/text")


def _block(block: Any, at: str, surface: Surface) -> Iterator[Problem]:
    kind = block.get("type") if isinstance(block, Mapping) else None
    if kind not in _SURFACES:
        yield Problem(f"{at}/type", f"unknown block {kind!r}")
        return
    if surface not in _SURFACES[kind]:
        yield Problem(f"{at}/type", f"{kind} cannot be shown in a {surface}")
    yield from _identifier(block, "block_id", at, needed=False)
    yield from _CHECKS[kind](block, at)


def _section(block: Payload, at: str) -> Iterator[Problem]:
    fields = block.get("fields", [])
    if "text" not in block and not fields:
        yield Problem(at, "neither text nor fields")
    if "text" in block:
        yield from _text(block["text"], f"{at}/text", SECTION_TEXT)
    yield from _few(fields, FIELDS, f"{at}/fields")
    for number, one in enumerate(fields):
        yield from _text(one, f"{at}/fields/{number}", FIELD_TEXT)
    yield from _unknown_keys(block, {"text", "fields", "expand"}, at)


def _header(block: Payload, at: str) -> Iterator[Problem]:
    yield from _text(block.get("text"), f"{at}/text", HEADER_TEXT, plain=True)
    yield from _unknown_keys(block, {"text"}, at)


def _divider(block: Payload, at: str) -> Iterator[Problem]:
    yield from _unknown_keys(block, set(), at)


def _context(block: Payload, at: str) -> Iterator[Problem]:
    elements = block.get("elements") or []
    if not elements:
        yield Problem(f"{at}/elements", "empty")
    yield from _few(elements, CONTEXT_ELEMENTS, f"{at}/elements")
    for number, element in enumerate(elements):
        yield from _text(element, f"{at}/elements/{number}", SECTION_TEXT)
    yield from _unknown_keys(block, {"elements"}, at)


def _actions(block: Payload, at: str) -> Iterator[Problem]:
    elements = block.get("elements") or []
    if not elements:
        yield Problem(f"{at}/elements", "empty")
    yield from _few(elements, ACTIONS, f"{at}/elements")
    for number, element in enumerate(elements):
        where = f"{at}/elements/{number}"
        if not isinstance(element, Mapping) or element.get("type") != "button":
            yield Problem(f"{where}/type", "no button")
        else:
            yield from _button(element, where)
    yield from _unknown_keys(block, {"elements"}, at)


def _button(button: Payload, at: str) -> Iterator[Problem]:
    yield from _text(button.get("text"), f"{at}/text", BUTTON_TEXT, plain=True)
    yield from _identifier(button, "action_id", at, needed=True)
    yield from _short(button, "value", BUTTON_VALUE, at)
    yield from _short(button, "url", URL, at)
    yield from _short(button, "accessibility_label", BUTTON_TEXT, at)
    if button.get("style", "primary") not in {"primary", "danger"}:
        yield Problem(f"{at}/style", "neither primary nor danger")
    if "confirm" in button:
        confirm, where = button["confirm"], f"{at}/confirm"
        yield from _text(confirm.get("title"), f"{where}/title", CONFIRM_TITLE, plain=True)
        yield from _text(confirm.get("text"), f"{where}/text", CONFIRM_TEXT)
        for key in ("confirm", "deny"):
            yield from _text(confirm.get(key), f"{where}/{key}", CONFIRM_BUTTON, plain=True)
    known = {"text", "action_id", "value", "url", "style", "confirm", "accessibility_label"}
    yield from _unknown_keys(button, known, at)


def _image(block: Payload, at: str) -> Iterator[Problem]:
    yield from _short(block, "image_url", URL, at)
    yield from _short(block, "alt_text", ALT_TEXT, at)
    if not block.get("image_url") or not block.get("alt_text"):
        yield Problem(at, "an image needs image_url and alt_text")
    yield from _unknown_keys(block, {"image_url", "alt_text"}, at)


def _markdown(block: Payload, at: str) -> Iterator[Problem]:
    text = block.get("text")
    if not isinstance(text, str) or not text or units(text) > MARKDOWN_TEXT:
        yield Problem(f"{at}/text", f"no text of 1 to {MARKDOWN_TEXT} characters")
    yield from _unknown_keys(block, {"text"}, at)


_CHECKS: Mapping[str, Callable[[Payload, str], Iterator[Problem]]] = {
    "section": _section,
    "header": _header,
    "divider": _divider,
    "context": _context,
    "actions": _actions,
    "image": _image,
    "markdown": _markdown,
}


def _text(text: Any, at: str, most: int, *, plain: bool = False) -> Iterator[Problem]:
    if not isinstance(text, Mapping) or not isinstance(text.get("text"), str):
        yield Problem(at, "no text object")
        return
    kinds = {"plain_text"} if plain else {"plain_text", "mrkdwn"}
    if text.get("type") not in kinds:
        yield Problem(f"{at}/type", f"{text.get('type')!r} is not allowed here")
    said = text["text"]
    if not said.strip():
        yield Problem(f"{at}/text", "empty")
    if units(said) > most:
        yield Problem(f"{at}/text", f"{units(said)} characters, {most} at most")
    if text.get("type") == "mrkdwn":
        yield from _markup(said, f"{at}/text")
        if "emoji" in text:
            yield Problem(f"{at}/emoji", "only for plain_text")


def _markup(text: str, at: str) -> Iterator[Problem]:
    for found in _ANGLED.findall(text):
        if not _ALLOWED.fullmatch(found):
            yield Problem(at, f"{found[:40]!r} would be obeyed")


def _identifier(item: Payload, key: str, at: str, *, needed: bool) -> Iterator[Problem]:
    value = item.get(key)
    if value is None and not needed:
        return
    if not isinstance(value, str) or not 0 < units(value) <= IDENTIFIER:
        yield Problem(f"{at}/{key}", f"no text of 1 to {IDENTIFIER} characters")


def _short(item: Payload, key: str, most: int, at: str) -> Iterator[Problem]:
    value = item.get(key, "")
    if not isinstance(value, str) or units(value) > most:
        yield Problem(f"{at}/{key}", f"no text of at most {most} characters")


def _few(items: Sequence[Any], most: int, at: str) -> Iterator[Problem]:
    if len(items) > most:
        yield Problem(at, f"{len(items)}, {most} at most")


def _unknown_keys(item: Payload, known: set[str], at: str) -> Iterator[Problem]:
    for key in sorted(set(item) - known - {"type", "block_id"}):
        yield Problem(f"{at}/{key}", "unknown")


def _duplicates(blocks: Sequence[Any]) -> Iterator[Problem]:
    blocks = [block for block in blocks if isinstance(block, Mapping)]
    named = [block["block_id"] for block in blocks if "block_id" in block]
    for name in sorted({one for one in named if named.count(one) > 1}, key=str):
        yield Problem("/blocks", f"block_id {name!r} is used twice")
    for block in blocks:
        elements = block.get("elements")
        actions = [
            element["action_id"]
            for element in (elements if isinstance(elements, list) else [])
            if isinstance(element, Mapping) and "action_id" in element
        ]
        for name in sorted({one for one in actions if actions.count(one) > 1}, key=str):
            yield Problem("/blocks", f"action_id {name!r} is used twice in a block")


def _disarmed(angled: str) -> str:
    if _ALLOWED.fullmatch(angled):
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
