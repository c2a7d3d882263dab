"""What Slack takes in each block and in each text, by number.

Sources: https://docs.slack.dev/reference/block-kit and the checks of ``slack_sdk.models.blocks``.
Only the blocks that gpuwhy sends are known; any other is a problem.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

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

Payload: TypeAlias = Mapping[str, Any]

ANGLED = re.compile(r"<[^>]*>?")
# What gpuwhy writes in angle brackets: a user to be named, and a link. Nothing that calls many.
ALLOWED = re.compile(r"<@[UW][A-Z0-9]+>|<https?://[^\s<>|]+(?:\|[^<>]+)?>")


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


def check_block(block: Any, at: str, surface: Surface) -> Iterator[Problem]:
    """Yield what Slack would refuse in a block; ``at`` points to it."""
    kind = block.get("type") if isinstance(block, Mapping) else None
    if not isinstance(kind, str) or kind not in _SURFACES:
        yield Problem(f"{at}/type", f"unknown block {kind!r}")
        return
    if surface not in _SURFACES[kind]:
        yield Problem(f"{at}/type", f"{kind} cannot be shown in a {surface}")
    yield from _identifier(block, "block_id", at, needed=False)
    yield from _CHECKS[kind](block, at)


def _section(block: Payload, at: str) -> Iterator[Problem]:
    fields = _list(block.get("fields"))
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
    elements = _list(block.get("elements"))
    if not elements:
        yield Problem(f"{at}/elements", "empty")
    yield from _few(elements, CONTEXT_ELEMENTS, f"{at}/elements")
    for number, element in enumerate(elements):
        yield from _text(element, f"{at}/elements/{number}", SECTION_TEXT)
    yield from _unknown_keys(block, {"elements"}, at)


def _actions(block: Payload, at: str) -> Iterator[Problem]:
    elements = _list(block.get("elements"))
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
    if button.get("style", "primary") not in ("primary", "danger"):
        yield Problem(f"{at}/style", "neither primary nor danger")
    if "confirm" in button:
        confirm, where = _mapping(button["confirm"]), f"{at}/confirm"
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
    kinds = ("plain_text",) if plain else ("plain_text", "mrkdwn")
    if text.get("type") not in kinds:
        yield Problem(f"{at}/type", f"{text.get('type')!r} is not allowed here")
    said = text["text"]
    if not said.strip():
        yield Problem(f"{at}/text", "empty")
    if units(said) > most:
        yield Problem(f"{at}/text", f"{units(said)} characters, {most} at most")
    if text.get("type") == "mrkdwn":
        yield from check_markup(said, f"{at}/text")
        if "emoji" in text:
            yield Problem(f"{at}/emoji", "only for plain_text")


def check_markup(text: str, at: str) -> Iterator[Problem]:
    """Yield what would be obeyed in markup: whatever in angle brackets gpuwhy does not write."""
    for found in ANGLED.findall(text):
        if not ALLOWED.fullmatch(found):
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


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _mapping(value: Any) -> Payload:
    return value if isinstance(value, Mapping) else {}


def _few(items: list[Any], most: int, at: str) -> Iterator[Problem]:
    if len(items) > most:
        yield Problem(at, f"{len(items)}, {most} at most")


def _unknown_keys(item: Payload, known: set[str], at: str) -> Iterator[Problem]:
    for key in sorted(set(item) - known - {"type", "block_id"}, key=str):
        yield Problem(f"{at}/{key}", "unknown")
