"""The words of a message: alerts keep most of theirs in attachments, not in the text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_KEYS = ("pretext", "title", "text")


def words(message: Mapping[str, Any]) -> str:
    """Return the text of a message and of its attachments, or of its blocks if it has no text."""
    said = [str(message.get("text") or "")]
    if not said[0].strip():
        said = list(_in_blocks(message.get("blocks")))
    for attachment in message.get("attachments") or ():
        if isinstance(attachment, Mapping):
            said.extend(_in_attachment(attachment))
    # An attachment often repeats the text of its message.
    return "\n".join(dict.fromkeys(text for text in said if text.strip()))


def _in_attachment(attachment: Mapping[str, Any]) -> Iterator[str]:
    found = [str(attachment[key]) for key in _KEYS if attachment.get(key)]
    found.extend(
        f"{field.get('title', '')}: {field.get('value', '')}"
        for field in attachment.get("fields") or ()
        if isinstance(field, Mapping)
    )
    found.extend(_in_blocks(attachment.get("blocks")))
    yield from found or [str(attachment.get("fallback") or "")]


def _in_blocks(item: Any) -> Iterator[str]:
    if isinstance(item, Mapping):
        text = item.get("text")
        if isinstance(text, str):
            yield text
        for value in item.values():
            yield from _in_blocks(value)
    elif isinstance(item, list):
        for value in item:
            yield from _in_blocks(value)
