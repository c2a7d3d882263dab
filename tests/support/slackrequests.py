"""Requests as Slack sends them, and a service that only records what it is handed."""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from slack_bolt.request.async_request import AsyncBoltRequest

from bot.inbound import Inbound, Outcome, Ticket
from bot.request import Actor
from bot.serversettings import Slack

SECRET = "8f742231b10e8888abcd99yyyzzz85a5"
NOW = 1_764_432_000.0
SETTINGS = Slack(mode="http", bot_token="xoxb-1-secret", signing_secret=SECRET)
TEAM, USER, CHANNEL, DM = "T01TEST", "U0ALICE", "C0GPUS", "D0ALICE"
FORM = "application/x-www-form-urlencoded"


@dataclass
class RecordingService:
    """Remembers what came in; a key that was seen before is a duplicate."""

    ticket: Ticket = field(default_factory=lambda: Ticket(Outcome.ACCEPTED, "q1"))
    error: Exception | None = None
    inbounds: list[Inbound] = field(default_factory=list)
    decisions: list[tuple[str, Actor, bool]] = field(default_factory=list)
    calls: int = 0

    async def submit(self, inbound: Inbound) -> Ticket:
        self.calls += 1
        if self.error:
            raise self.error
        if any(inbound.dedupe_key == known.dedupe_key for known in self.inbounds):
            return Ticket(Outcome.DUPLICATE, "q1")
        self.inbounds.append(inbound)
        return self.ticket

    async def decide(self, job_id: str, actor: Actor, approve: bool) -> None:
        if self.error:
            raise self.error
        self.decisions.append((job_id, actor, approve))

    @property
    def only(self) -> Inbound:
        (found,) = self.inbounds
        return found


def signed(body: str, at: float = NOW, secret: str = SECRET) -> dict[str, str]:
    """Return the headers that prove that Slack sent a body."""
    stamp = f"{at:.0f}"
    digest = hmac.new(secret.encode(), f"v0:{stamp}:{body}".encode(), hashlib.sha256).hexdigest()
    return {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": f"v0={digest}"}


def http(body: str, content_type: str = "application/json", **changed: str) -> AsyncBoltRequest:
    """Return a signed request; keyword arguments replace headers (``_`` for ``-``)."""
    headers = {"content-type": content_type, **signed(body)}
    headers |= {name.replace("_", "-"): value for name, value in changed.items()}
    return AsyncBoltRequest(body=body, headers=headers)


def socket(payload: dict[str, Any], retry: int | None = 0) -> AsyncBoltRequest:
    """Return an envelope's payload as the Socket Mode client hands it on."""
    headers = None if retry is None else {"x-slack-retry-num": str(retry)}
    return AsyncBoltRequest(mode="socket_mode", body=payload, headers=headers)


def event(kind: str, event_id: str = "Ev1", **fields: Any) -> dict[str, Any]:
    """Return an Events API callback."""
    inner = {"type": kind, "user": USER, "channel": CHANNEL, "ts": "1764432000.000100", **fields}
    return {
        "type": "event_callback",
        "team_id": TEAM,
        "api_app_id": "A01",
        "event_id": event_id,
        "event_time": 1764432000,
        "authorizations": [{"team_id": TEAM, "user_id": "U0BOT", "is_bot": True}],
        "event": {name: value for name, value in inner.items() if value is not None},
    }


def mention(text: str = "<@U0BOT> why is gpu 5 on node-3 slow?", **fields: Any) -> dict[str, Any]:
    return event("app_mention", text=text, **fields)


def direct(text: str = "what is 0x48", **fields: Any) -> dict[str, Any]:
    return event("message", **{"text": text, "channel": DM, "channel_type": "im", **fields})


def command(text: str = "why node-3:5", **fields: str) -> dict[str, str]:
    return {
        "team_id": TEAM,
        "channel_id": CHANNEL,
        "channel_name": "gpus",
        "user_id": USER,
        "user_name": "alice",
        "command": "/gpu",
        "text": text,
        "response_url": "https://hooks.slack.com/commands/T01TEST/1/secret",
        "trigger_id": "13345224609.738474920.8088930838d88f008e0",
        **fields,
    }


def click(action_id: str, value: str, **fields: Any) -> dict[str, Any]:
    return {
        "type": "block_actions",
        "team": {"id": TEAM},
        "user": {"id": USER, "username": "alice"},
        "channel": {"id": CHANNEL},
        "trigger_id": "1.2.3",
        "container": {"type": "message", "message_ts": "1.0", "channel_id": CHANNEL},
        "actions": [
            {"type": "button", "block_id": "b", "action_id": action_id, "value": value,
             "action_ts": "1764432001.0"}
        ],
        **fields,
    }  # fmt: skip


def message_shortcut(message: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "type": "message_action",
        "callback_id": "diagnose_message",
        "team": {"id": TEAM},
        "user": {"id": USER, "name": "alice"},
        "channel": {"id": CHANNEL},
        "trigger_id": "9.8.7",
        "message_ts": message.get("ts", ""),
        "response_url": "https://hooks.slack.com/app/T01TEST/1/secret",
        "message": message,
        **fields,
    }


def as_json(payload: dict[str, Any]) -> AsyncBoltRequest:
    """Return an event as a signed request."""
    return http(json.dumps(payload))


def as_form(payload: dict[str, str]) -> AsyncBoltRequest:
    """Return a slash command as a signed request."""
    return http(urlencode(payload), FORM)


def as_interaction(payload: dict[str, Any]) -> AsyncBoltRequest:
    """Return a click or a shortcut as a signed request."""
    return http(urlencode({"payload": json.dumps(payload)}), FORM)
