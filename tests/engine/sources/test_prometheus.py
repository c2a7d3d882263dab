"""Servers that are slow, broken, picky or gone: one clear line each, and nothing leaked."""

from __future__ import annotations

import asyncio
import email.utils
import gzip
import json
import ssl
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trustme
from aiohttp import web

from engine.errors import GpuwhyError, InputError, SourceError, UsageError
from engine.samples import Batch, Matcher, Selection
from engine.sources import PrometheusConfig, PrometheusSource
from engine.sources import web as web_module
from engine.sources.selector import selectors, window_ms
from tests.support.servers import free_port
from tests.support.web import Handler, answers, serve

AT = 1_764_432_000.0
WAVE = [Selection(("up",))]


def matrix(*series: dict[str, Any], **extra: Any) -> str:
    return json.dumps(
        {"status": "success", "data": {"resultType": "matrix", "result": list(series)}, **extra}
    )


UP = {"metric": {"__name__": "up", "job": "a"}, "values": [[AT - 15, "1"], [AT, "0"]]}
GOOD = matrix(UP)


async def ask(
    url: str, wave: list[Selection] = WAVE, at: float | None = AT, **options: Any
) -> Batch:
    source = PrometheusSource(PrometheusConfig(url, **options))
    try:
        return await source.select(wave, at=at)
    finally:
        await source.aclose()


async def refused(handler: Handler, **options: Any) -> str:
    """Return the one line that is shown when a server always answers like this."""
    async with serve(handler) as site:
        with pytest.raises(SourceError) as caught:
            await ask(site.url, **options)
    line = caught.value.one_line()
    assert "\n" not in line
    assert caught.value.exit_status == 3
    return line.replace(site.url, "URL")


async def test_values_times_and_labels_arrive() -> None:
    odd = {
        "metric": {"__name__": "a", "gpu": "5"},
        "values": [[AT - 2, "NaN"], [AT - 1.5, "+Inf"], [AT - 1, "-Inf"], [AT, "1e-3"]],
    }
    async with serve(answers(matrix(UP, odd))) as site:
        batch = await ask(site.url)
    a, up = batch.series
    assert (a.name, a.labels, up.name, up.labels) == ("a", {"gpu": "5"}, "up", {"job": "a"})
    assert a.ts.tolist() == [AT - 2, AT - 1.5, AT - 1, AT]
    assert np.array_equal(a.values, [np.nan, np.inf, -np.inf, 0.001], equal_nan=True)
    assert (batch.queries, batch.at, batch.warnings) == (1, AT, [])


async def test_samples_outside_the_window_are_cut_off() -> None:
    late = {
        "metric": {"__name__": "up"},
        "values": [[AT - 901, "1"], [AT - 900, "2"], [AT + 1, "3"]],
    }
    gone = {"metric": {"__name__": "up", "job": "b"}, "values": [[AT - 901, "1"]]}
    async with serve(answers(matrix(late, gone))) as site:
        batch = await ask(site.url)
    assert [(s.ts.tolist(), s.values.tolist()) for s in batch.series] == [([AT - 900], [2.0])]


async def test_the_request_is_a_form_and_names_no_more_than_asked() -> None:
    wave = [
        Selection(("a", "b.c"), (Matcher("Hostname", "=", 'x"\\\n'), Matcher("gpu", "!~", "7|8")))
    ]
    async with serve(answers(GOOD)) as site:
        await ask(f"{site.url}/prometheus/", wave)
        [(method, path, form, headers)] = site.seen
    assert (method, path) == ("POST", "/prometheus/api/v1/query")
    assert form["query"] == ('{__name__=~"a|b\\\\.c",Hostname="x\\"\\\\\\n",gpu!~"7|8"}[900001ms]')
    assert form["time"] == "1764432000.000"
    assert headers["User-Agent"] == "gpuwhy"


def test_the_range_covers_the_closed_window() -> None:
    assert window_ms(100.0, 10.0) == (100_000, 10_001)
    assert window_ms(100.0004, 10.0) == (100_000, 10_001)
    end, span = window_ms(100.0007, 0.1)
    assert (end, end - span) == (100_001, 99_900)


def test_selectors_split_by_length() -> None:
    parts = list(selectors([f"name_{k:03}" for k in range(100)], [Matcher("a", "=", "b")], 200))
    assert [n for names, _ in parts for n in names] == [f"name_{k:03}" for k in range(100)]
    assert all(len(text) <= 200 for _, text in parts)
    assert len(parts) < 9
    assert list(selectors(["x"] * 3, [], 5)) == [(("x",), '{__name__="x"}')]


@pytest.mark.parametrize(
    ("matcher", "words"),
    [
        (Matcher('a"b', "=", "x"), "not a label name"),
        (Matcher("a", "==", "x"), "does not compare"),
        (Matcher("a", "=~", "(x"), "malformed"),
        (Matcher("a", "=~", "(?=x)y"), "(?="),
        (Matcher("a", "=~", r"(x)\1"), "do not read alike"),
        (Matcher("a", "=~", "[[:alpha:]]"), "[[:"),
        (Matcher("a", "=~", "x" * 20_000), "longer than"),
    ],
)
async def test_malformed_matchers_are_usage_errors(matcher: Matcher, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        await ask("http://127.0.0.1:9", [Selection(("up",), (matcher,))])
    assert words in caught.value.message


async def test_a_selection_of_everything_is_refused() -> None:
    with pytest.raises(UsageError):
        await ask("http://127.0.0.1:9", [Selection(())])


# ---- what goes wrong


async def test_refused() -> None:
    with pytest.raises(SourceError) as caught:
        await ask(f"http://127.0.0.1:{free_port()}")
    assert "cannot be reached: connection refused" in caught.value.message
    assert caught.value.code == "source_unreachable"


async def test_unknown_host() -> None:
    with pytest.raises(SourceError) as caught:
        await ask("http://no-such-host.invalid:9090")
    assert caught.value.message.startswith("http://no-such-host.invalid:9090 cannot be reached")
    assert caught.value.code == "source_unreachable"


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("<!DOCTYPE html><html><body>Sign in", "URL answers with a web page instead of JSON"),
        (GOOD[:-20], "URL answers with JSON that is cut off or broken"),
        ("", "URL answers with nothing instead of JSON; look at what a proxy"),
        ("\ufeff\x00{\x00", "URL answers with binary data instead of JSON"),
        ("\x1b[31mhello\nworld", "URL does not answer with JSON: [31mhello world"),
        ("[1, 2]", "URL answers with JSON of another kind"),
        ('{"status": "ok"}', "URL answers with JSON of another kind"),
        ('{"status": "success", "data": []}', "URL answers with JSON of another kind"),
        (
            '{"status": "success", "data": {"resultType": "vector", "result": []}}',
            "URL answers with a vector where a matrix was asked for",
        ),
        (
            '{"status": "success", "data": {"resultType": "matrix", "result": [{"values": 3}]}}',
            "URL answers with a matrix that is malformed",
        ),
        (
            matrix({"metric": {}, "values": [[1, "x"]]}),
            "URL answers with a matrix that is malformed",
        ),
        (matrix({"metric": {}, "values": [[1]]}), "URL answers with a matrix that is malformed"),
        (matrix({"values": [[1, "1"]]}), "URL answers with a matrix that is malformed"),
        (
            '{"status": "error", "errorType": "execution", "error": "query\\u0000 too\\nbig"}',
            "URL answers with an error: execution: query too big",
        ),
    ],
)
async def test_wrong_bodies(body: str, line: str) -> None:
    assert (await refused(answers(body))).startswith(line)


@pytest.mark.parametrize(
    ("encoding", "body", "words"),
    [
        ("gzip", GOOD.encode(), "packs its answer in another way than it says"),
        ("deflate", b"\x00\x01noise", "packs its answer in another way than it says"),
        ("br", b"noise", "packs its answer in another way than it says"),
        ("zstd", b"noise", "packs its answer in another way than it says"),
        (
            "gzip",
            gzip.compress(GOOD.encode(), mtime=0)[:20],
            "answers with nothing instead of JSON",
        ),
        (
            "",
            gzip.compress(GOOD.encode(), mtime=0),
            "answers with packed data (gzip) that it does not call",
        ),
    ],
)
async def test_answers_that_cannot_be_unpacked(encoding: str, body: bytes, words: str) -> None:
    said = f"Content-Encoding: {encoding}\r\n" if encoding else ""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 200 OK\r\n{said}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with pytest.raises(SourceError) as caught:
        await ask(f"http://127.0.0.1:{port}")
    server.close()
    line = caught.value.one_line()
    assert words in line
    assert "proxy" in line
    assert not any(word in line for word in ("message=", "install", "Errno", "zlib", "\ufffd"))


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (
            400,
            '{"status":"error","errorType":"bad_data","error":"1:2: parse error"}',
            "HTTP 400: bad_data: 1:2: parse error",
        ),
        (401, "no org id", "refuses access (HTTP 401): no org id; give credentials"),
        (403, "<html>nope</html>", "refuses access (HTTP 403); give credentials"),
        (
            404,
            "404 page not found",
            "(HTTP 404): 404 page not found; the API may have a path prefix",
        ),
        (
            422,
            '{"status":"error","errorType":"execution","error":"too many samples"}',
            "too many samples",
        ),
        (429, "slow down", "HTTP 429: slow down; too many requests"),
        (500, "x" * 5000, "HTTP 500: xxx"),
        (503, "", "HTTP 503; the server is not ready"),
        (204, "", "answers with nothing instead of JSON"),
    ],
)
async def test_error_statuses(status: int, body: str, words: str) -> None:
    line = await refused(answers(body, status=status))
    assert words in line
    assert len(line) < 400


async def test_a_slow_server_runs_into_the_time_out() -> None:
    async def slow(_request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(5)
        return web.Response(text=GOOD)

    began = time.monotonic()
    line = await refused(slow, timeout_s=0.2, slow_hint="wait longer")
    assert "did not answer within 0.2 s; wait longer" in line
    assert time.monotonic() - began < 2


async def test_an_answer_that_never_ends_runs_into_the_time_out() -> None:
    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"{")
            await asyncio.sleep(0.02)

    assert "did not answer within 0.3 s" in await refused(drip, timeout_s=0.3)


async def test_cancelling_stops_at_once_and_leaves_nothing_behind() -> None:
    async def slow(_request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(5)
        return web.Response(text=GOOD)

    async with serve(slow) as site:
        source = PrometheusSource(PrometheusConfig(site.url))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.0):
                await source.select([Selection(("a",)), Selection(("b",))], at=AT)
        await source.aclose()
        await source.aclose()
        assert len(site.seen) == 2


async def test_a_connection_cut_in_the_middle() -> None:
    async def cut(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(request)
        await response.write(b'{"status"')
        assert request.transport is not None
        request.transport.close()
        return response

    assert "broke off in the middle of an answer" in await refused(cut)


async def test_a_server_that_hangs_up_is_asked_twice() -> None:
    calls = []

    async def hang_up(request: web.Request) -> web.StreamResponse:
        calls.append(1)
        if len(calls) == 1:
            assert request.transport is not None
            request.transport.close()
        return web.Response(text=GOOD)

    async with serve(hang_up) as site:
        batch = await ask(site.url)
    assert len(batch.series) == 1
    assert batch.queries == 2


async def test_a_server_that_always_hangs_up() -> None:
    async def hang_up(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    assert "closed the connection without an answer" in await refused(hang_up)


async def test_something_that_does_not_speak_http() -> None:
    async def talk(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.2\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with pytest.raises(SourceError) as caught:
        await ask(f"http://127.0.0.1:{port}")
    server.close()
    await server.wait_closed()
    assert caught.value.message.endswith("does not answer in HTTP")


async def test_answers_beyond_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_module, "MAX_BODY", 1 << 20)
    body = b" " * (3 << 20)
    assert "answers with more than 1 MB" in await refused(answers(body))

    async def packed(_request: web.Request) -> web.StreamResponse:
        response = web.Response(body=body)
        response.enable_compression(web.ContentCoding.gzip)
        return response

    assert "answers with more than 1 MB" in await refused(packed)


# ---- warnings and partial answers


async def test_remarks_of_the_server_are_kept_once() -> None:
    body = matrix(
        UP,
        warnings=["store-3 is\x1b[2J down"],
        infos=["metric might not be a counter"],
        isPartial=True,
    )
    async with serve(answers(body)) as site:
        source = PrometheusSource(PrometheusConfig(site.url))
        first = await source.select([Selection(("a",)), Selection(("b",))], at=AT)
        second = await source.select(WAVE, at=AT)
        await source.aclose()
    assert first.warnings == [
        f"{site.url}: store-3 is [2J down",
        f"{site.url}: metric might not be a counter",
        f"{site.url}: the answer is partial: some storage nodes did not answer",
    ]
    assert second.warnings == []
    assert source.queries == 3


async def test_if_some_queries_fail_the_rest_is_used_and_it_is_said() -> None:
    async def half(request: web.Request) -> web.StreamResponse:
        form = await request.post()
        if "node_load1" in str(form["query"]):
            return web.Response(status=500, text="boom")
        return web.Response(text=GOOD)

    async with serve(half) as site:
        batch = await ask(site.url, [Selection(("node_load1", "node_x")), *WAVE])
    assert len(batch.series) == 1
    assert batch.warnings == [
        f"{site.url}: no readings of node_load1, node_x: {site.url} answers HTTP 500: boom"
    ]


async def test_label_set_warnings_come_with_the_next_batch() -> None:
    async def both(request: web.Request) -> web.StreamResponse:
        form = await request.post()
        if str(form["query"]).startswith("group by"):
            result = [
                {"metric": {"gpu": "1"}, "value": [AT, "1"]},
                {"metric": {}, "value": [AT, "1"]},
            ]
            data = {"resultType": "vector", "result": result}
            return web.json_response({"status": "success", "data": data, "warnings": ["half"]})
        return web.Response(text=GOOD)

    async with serve(both) as site:
        source = PrometheusSource(PrometheusConfig(site.url))
        sets = await source.label_sets(("up",), ("gpu",), at=AT, window_s=60)
        batch = await source.select(WAVE, at=AT)
        await source.aclose()
        assert site.seen[0][2]["query"] == (
            'group by (gpu) (last_over_time({__name__="up"}[60001ms]))'
        )
    assert sets == [{}, {"gpu": "1"}]
    assert batch.warnings == [f"{site.url}: half"]


async def test_native_histograms_are_left_out_and_it_is_said() -> None:
    histogram = {"metric": {"__name__": "h"}, "histograms": [[AT, {}]]}
    async with serve(answers(matrix(UP, histogram))) as site:
        batch = await ask(site.url)
    assert [s.name for s in batch.series] == ["up"]
    assert batch.warnings == [f"{site.url}: native histograms are not read"]


# ---- clocks


async def test_now_is_the_servers_now_if_the_clocks_differ() -> None:
    server_now = time.time() + 600

    async def ahead(_request: web.Request) -> web.StreamResponse:
        one = {"metric": {"__name__": "up"}, "values": [[round(server_now) - 5, "1"]]}
        return web.Response(
            text=matrix(one), headers={"Date": email.utils.formatdate(server_now, usegmt=True)}
        )

    async with serve(ahead) as site:
        source = PrometheusSource(PrometheusConfig(site.url))
        batch = await source.select(WAVE, at=None)
        later = await source.select(WAVE, at=None)
        await source.aclose()
    assert batch.at is not None
    assert abs(batch.at - server_now) < 10
    assert (batch.queries, later.queries) == (2, 1)
    assert len(batch.series) == len(later.series) == 1
    assert "s ahead of this machine's; now is taken from it" in batch.warnings[0]


async def test_a_given_time_is_not_moved_by_the_servers_clock() -> None:
    headers = {"Date": email.utils.formatdate(time.time() - 7200, usegmt=True)}
    async with serve(answers(GOOD, headers=headers)) as site:
        batch = await ask(site.url, at=AT)
    assert (batch.at, batch.queries) == (AT, 1)
    assert "behind this machine's" in batch.warnings[0]


# ---- methods and redirects


async def test_servers_that_take_only_get() -> None:
    async def only_get(request: web.Request) -> web.StreamResponse:
        if request.method != "GET":
            return web.Response(status=405)
        return web.Response(text=GOOD)

    names = tuple(f"metric_{k:04}" for k in range(500))
    async with serve(only_get) as site:
        batch = await ask(site.url, [Selection(names)])
        assert site.seen[0][0] == "POST"
        gets = [form["query"] for method, _, form, _ in site.seen if method == "GET"]
    assert len(batch.series) == 1
    assert batch.queries == len(gets) + 1
    assert all(len(q) < 3100 for q in gets)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_redirects_on_the_same_host_are_followed(status: int) -> None:
    async def moved(request: web.Request) -> web.StreamResponse:
        if request.path.startswith("/new/"):
            return web.Response(text=GOOD)
        return web.Response(status=status, headers={"Location": f"/new{request.path}"})

    async with serve(moved) as site:
        batch = await ask(site.url, bearer_token="secret-token")
        assert [(s[0], s[1]) for s in site.seen] == [
            ("POST", "/api/v1/query"),
            ("POST", "/new/api/v1/query"),
        ]
        assert site.seen[1][2] == site.seen[0][2]
    assert batch.queries == 2


async def test_redirects_elsewhere_are_not_followed() -> None:
    async with serve(answers(GOOD)) as other:
        away = answers("", status=302, headers={"Location": f"{other.url}/login?next=secret-token"})
        line = await refused(away, bearer_token="secret-token")
        assert other.seen == []
    assert f"redirects to {other.url}/login;" in line
    assert "secret-token" not in line


@pytest.mark.parametrize(
    "location",
    ["file:///etc/passwd", "http://[", "mailto:a@b.example", "http://h:99999/"],
)
async def test_redirects_to_what_is_no_web_address_are_one_line(location: str) -> None:
    line = await refused(answers("", status=302, headers={"Location": location}))
    assert "redirects to " in line


@pytest.mark.parametrize("scheme", ["ftp", "ws", "file"])
async def test_redirects_of_another_scheme_on_the_same_host_are_not_followed(scheme: str) -> None:
    async def moved(request: web.Request) -> web.StreamResponse:
        there = f"{scheme}://{request.host}/"
        return web.Response(status=302, headers={"Location": there})

    assert f"redirects to {scheme}:" in await refused(moved)


async def test_redirects_in_circles_end() -> None:
    line = await refused(answers("", status=307, headers={"Location": "/api/v1/query"}))
    assert "redirects in circles" in line


# ---- credentials


async def test_credentials_and_headers_are_sent() -> None:
    async with serve(answers(GOOD)) as site:
        await ask(site.url, bearer_token="abc\n", headers={"X-Scope-OrgID": "team-a"})
        await ask(site.url, username="user", password="p:ä")
        with_user = site.url.replace("http://", "http://me:pa%40ss@")
        await ask(with_user)
        sent = [headers for *_, headers in site.seen]
    assert sent[0]["Authorization"] == "Bearer abc"
    assert sent[0]["X-Scope-OrgID"] == "team-a"
    assert sent[1]["Authorization"] == "Basic dXNlcjpwOsOk"
    assert sent[2]["Authorization"] == "Basic bWU6cGFAc3M="


@pytest.mark.parametrize("status", [200, 400, 401, 404, 500])
@pytest.mark.parametrize(
    "body",
    [
        "failed: token=abcdef123456 " + "x" * 5_000,
        json.dumps({"status": "error", "error": "token=abcdef123456 " + "x" * 5_000}),
        json.dumps({"status": "error", "message": "password=abcdef123456"}),
        json.dumps({"status": "success", "data": {"resultType": "token=abcdef1", "result": []}}),
    ],
)
async def test_secrets_of_others_in_an_answer_are_not_shown(status: int, body: str) -> None:
    line = await refused(answers(body, status=status))
    assert "abcdef" not in line
    assert len(line) < 400


async def test_secrets_of_others_in_a_remark_are_not_shown() -> None:
    body = matrix(UP, warnings=["token=abcdef123456", 5, None, ["x"]], infos=7)
    async with serve(answers(body)) as site:
        batch = await ask(site.url)
    assert batch.warnings == [f"{site.url}: token=[redacted]"]


async def test_no_secret_is_ever_shown() -> None:
    async def echo(request: web.Request) -> web.StreamResponse:
        return web.Response(status=500, text=f"bad: {dict(request.headers)} pa@ss")

    options = {"bearer_token": "hush-hush", "headers": {"X-Api-Key": "key-key-key"}}
    line = await refused(echo, **options)
    assert "hush" not in line
    assert "key-key" not in line
    config = PrometheusConfig("http://me:pa%40ss@prom:9090/x", headers={"K": "key-key"})
    assert config.url == "http://prom:9090/x"
    assert (config.username, config.password) == ("me", "pa@ss")
    for shown in (repr(config), PrometheusSource(config).name):
        assert "pa" not in shown.replace("path", "")
        assert "key-key" not in shown
    with pytest.raises(SourceError) as caught:
        await ask(f"http://me:pa%40ss@127.0.0.1:{free_port()}")
    assert "pa%40ss" not in str(caught.value)
    assert "pa@ss" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("prom:9090", "http://prom:9090"),
        ("https://mimir/prometheus/", "https://mimir/prometheus"),
        ("http://prom/api/v1/query", "http://prom"),
        ("http://prom/x/graph", "http://prom/x"),
        (" http://[::1]:9090 ", "http://[::1]:9090"),
    ],
)
def test_addresses(given: str, url: str) -> None:
    assert PrometheusConfig(given).url == url


@pytest.mark.parametrize(
    ("given", "options"),
    [
        ("ftp://prom", {}),
        ("http://", {}),
        ("http://u:hush@prom:99999", {}),
        ("http://u:hush@prom?token=hush", {}),
        ("http://prom?token=hush", {}),
        ("unix:///hush", {}),
        ("http://prom", {"bearer_token": "hush", "username": "x"}),
        ("http://u:hush@prom", {"bearer_token": "hush"}),
        ("http://prom", {"bearer_token": "hu\nsh"}),
        ("http://prom", {"headers": {"A b": "hush"}}),
        ("http://prom", {"headers": {"A": "hush\r\nB: c"}}),
        ("http://prom", {"timeout_s": 0}),
        ("http://prom", {"timeout_s": float("nan")}),
    ],
)
def test_what_cannot_be_an_address_or_credential(given: str, options: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as caught:
        PrometheusConfig(given, **options)
    assert "hu" not in str(caught.value).replace("unix:///hush", "")


# ---- TLS


@pytest.fixture(scope="module")
def ca() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def pem(ca: trustme.CA, tmp_path: Path) -> dict[str, str]:
    ca.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    client = ca.issue_cert("gpuwhy@example.org")
    client.private_key_pem.write_to_path(str(tmp_path / "key.pem"))
    client.cert_chain_pems[0].write_to_path(str(tmp_path / "cert.pem"))
    return {name: str(tmp_path / f"{name}.pem") for name in ("ca", "cert", "key")}


def server_tls(ca: trustme.CA, host: str = "127.0.0.1", *, mutual: bool = False) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    ca.issue_cert(host).configure_cert(context)
    if mutual:
        ca.configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


async def tls_line(url: str, **options: Any) -> str:
    with pytest.raises(SourceError) as caught:
        await ask(url, **options)
    assert caught.value.code == "source_tls"
    return caught.value.one_line()


async def test_mutual_tls(ca: trustme.CA, pem: dict[str, str]) -> None:
    async with serve(answers(GOOD), server_tls(ca, mutual=True)) as site:
        assert len((await ask(site.url, **pem)).series) == 1
        with pytest.raises(SourceError) as caught:
            await ask(site.url, ca=pem["ca"])
        assert "give a certificate and its key" in caught.value.hint


async def test_untrusted_and_misnamed_certificates(ca: trustme.CA, pem: dict[str, str]) -> None:
    async with serve(answers(GOOD), server_tls(ca)) as site:
        assert "not trusted" in await tls_line(site.url)
        assert len((await ask(site.url, verify=False)).series) == 1
    async with serve(answers(GOOD), server_tls(ca, "elsewhere.example")) as site:
        assert "use the name in the certificate" in await tls_line(site.url, ca=pem["ca"])
    async with serve(answers(GOOD)) as site:
        line = await tls_line(site.url.replace("http", "https"))
        assert "does not speak TLS" in line


@pytest.mark.parametrize(
    "change",
    [
        {"ca": "/no/such/ca.pem"},
        {"cert": "/no/such/cert.pem"},
        {"ca": __file__},
        {"key": __file__},
        {"cert": __file__},
        {"cert": None},
    ],
)
async def test_unusable_certificate_files(
    pem: dict[str, str], change: dict[str, str | None]
) -> None:
    with pytest.raises((InputError, UsageError)) as caught:
        await ask("https://127.0.0.1:9", **{**pem, **change})
    assert isinstance(caught.value, GpuwhyError)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [5, None, ["a"], {"b": 1}])
async def test_a_label_that_is_no_text(value: Any) -> None:
    odd = {"metric": {"__name__": "up", "job": value}, "values": [[AT, "1"]]}
    line = await refused(answers(matrix(odd)))
    assert line.startswith("URL answers with a matrix that is malformed")


SECRET = "abcdef0123456789"


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, f"echo {SECRET}"),
        (200, f"{'x' * 50} {SECRET}"),  # where the message is cut
        (200, json.dumps({"status": "error", "error": f"no {SECRET}"})),
        (200, json.dumps({"status": "error", "error": "x" * 180 + SECRET})),
        (500, f"{'x' * 110}{SECRET}"),
        (422, json.dumps({"status": "error", "error": SECRET})),
    ],
)
async def test_what_a_server_repeats_of_a_secret_is_taken_out(status: int, body: str) -> None:
    line = await refused(answers(body, status=status), bearer_token=SECRET)
    assert SECRET[:6] not in line


async def test_a_host_name_that_no_server_can_have() -> None:
    with pytest.raises(UsageError, match="is not an address"):
        PrometheusConfig(f"http://{'a' * 300}:9090")
