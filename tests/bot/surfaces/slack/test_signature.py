"""Only what Slack signed, and signed just now, gets through; nothing else leaves a trace."""

from __future__ import annotations

import json
import logging
from urllib.parse import urlencode

import aiohttp
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from bot.serversettings import Slack
from bot.surfaces.slack.app import build_app
from bot.surfaces.slack.http import route
from bot.surfaces.slack.quiet import quiet_logger, redacted
from bot.surfaces.slack.signature import Signature
from engine.errors import UsageError
from tests.support.slackrequests import (
    FORM,
    NOW,
    SECRET,
    SETTINGS,
    RecordingService,
    command,
    http,
    mention,
    signed,
)

BODY = json.dumps(mention())
FORM_BODY = urlencode(command())
WRONG = {
    "another secret": signed(BODY, secret="another"),
    "stale": signed(BODY, at=NOW - 301),
    "from the future": signed(BODY, at=NOW + 301),
    "another body": signed(BODY + " "),
    "no signature": {"X-Slack-Request-Timestamp": f"{NOW:.0f}"},
    "no timestamp": {"X-Slack-Signature": signed(BODY)["X-Slack-Signature"]},
    "nothing": {},
    "a word for a timestamp": {**signed(BODY), "X-Slack-Request-Timestamp": "today"},
    "a fraction": {**signed(BODY), "X-Slack-Request-Timestamp": "1764432000.5"},
    "a huge timestamp": {**signed(BODY), "X-Slack-Request-Timestamp": "9" * 400},
    "a strange signature": {**signed(BODY), "X-Slack-Signature": "v0=é"},
    "a short signature": {**signed(BODY), "X-Slack-Signature": "v0="},
    "upper case": {
        **signed(BODY),
        "X-Slack-Signature": signed(BODY)["X-Slack-Signature"].upper(),
    },
}


@pytest.fixture
def service():
    return RecordingService()


@pytest.fixture
def app(service):
    return build_app(SETTINGS, service, now=lambda: NOW)


@pytest.mark.parametrize("headers", WRONG.values(), ids=WRONG)
async def test_a_wrong_signature_is_refused_and_nothing_submitted(app, service, headers, caplog):
    caplog.set_level(logging.DEBUG)
    request = http(BODY)
    for name in ("x-slack-signature", "x-slack-request-timestamp"):
        request.headers.pop(name)
    request.headers |= {name.lower(): [value] for name, value in headers.items()}
    response = await app.async_dispatch(request)
    assert response.status == 401
    assert service.calls == 0
    assert "node-3" not in caplog.text


async def test_a_forged_command_is_refused_and_its_response_url_not_logged(app, service, caplog):
    caplog.set_level(logging.DEBUG)
    request = http(FORM_BODY, FORM, **{"X-Slack-Signature": "v0=" + "0" * 64})
    assert (await app.async_dispatch(request)).status == 401
    assert service.calls == 0
    assert "hooks.slack.com" not in caplog.text


async def test_almost_five_minutes_are_believed(service):
    app = build_app(SETTINGS, service, now=lambda: NOW + 299)
    assert (await app.async_dispatch(http(BODY))).status == 200
    assert service.calls == 1


async def test_without_a_secret_nothing_is_believed(service):
    app = build_app(Slack(mode="http", bot_token="xoxb-1"), service, now=lambda: NOW)
    assert (await app.async_dispatch(http(BODY))).status == 401


def test_http_needs_a_signing_secret(app):
    with pytest.raises(UsageError, match="GPUWHY_SLACK_SIGNING_SECRET"):
        route(app, Slack(mode="http", bot_token="xoxb-1"))


async def test_slack_is_told_that_the_address_is_right(app):
    challenge = json.dumps({"type": "url_verification", "challenge": "abc", "token": "t"})
    response = await app.async_dispatch(http(challenge))
    assert json.loads(response.body) == {"challenge": "abc"}


@given(st.text(max_size=30), st.text(max_size=90))
def test_no_header_breaks_the_check(stamp, signature):
    assert not Signature(SECRET, lambda: NOW).is_valid(BODY, stamp, signature)


@pytest.fixture
async def server(app):
    site = web.Application()
    site.add_routes([route(app, SETTINGS, now=lambda: NOW)])
    runner = web.AppRunner(site)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    yield f"http://127.0.0.1:{port}/slack/events"
    await runner.cleanup()


async def post(url, body, headers, content_type="application/json"):
    async with (
        aiohttp.ClientSession() as session,
        session.post(url, data=body, headers={"content-type": content_type, **headers}) as answer,
    ):
        return answer.status, await answer.text()


async def test_over_http_a_signed_event_is_taken(server, service):
    assert await post(server, BODY, signed(BODY)) == (200, "")
    assert service.calls == 1


async def test_over_http_a_signed_command_is_taken(server, service):
    assert await post(server, FORM_BODY, signed(FORM_BODY), FORM) == (200, "")
    assert service.calls == 1


@pytest.mark.parametrize("body", ["", "{", "[]", '"x"', "null", "[" * 5000, '{"event": 3}'])
async def test_over_http_nonsense_is_refused_before_it_is_parsed(server, service, body):
    assert (await post(server, body, {}))[0] == 401
    assert (await post(server, body, signed(body, secret="another")))[0] == 401
    assert (await post(server, b"\xff\xfe", {}))[0] == 401
    assert service.calls == 0


@pytest.mark.parametrize("body", ["{", "[" * 100_000, "[]", '"x"', "7"])
async def test_over_http_signed_nonsense_is_unreadable(server, service, body):
    assert (await post(server, body, signed(body)))[0] == 400
    assert service.calls == 0


@pytest.mark.parametrize(
    "secret",
    [
        "xoxb-123-456-AbC",
        "xapp-1-A0-2-abc",
        "https://hooks.slack.com/commands/T1/2/xyz",
        "https://hooks.slack.com/actions/T1/2/xyz",
        "http://127.0.0.1:4500/response/8f2a",
    ],
)
def test_secrets_are_redacted(secret):
    assert redacted(f"failed: {secret} again") == "failed: [secret] again"


def test_a_socket_ticket_is_redacted():
    said = redacted("url='wss://wss-primary.slack.com/link/?ticket=abc-1&app_id=2'")
    assert said == "url='wss://wss-primary.slack.com/link/?ticket=[secret]&app_id=2'"


def test_what_the_libraries_log_is_redacted_and_has_no_traceback(caplog):
    logger = quiet_logger()
    logger.info("a whole request, token xoxb-1")
    problem = ConnectionError("wss://x/?ticket=t0p")
    logger.error("Failed to connect (error: %s)", problem, exc_info=problem)
    (record,) = caplog.records
    assert record.getMessage() == (
        "Failed to connect (error: wss://x/?ticket=[secret]) [ConnectionError]"
    )
    assert record.exc_info is None
