"""The manifest and the listeners agree, both ways, and the scopes are the least that do."""

from __future__ import annotations

from pathlib import Path

import pytest
from slack_bolt.app.async_app import AsyncApp

from bot.surfaces.slack import listeners
from bot.surfaces.slack.app import build_app
from bot.surfaces.slack.http import PATH
from tests.support.slackrequests import (
    NOW,
    SETTINGS,
    RecordingService,
    as_form,
    as_interaction,
    as_json,
    click,
    command,
    direct,
    mention,
    message_shortcut,
)
from tests.support.yamlfiles import parse

FILE = Path(__file__).parents[4] / "manifest.yaml"
MANIFEST = parse(FILE.read_text())
FEATURES = MANIFEST["features"]
SCOPES = set(MANIFEST["oauth_config"]["scopes"]["bot"])
# What each event needs to be subscribed to, and the listener that takes it.
EVENTS = {"app_mention": "app_mentions:read", "message.im": "im:history"}
REQUESTS = {
    "app_mention": as_json(mention()),
    "message.im": as_json(direct()),
    "/gpu": as_form(command()),
    "diagnose_message": as_interaction(message_shortcut({"ts": "1.0", "text": "x"})),
}


class Noting(AsyncApp):
    """Remembers what listeners are registered for; catch-alls are patterns, and left out."""

    def __init__(self):
        self.names = {"event": set(), "command": set(), "action": set(), "shortcut": set()}

    def _note(self, kind, what):
        name = what.get("callback_id") if isinstance(what, dict) else what
        if isinstance(name, str):
            self.names[kind].add(name)
        return lambda function: function

    def event(self, what):
        return self._note("event", what)

    def command(self, what):
        return self._note("command", what)

    def action(self, what):
        return self._note("action", what)

    def shortcut(self, what):
        return self._note("shortcut", what)


@pytest.fixture
def registered():
    app = Noting()
    listeners.register(app, RecordingService())
    return app.names


def test_every_listener_is_in_the_manifest_and_the_reverse(registered):
    subscribed = MANIFEST["settings"]["event_subscriptions"]["bot_events"]
    assert registered["event"] == {name.partition(".")[0] for name in subscribed}
    assert registered["command"] == {one["command"] for one in FEATURES["slash_commands"]}
    assert registered["shortcut"] == {one["callback_id"] for one in FEATURES["shortcuts"]}
    assert {one["type"] for one in FEATURES["shortcuts"]} == {"message"}
    assert registered["action"]
    assert MANIFEST["settings"]["interactivity"]["is_enabled"]


@pytest.mark.parametrize("name", REQUESTS)
async def test_whatever_the_manifest_lets_in_reaches_the_service(name):
    service = RecordingService()
    app = build_app(SETTINGS, service, now=lambda: NOW)
    assert (await app.async_dispatch(REQUESTS[name])).status == 200
    assert service.only


async def test_buttons_reach_the_service(registered):
    service = RecordingService()
    app = build_app(SETTINGS, service, now=lambda: NOW)
    for name in sorted(registered["action"]):
        await app.async_dispatch(as_interaction(click(name, "j1")))
    assert len(service.decisions) == len(registered["action"])


def test_requests_are_there_for_all_that_the_manifest_lets_in():
    events = MANIFEST["settings"]["event_subscriptions"]["bot_events"]
    commands = [one["command"] for one in FEATURES["slash_commands"]]
    shortcuts = [one["callback_id"] for one in FEATURES["shortcuts"]]
    assert set(REQUESTS) == {*events, *commands, *shortcuts}


def test_scopes_are_the_least_that_do():
    events = MANIFEST["settings"]["event_subscriptions"]["bot_events"]
    needed = {EVENTS[name] for name in events}
    # Answers; the command and the shortcut; members of the groups that the policy names; files.
    ours = {"chat:write", "commands", "usergroups:read", "files:read", "files:write"}
    assert needed | ours == SCOPES
    assert "user" not in MANIFEST["oauth_config"]["scopes"]


def test_texts_fit_where_slack_shows_them():
    # Lengths: https://docs.slack.dev/reference/app-manifest
    shown = MANIFEST["display_information"]
    assert len(shown["name"]) <= 35
    assert len(shown["description"]) <= 140
    for one in FEATURES["slash_commands"]:
        assert len(one["description"]) <= 2000
        assert len(one["usage_hint"]) <= 1000
    for one in FEATURES["shortcuts"]:
        assert len(one["name"]) <= 24
        assert len(one["description"]) <= 150


def test_remarks_for_http_name_the_path_that_is_served():
    assert FILE.read_text().count(f"https://gpuwhy.example.com{PATH}") == 2
