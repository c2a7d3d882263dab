"""The HTTP API: tokens, arguments, answers, errors."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path

import aiohttp
import pytest

from bot import answer_json
from bot.server import Server
from bot.store import Decision
from tests.bot.http.conftest import TOKEN, running, source

LET_IN = {"Authorization": f"Bearer {TOKEN}"}


async def call(server: Server, path: str, body: object = None, **options: object):
    method = str(options.pop("method", "POST"))
    raw = BytesIO(body if isinstance(body, bytes) else json.dumps(body).encode())
    headers = {**LET_IN, **options.pop("headers", {})}  # type: ignore[dict-item]
    async with (
        aiohttp.ClientSession() as session,
        session.request(
            method, server.urls[0] + path, data=None if body is None else raw, headers=headers
        ) as response,
    ):
        return response.status, response.headers, await response.read()


async def asked(server: Server, command: str, args: object = None, **options: object):
    status, _, raw = await call(server, f"/api/v1/{command}", args, **options)
    return status, json.loads(raw)


async def test_why_answers_with_the_contract(server):
    status, document = await asked(server, "why", {"target": "node-3:7"})
    assert status == 200
    assert next(iter(document)) == "schema"
    assert (document["schema"], document["verdict"]) == ("gpuwhy/why/1", "degraded")
    assert document["diagnoses"][0]["cause"] == "power_brake"


async def test_every_command_answers(server):
    for command, args in {
        "sweep": {},
        "decode": {"text": "0x48"},
        "read": {"text": "NVRM: Xid (PCI:0000:1a:00): 79, pid=1, GPU has fallen off the bus."},
        "rules": {"action": "show", "name": "power_brake"},
        "help": {},
    }.items():
        status, document = await asked(server, command, args)
        assert (status, document["schema"].split("/")[0]) == (200, "gpuwhy"), command


async def test_exporter_text_is_judged_by_the_rules(server):
    text = "\n".join(
        f'{name}{{gpu="0",UUID="GPU-1",modelName="NVIDIA H100 80GB HBM3",Hostname="n"}} {value}'
        for name, value in {
            "DCGM_FI_DEV_GPU_TEMP": 60,
            "DCGM_FI_DEV_SM_CLOCK": 900,
            "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": 128,
            "DCGM_FI_DEV_GPU_UTIL": 98,
            "DCGM_FI_DEV_POWER_USAGE": 300,
        }.items()
    )
    status, document = await asked(server, "read", {"inputs": [{"name": "x.prom", "text": text}]})
    assert status == 200
    assert "power_brake" in document["causes"]


async def test_the_neutral_answer_on_request(server):
    headers = {"Accept": "application/vnd.gpuwhy.answer+json"}
    status, _, raw = await call(server, "/api/v1/decode", {"text": "xid 79"}, headers=headers)
    answer = answer_json.from_json(json.loads(raw))
    assert status == 200
    assert answer.data["schema"] == "gpuwhy/decode/1"
    assert answer.blocks


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"Authorization": ""}, "unauthorized"),
        ({"Authorization": "Bearer nobody-has-this-one"}, "unauthorized"),
        ({"Authorization": f"Basic {TOKEN}"}, "unauthorized"),
        ({"Authorization": f"Bearer {TOKEN}x"}, "unauthorized"),
    ],
)
async def test_without_a_token_nobody_is_let_in(server, headers, code):
    status, document = await asked(server, "decode", {"text": "1"}, headers=headers)
    assert (status, document["error"]["code"]) == (401, code)
    assert TOKEN not in json.dumps(document)


@pytest.mark.parametrize(
    ("command", "args", "status", "says"),
    [
        ("why", {}, 400, "why needs 'target'"),
        ("why", {"target": 5}, 400, "must be text"),
        ("why", {"target": "node-3:7", "windwo": "5m"}, 400, "did you mean 'window'"),
        ("why", {"target": "node-3:7", "window": "5w"}, 400, "window 5w"),
        ("why", {"target": "node-3:7", "at": "never"}, 400, "'never'"),
        ("why", {"target": "no such thing!"}, 400, "cannot tell what"),
        ("wyh", {"target": "node-3:7"}, 400, "did you mean 'why'"),
        ("read", {"inputs": []}, 400, "1 to 64"),
        ("read", {"inputs": [{"name": "x", "base64": "%%%"}]}, 400, "no base64"),
        ("sweep", {"where": "{{"}, 400, "selector"),
        ("rules", {"action": "burn"}, 400, "burn"),
        ("decode", [], 400, "no JSON object"),
        ("decode", b"{nope", 400, "no JSON"),
        ("decode", b"\xff\xfe", 400, "no JSON"),
    ],
)
async def test_wrong_arguments_are_told_in_one_line(server, command, args, status, says):
    got, document = await asked(server, command, args)
    error = document["error"]
    said = f"{error['message']}; {error['hint']}"
    assert got == status
    assert says in said
    assert "\n" not in said


async def test_moments_and_windows_may_be_numbers(server):
    args = {"target": "node-3:7", "at": int(source()._now), "window": 300}
    status, document = await asked(server, "why", args)
    assert (status, document["window_s"]) == (200, 300)


async def test_too_much_is_refused(server):
    big = b'{"text": "' + b"x" * (33 << 20) + b'"}'
    status, document = await asked(server, "read", big)
    assert (status, document["error"]["code"]) == (413, "too_large")


async def test_policy_holds_for_tokens_and_all_uses_are_audited(tmp_path):
    rules = '[{"effect": "deny", "who": "token:ci", "commands": "sweep"}]'
    async with running(tmp_path, source(), GPUWHY_POLICY_RULES=rules) as server:
        assert (await asked(server, "sweep"))[0] == 403
        assert (await asked(server, "why", {"target": "node-3:7"}))[0] == 200
        entries = await server.store.list_audit()
    assert [(e.command, e.target, e.decision) for e in entries] == [
        ("why", "node-3:7", Decision.ALLOW),
        ("sweep", "fleet", Decision.DENY),
    ]
    assert entries[0].actor["id"] == "ci"


async def test_without_tokens_the_api_is_closed(tmp_path):
    async with running(tmp_path, source(), GPUWHY_SERVER_TOKENS="") as server:
        status, document = await asked(server, "decode", {"text": "1"})
    assert status == 401
    assert "has no API tokens" in document["error"]["message"]


async def test_health_readiness_and_metrics(server):
    assert (await call(server, "/healthz", method="GET"))[2] == b"ok\n"
    status, _, raw = await call(server, "/readyz", method="GET")
    assert (status, json.loads(raw)["checks"]) == (200, {"store": "ok", "source": "ok"})
    await asked(server, "decode", {"text": "0x48"})
    text = (await call(server, "/metrics", method="GET"))[2].decode()
    assert 'gpuwhy_answers_total{command="decode",outcome="ok"} 1.0' in text
    assert (
        'gpuwhy_http_requests_total{method="POST",route="/api/v1/{command}",status="200"}' in text
    )


async def test_unready_when_something_does_not_answer(tmp_path, monkeypatch):
    async with running(tmp_path, source()) as server:
        await server.store.close()
        status, _, raw = await call(server, "/readyz", method="GET")
        assert (status, json.loads(raw)["checks"]["store"]) == (503, "store_unreachable")
        assert (await asked(server, "decode", {"text": "1"}))[0] == 503


async def test_captured_files_need_a_token_that_may_or_a_good_link(tmp_path):
    rules = '[{"effect": "allow", "who": "token:ci", "commands": "capture"}]'
    async with running(tmp_path, source(), GPUWHY_POLICY_RULES=rules) as server:
        folder = tmp_path / "data" / "captures" / "0192-a"
        folder.mkdir(parents=True)
        (folder / "x.nsys-rep").write_bytes(b"trace")
        (tmp_path / "data" / "captures" / "secret").write_text("no")
        path = "/captures/0192-a/x.nsys-rep"
        status, headers, raw = await call(server, path, method="GET")
        assert (status, raw) == (200, b"trace")
        assert headers["Content-Disposition"] == 'attachment; filename="x.nsys-rep"'
        nobody = {"Authorization": ""}
        assert (await call(server, path, method="GET", headers=nobody))[0] == 401
        forged = f"{path}?end=9999999999&signature={'0' * 64}"
        assert (await call(server, forged, method="GET", headers=nobody))[0] == 401
        for wrong in (
            "/captures/0192-a/nope",
            "/captures/..%2f/secret",
            "/captures/%2e%2e/gpuwhy.sqlite3",
        ):
            assert (await call(server, wrong, method="GET"))[0] in {401, 404}


def test_links_hold_for_a_week_and_for_one_file():
    from bot.surfaces.http.captures import LINK_LIFE_S, Links

    links = Links("http://x", b"k" * 32)
    url = links.link("c1", "f.rep", now=1000.0)
    end, signature = url.partition("?end=")[2].split("&signature=")
    assert links.holds("c1", "f.rep", end, signature, now=1000.0)
    assert not links.holds("c1", "g.rep", end, signature, now=1000.0)
    assert not links.holds("c1", "f.rep", str(int(end) + 1), signature, now=1000.0)
    assert not links.holds("c1", "f.rep", end, signature, now=1001.0 + LINK_LIFE_S)
    assert not Links("http://x", b"j" * 32).holds("c1", "f.rep", end, signature, now=1000.0)


def test_the_key_of_links_is_made_once_and_for_us_alone(tmp_path: Path):
    from bot.surfaces.http.captures import link_key

    key = link_key(tmp_path)
    assert (len(key), link_key(tmp_path)) == (32, key)
    assert (tmp_path / "links.key").stat().st_mode & 0o077 == 0
