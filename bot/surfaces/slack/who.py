"""Who asks, and by which key the same request is known again, from what Slack sends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bot.request import Actor, ActorKind

Body = Mapping[str, Any]


def actor(user: str, channel: str, name: str = "") -> Actor:
    """Return a Slack user as an actor; the service adds the groups that the user is in."""
    return Actor(ActorKind.SLACK, user, name=name, channel=channel)


def message_key(body: Body, event: Body) -> str:
    """Return the key of a question asked in a message.

    It names the message, not the event: Slack may send one message as a mention and as a message,
    with two event ids, and repeats events that were not acknowledged in time.
    """
    channel, ts = event.get("channel"), event.get("ts")
    if channel and ts:
        return f"slack:{team(body)}:message:{channel}:{ts}"
    return f"slack:{team(body)}:event:{body.get('event_id', '')}"


def trigger_key(body: Body, kind: str) -> str:
    """Return the key of a command or shortcut: its trigger id, which no other use has."""
    return f"slack:{team(body)}:{kind}:{body.get('trigger_id', '')}"


def team(body: Body) -> str:
    """Return the id of the workspace that a request comes from."""
    found = body.get("team_id") or _id(body.get("team")) or ""
    return str(found)


def _id(item: Any) -> Any:
    return item.get("id") if isinstance(item, Mapping) else item
