"""What was asked, and by whom: the two values that every surface hands on.

Both are plain, frozen and JSON-able, so that they can be stored, sent to another process and read
back unchanged. Nothing is imported here that costs start-up time.

The arguments of each command (all optional ones are absent when not given):

========  ==========================================================================
why       ``target``; ``at`` (a moment as `bot.times` reads it), ``window`` (a span)
sweep     ``where`` (label matchers, as `bot.selector` reads them), ``at``, ``window``
decode    ``text``
ask       ``text``; ``after`` (the question before it)
calc      ``words`` (a list: the calculator, then ``input=value``)
kb        ``action`` (list, show, search, lint), ``text``
read      ``text``; ``files`` (of a Slack message, see `bot.attachments`)
capture   ``profiler``, ``target``, ``duration_s`` (seconds)
rules     ``action`` (list, show, lint, test, why-not), ``name``; for why-not ``target``,
          ``at``, ``window``
help      ``topic`` (a command)
========  ==========================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

from engine.errors import UsageError

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


class ActorKind(StrEnum):
    """Where an actor's identity comes from."""

    SLACK = "slack"
    TOKEN = "token"  # noqa: S105 - the word for an API token's holder, not a secret
    LOCAL = "local"


@dataclass(frozen=True, slots=True)
class Actor:
    """Who asks.

    Attributes:
        kind: where the identity comes from.
        id: stable id: a Slack user id, the name of an API token, a login name. Never a secret.
        name: for people to read; says nothing about rights.
        groups: ids of the groups that the actor is in, sorted (Slack user groups).
        channel: where the actor asks: a Slack channel id, or an empty string.
    """

    kind: ActorKind
    id: str
    name: str = ""
    groups: tuple[str, ...] = ()
    channel: str = ""

    def to_json(self) -> dict[str, Json]:
        """Return the actor as JSON-able values."""
        return {
            "kind": str(self.kind),
            "id": self.id,
            "name": self.name,
            "groups": list(self.groups),
            "channel": self.channel,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Actor:
        """Return the actor that `to_json` wrote.

        Raises:
            UsageError: a key is missing, or holds a value of another type.
        """
        kind = _text(data, "kind", "actor")
        if kind not in set(ActorKind):
            raise UsageError(f"{kind!r} is no kind of actor", hint="use slack, token or local")
        groups = data.get("groups", [])
        if not isinstance(groups, list | tuple) or not all(isinstance(g, str) for g in groups):
            raise UsageError("groups of an actor must be a list of texts")
        return cls(
            kind=ActorKind(kind),
            id=_text(data, "id", "actor"),
            name=_text(data, "name", "actor", ""),
            groups=tuple(groups),
            channel=_text(data, "channel", "actor", ""),
        )


@dataclass(frozen=True, slots=True)
class Request:
    """One command with its arguments, as understood.

    Attributes:
        command: name of a command (see the module's table).
        args: arguments by name (see the module's table); JSON-able, not to be changed.
        text: what was typed, or its beginning, for people to recognise their question.
    """

    command: str
    args: Mapping[str, Json] = field(default_factory=dict)
    text: str = ""

    def to_json(self) -> dict[str, Json]:
        """Return the request as JSON-able values."""
        return {"command": self.command, "args": dict(self.args), "text": self.text}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Request:
        """Return the request that `to_json` wrote.

        Raises:
            UsageError: a key is missing, or holds a value of another type.
        """
        command = _text(data, "command", "request")
        args = data.get("args", {})
        if not isinstance(args, Mapping) or not all(isinstance(name, str) for name in args):
            raise UsageError("args of a request must be an object with named values")
        return cls(
            command=command,
            args=dict(args),
            text=_text(data, "text", "request", ""),
        )


def _text(data: Mapping[str, Any], key: str, what: str, default: str | None = None) -> str:
    if not isinstance(data, Mapping):
        raise UsageError(f"{what} must be an object")
    found = data.get(key, default)
    if not isinstance(found, str):
        state = "has no" if key not in data else "has a value that is no text for"
        raise UsageError(f"{what} {state} {key!r}")
    return found
