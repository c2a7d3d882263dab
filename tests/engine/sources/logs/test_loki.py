"""Loki: every Xid of the window once, whatever the page; what it cannot give is told."""

from __future__ import annotations

import asyncio
import gzip
import json
import tracemalloc

import pytest
from aiohttp import web

from engine.errors import SourceError, UsageError
from engine.sources.logs import loki as loki_module
from engine.sources.logs.loki import MAX_PAGE, LokiConfig, LokiSource
from engine.sources.logs.several import SeveralLogs
from tests.support.loki import Loki, serve_loki
from tests.support.servers import free_port
from tests.support.web import answers, serve

AT = 1_764_432_000.0
LOST = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus."


async def ask(url, start=AT - 900, end=AT, **options):
    source = LokiSource(LokiConfig(url=url, **options))
    try:
        return await source.events(None, start, end), source.take_unread(), source.take_warnings()
    finally:
        await source.aclose()


async def test_an_xid_has_its_time_host_and_address():
    loki = Loki()
    loki.add(AT - 60.25, LOST, host="node-3")
    loki.add(AT - 50, "kernel: eth0: link up", host="node-3")
    loki.add(AT - 40, "NVRM: loading NVIDIA UNIX x86_64 Kernel Module 550.54.15", host="node-3")
    async with serve_loki(loki) as site:
        events, unread, warnings = await ask(site.url)
    (event,) = events
    assert (event.time, event.xid, event.host, event.pci) == (
        AT - 60.25,
        79,
        "node-3",
        "0000:3b:00",
    )
    assert event.where == f"Loki {site.url}"
    assert (unread, warnings) == ([], [])
    (_, path, query, _) = site.seen[0]
    assert path == "/loki/api/v1/query_range"
    assert query["limit"] == "1000"
    assert int(query["start"]) == round((AT - 900) * 1e9)


@pytest.mark.parametrize("label", ["host", "hostname", "node", "node_name", "nodename", "instance"])
async def test_a_host_is_found_under_the_labels_of_the_usual_shippers(label):
    loki = Loki()
    loki.add(AT - 60, LOST, **{label: "node-3"})
    async with serve_loki(loki) as site:
        ((event,), _, _) = await ask(site.url)
    assert event.host == "node-3"


async def test_a_site_names_its_streams_and_its_label():
    loki = Loki()
    loki.add(AT - 60, LOST, machine="node-3", unit="kernel")
    loki.add(AT - 50, LOST, machine="node-4", unit="replayed")
    async with serve_loki(loki) as site:
        query = '{unit="kernel"}'
        ((event,), _, _) = await ask(site.url, query=query, host_labels=("machine",))
        assert event.host == "node-3"
        assert site.seen[0][2]["query"].startswith(query)


@pytest.mark.parametrize(
    "line",
    [
        "Nov 29 15:59:00 node-3 kernel: [  812.123456] " + LOST,
        "2025-11-29T15:59:00.000000+00:00 node-3 kernel: " + LOST,
        "[  812.123456] " + LOST,
        json.dumps({"MESSAGE": LOST, "_HOSTNAME": "node-3", "_TRANSPORT": "kernel"}),
        json.dumps({"log": LOST + "\n", "stream": "stderr"}),
        "NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.",
        "NVRM: GPU at PCI:0000:3b:00: GPU-3a4f5b6c-0000-4000-8000-000000000002\n",
    ],
)
async def test_a_line_may_be_wrapped_as_shippers_do(line):
    loki = Loki()
    loki.add(AT - 60, line, host="node-3")
    async with serve_loki(loki) as site:
        events, _, _ = await ask(site.url)
    if "GPU at PCI" in line:
        assert events == []
        return
    (event,) = events
    assert (event.xid, event.host, event.pci) == (79, "node-3", "0000:3b:00")
    assert abs(event.time - (AT - 60)) < 1


async def test_pages_give_every_event_once():
    loki = Loki()
    for k in range(95):
        # Ten lines a moment: pages end in the middle of one.
        loki.add(AT - 800 + k // 10, f"NVRM: Xid (PCI:0000:{k:02x}:00): 31, x", host="n1")
    async with serve_loki(loki) as site:
        events, unread, _ = await ask(site.url, limit=20)
        assert len(site.seen) > 4
    assert len(events) == len({e.pci for e in events}) == 95
    assert unread == []


async def test_more_lines_at_one_moment_than_a_page_holds_do_not_loop():
    loki = Loki()
    for k in range(60):
        loki.add(AT - 800, f"NVRM: Xid (PCI:0000:{k:02x}:00): 31, x", host="n1")
    loki.add(AT - 10, LOST, host="n1")
    async with serve_loki(loki) as site:
        events, _, _ = await asyncio.wait_for(ask(site.url, limit=20), 10)
    assert 79 in {e.xid for e in events}


async def test_a_flood_is_cut_and_that_is_told():
    loki = Loki()
    for k in range(500):
        loki.add(AT - 800 + k, "NVRM: Xid (PCI:0000:3b:00): 31, x", host="n1")
    async with serve_loki(loki) as site:
        events, (unread,), _ = await ask(site.url, limit=10)
    assert len(events) < 500
    assert "the newest are missing" in unread.why
    assert "loki.query" in unread.fix


async def test_pages_that_are_late_leave_those_that_came():
    loki = Loki()
    for k in range(60):
        loki.add(AT - 800 + k, "NVRM: Xid (PCI:0000:3b:00): 31, x", host="n1")
    pages = 0

    async def slow(request: web.Request) -> web.StreamResponse:
        nonlocal pages
        pages += 1
        if pages > 2:
            await asyncio.sleep(30)
        return await loki.handle(request)

    async with serve(slow) as site:
        events, (unread,), _ = await ask(site.url, limit=20, timeout_s=0.5)
    assert len(events) >= 20
    assert "lines came in 0.5 s" in unread.why


async def test_both_ends_of_the_window_are_inside():
    loki = Loki()
    for when in (AT - 900.5, AT - 900, AT, AT + 0.5):
        loki.add(when, LOST, host="n1")
    async with serve_loki(loki) as site:
        events, _, _ = await ask(site.url)
    assert [e.time for e in events] == [AT - 900, AT]


async def test_credentials_and_tenant_are_sent_and_never_shown():
    async with serve(answers("no such tenant s3cret-token", status=401)) as site:
        with pytest.raises(SourceError) as caught:
            await ask(site.url, bearer_token="s3cret-token", headers={"X-Scope-OrgID": "gpu"})
    assert "s3cret" not in caught.value.one_line()
    headers = site.seen[0][3]
    assert headers["Authorization"] == "Bearer s3cret-token"
    assert headers["X-Scope-OrgID"] == "gpu"


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("parse error at line 1, col 2: syntax error: unexpected }", "status 400"),
        ('{"status":"success","data":{"resultType":"matrix","result":[]}}', "not with lines"),
        ('{"hello": 1}', "does not answer like Loki"),
        ("<!doctype html><title>Sign in</title>", "does not answer like Loki"),
        ("[" * 500, "does not answer like Loki"),
        ('{"data":{"resultType":"streams","result":{}}}', "not with lines"),
        ('{"data":{"resultType":[[[]]],"result":[]}}', "not with lines"),
        ('{"data":{"resultType":"token=abcdef123456","result":[]}}', "not with lines"),
        ('{"data":5}', "does not answer like Loki"),
        ('[{"data":5}]', "does not answer like Loki"),
        ("5", "does not answer like Loki"),
        ("", "does not answer like Loki"),
    ],
)
async def test_what_is_no_answer_of_loki_is_one_clear_line(reply, said):
    status = 400 if "parse" in reply else 200
    async with serve(answers(reply, status=status)) as site:
        with pytest.raises(SourceError) as caught:
            await ask(site.url)
    line = caught.value.one_line()
    assert said in line or "400" in line
    assert "\n" not in line
    assert "abcdef" not in line


@pytest.mark.parametrize(
    "result",
    [
        [],
        [None, 3, "x", {}],
        [{"stream": None, "values": None}],
        [{"stream": {"host": 5}, "values": [[1], ["a", LOST], [None, LOST], "x", ["1"]]}],
        [{"stream": {"host": "n" * 9_999}, "values": [["9" * 40, LOST]]}],
        [{"stream": {"host": "n"}, "values": [["1764431990000000000", LOST, {"trace": 1}]]}],
        [{"stream": {}, "values": 5}],
        [{"stream": {}, "values": {"1764431990000000000": LOST}}],
        [[["1764431990000000000", LOST]]],
        [{"stream": {"host": ["n"]}, "values": [["9" * 5_000, LOST], [["9"], LOST]]}],
    ],
)
async def test_odd_streams_never_raise(result):
    text = json.dumps({"status": "success", "data": {"resultType": "streams", "result": result}})
    async with serve(answers(text)) as site:
        events, _, _ = await ask(site.url)
    assert len(events) <= 1


async def test_a_loki_that_is_down_or_slow_is_told_by_the_group_of_sources():
    async def slow(_request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(30)
        return web.Response()

    async with serve(slow) as site:
        down = LokiConfig(url=f"http://127.0.0.1:{free_port()}")
        logs = SeveralLogs([LokiSource(LokiConfig(url=site.url, timeout_s=0.2)), LokiSource(down)])
        try:
            assert await asyncio.wait_for(logs.events(None, AT - 900, AT), 5) == []
            unread = logs.take_unread()
        finally:
            await logs.aclose()
    assert sorted(u.what for u in unread) == sorted([site.url, down.url])
    assert all(u.why and u.fix for u in unread)


def test_an_address_may_be_that_of_the_api_and_hold_a_password():
    config = LokiConfig(url="http://me:pw1234@loki.example:3100/loki/api/v1/push")
    assert config.url == "http://loki.example:3100"
    assert (config.username, config.password) == ("me", "pw1234")
    assert "pw1234" not in repr(config)
    with pytest.raises(UsageError):
        LokiConfig(url="ftp://loki")


@pytest.mark.parametrize("warnings", [5, "slow", {"a": 1}, [None, 5, [[]], {"a": 1}], True])
async def test_odd_warnings_never_raise(warnings):
    data = {"resultType": "streams", "result": []}
    async with serve(answers(json.dumps({"warnings": warnings, "data": data}))) as site:
        events, unread, told = await ask(site.url)
    assert (events, unread) == ([], [])
    assert len(told) <= 1


async def test_warnings_are_told_without_secrets():
    body = {"warnings": ["slow: token=abcdef123456"], "data": {"resultType": "streams"}}
    body["data"]["result"] = []
    async with serve(answers(json.dumps(body))) as site:
        _, _, (told,) = await ask(site.url)
    assert told == f"{site.url}: slow: token=[redacted]"


@pytest.mark.parametrize(
    "stream",
    [
        {"stream": {}, "values": 5},
        {"stream": {}, "values": [["9" * 5_000, LOST]]},
        {"stream": {}, "values": [["12:00", LOST]]},
        {"stream": {}, "values": [["1764431990000000000", None]]},
        None,
    ],
)
async def test_lines_that_are_not_in_the_form_are_told_and_hide_no_others(stream):
    good = {"stream": {"host": "n1"}, "values": [["1764431990000000000", LOST]]}
    data = {"data": {"resultType": "streams", "result": [stream, good]}}
    async with serve(answers(json.dumps(data))) as site:
        (event,), (unread,), _ = await ask(site.url)
    assert event.xid == 79
    assert unread.why == "1 lines or more are not in Loki's form, and were not read"
    assert unread.fix


async def test_a_full_page_with_a_line_in_another_form_is_not_the_last():
    loki = Loki()
    for k in range(30):
        loki.add(AT - 800 + k, f"NVRM: Xid (PCI:0000:{k:02x}:00): 31, x", host="n1")

    async def spoiled(request: web.Request) -> web.StreamResponse:
        answer = await loki.handle(request)
        document = json.loads(answer.text)
        if len(site.seen) == 1:
            document["data"]["result"][0]["values"][0][0] = "soon"
        return web.json_response(document)

    async with serve(spoiled) as site:
        events, (unread,), _ = await ask(site.url, limit=20)
    assert len(events) == 29
    assert "not in Loki's form" in unread.why


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 503])
@pytest.mark.parametrize(
    "body",
    [
        "failed: token=abcdef123456 " + "x" * 5_000,
        json.dumps({"message": "failed: token=abcdef123456 " + "x" * 5_000}),
        json.dumps({"error": "Authorization: Bearer abcdef123456 " + "x" * 5_000}),
    ],
)
async def test_what_an_error_answer_says_is_short_and_without_secrets(status, body):
    async with serve(answers(body, status=status)) as site:
        with pytest.raises(SourceError) as caught:
            await ask(site.url)
    assert "[redacted" in caught.value.message
    assert "abcdef" not in caught.value.one_line()
    assert len(caught.value.message) < 200 + len(site.url) + 60


@pytest.mark.parametrize(
    "location", ["file:///etc/passwd", "//", "http://[", "ftp://127.0.0.1/", "javascript:x", "\xff"]
)
async def test_a_redirect_to_what_is_no_web_address_is_one_clear_line(location):
    async with serve(answers("", status=302, headers={"Location": location})) as site:
        with pytest.raises(SourceError, match="redirects") as caught:
            await ask(site.url)
    assert "\n" not in caught.value.one_line()


@pytest.mark.parametrize("packed", [False, True])
async def test_a_page_beyond_the_limit_is_refused_before_it_is_unpacked(packed):
    body = b'{"data":"' + b"0" * (MAX_PAGE + 1) + b'"}'
    headers = {"Content-Encoding": "gzip"} if packed else {}
    body = gzip.compress(body * 8, 1) if packed else body
    async with serve(answers(body, headers=headers)) as site:
        tracemalloc.start()
        try:
            with pytest.raises(SourceError) as caught:
                await ask(site.url)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert caught.value.message == f"{site.url} answers with more than 32 MB"
    assert "loki.query" in caught.value.hint
    assert peak < 3 * MAX_PAGE


async def test_more_text_than_is_kept_is_told(monkeypatch):
    monkeypatch.setattr(loki_module, "_MOST_TEXT", 1 << 20)
    loki = Loki()
    for k in range(60):
        loki.add(AT - 800 + k, f"NVRM: Xid (PCI:0000:3b:00): 31, {'x' * 100_000}", host="n1")
    async with serve_loki(loki) as site:
        events, (unread,), _ = await ask(site.url, limit=20)
    assert 20 <= len(events) < 60
    assert unread.why == "more than 1 MB of lines match: the newest are missing"
