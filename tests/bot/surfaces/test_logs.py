"""`--kernel-log`, `--loki`, `--ssh-dmesg`: words in, the Xid of a log in the answer."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot import config
from bot.backend import Backend
from bot.logsources import configured, open_logs
from bot.preflight import check
from bot.request import Request
from bot.surfaces.cli import main as cli
from engine.errors import GpuwhyError
from tests.support.loki import Loki, serve_loki
from tests.support.memory import MemorySource
from tests.support.readings import AT, FULL, node
from tests.support.servers import free_port
from tests.support.web import answers

LOST = "NVRM: Xid (PCI:0000:12:00): 79, pid=1234, name=python, GPU has fallen off the bus."


@pytest.fixture(autouse=True)
def clean(monkeypatch, tmp_path):
    for name in list(os.environ):
        if name.startswith("GPUWHY_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def metrics(tmp_path):
    """A healthy node, as a file with times."""
    lines = []
    for one in node(FULL):
        labels = ",".join(f'{k}="{v}"' for k, v in one.labels.items())
        lines += [
            f"{one.name}{{{labels}}} {v:g} {t * 1000:.0f}"
            for t, v in zip(one.ts.tolist(), one.values.tolist(), strict=True)
        ]
    file = tmp_path / "node.prom"
    file.write_text("\n".join(lines) + "\n")
    return str(file)


@pytest.fixture
def kernel_log(tmp_path):
    file = tmp_path / "kern.log"
    file.write_text(f"2025-11-29T15:58:00+00:00 node-1 kernel: [  12.5] {LOST}\n")
    return str(file)


@pytest.fixture
def gpuwhy(capsys):
    def run(*words: str) -> tuple[int, str, str]:
        status = cli.run(words)
        return status, *capsys.readouterr()

    return run


class Threaded:
    """A Loki on a loop of its own, for commands that have theirs."""

    def __init__(self, loki):
        self._loki = loki
        self._up = threading.Event()
        self.url = ""

    async def _main(self):
        self._stop = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        async with serve_loki(self._loki) as site:
            self.url = site.url
            self._up.set()
            await self._stop.wait()

    def __enter__(self):
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()))
        self._thread.start()
        assert self._up.wait(10)
        return self

    def __exit__(self, *_):
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)


def first(out):
    document = json.loads(out)
    return document["diagnoses"][0]["cause"], document


def test_an_xid_of_a_file_decides(gpuwhy, metrics, kernel_log):
    status, out, _ = gpuwhy("why", "node-1:2", "--metrics", metrics, "--json")
    assert (status, json.loads(out)["verdict"]) == (0, "healthy")
    words = ("why", "node-1:2", "--metrics", metrics, "--kernel-log", kernel_log)
    status, out, _ = gpuwhy(*words, "--json")
    cause, document = first(out)
    assert (status, cause) == (0, "gpu_off_bus")
    assert any(
        "the kernel log has Xid 79" in e["says"] for e in document["diagnoses"][0]["evidence"]
    )
    status, out, _ = gpuwhy(*words)
    assert "the kernel log has Xid 79 at 2025-11-29 15:58:00 UTC" in out


def test_a_sweep_takes_them_too(gpuwhy, metrics, kernel_log):
    words = ("sweep", "--metrics", metrics, "--kernel-log", kernel_log, "--json")
    status, out, _ = gpuwhy(*words)
    (incident,) = json.loads(out)["incidents"]
    assert (status, incident["cause"], incident["entity"]["name"]) == (0, "gpu_off_bus", "node-1:2")


def lines_of(stamp):
    stream = {"stream": {"host": "node-1"}, "values": [[stamp, LOST]]}
    return json.dumps({"data": {"resultType": "streams", "result": [stream]}})


def test_an_xid_of_loki_decides(gpuwhy, metrics, monkeypatch):
    loki = Loki()
    loki.add(AT - 120, LOST, host="node-1")
    with Threaded(loki) as server:
        _, out, _ = gpuwhy("why", "node-1:2", "--metrics", metrics, "--loki", server.url, "--json")
        assert first(out)[0] == "gpu_off_bus"
        monkeypatch.setenv("GPUWHY_LOKI_URL", server.url)
        _, out, _ = gpuwhy("why", "node-1:2", "--metrics", metrics, "--json")
        assert first(out)[0] == "gpu_off_bus"


@pytest.mark.parametrize(
    "words",
    [
        ("--kernel-log", "/none/kern.log"),
        ("--loki", f"http://127.0.0.1:{free_port()}"),
        ("--ssh-dmesg",),
    ],
)
def test_logs_that_cannot_be_read_are_told_and_the_metrics_answer(
    gpuwhy, metrics, words, monkeypatch, tmp_path
):
    (tmp_path / "ssh").write_text(
        "#!/bin/sh\necho 'ssh: Could not resolve hostname' >&2\nexit 255\n"
    )
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    status, out, _ = gpuwhy("why", "node-1:2", "--metrics", metrics, *words, "--json")
    document = json.loads(out)
    assert status == 0
    gap = document["unknown"][0]
    assert gap["needs"] == "kernel_log"
    assert "logs could not be read" in gap["why"]
    status, out, _ = gpuwhy("why", "node-1:2", "--metrics", metrics, *words)
    assert "logs could not be read" in out
    assert "Traceback" not in out


@pytest.mark.parametrize("command", [("why", "node-1:2"), ("sweep",)])
@pytest.mark.parametrize(
    ("body", "headers"),
    [
        ('{"warnings":5,"data":{"resultType":"matrix","result":[]}}', {}),
        ('{"data":{"resultType":"streams","result":[{"stream":{},"values":5}]}}', {}),
        (lines_of("9" * 5_000), {}),
        ("", {"Location": "file:///etc/passwd"}),
    ],
)
def test_odd_answers_of_loki_are_told_and_the_metrics_answer(
    gpuwhy, metrics, command, body, headers
):
    class Odd:
        handle = staticmethod(answers(body, status=302 if headers else 200, headers=headers))

    with Threaded(Odd()) as server:
        status, out, _ = gpuwhy(*command, "--metrics", metrics, "--loki", server.url)
    assert status == 0
    assert "logs could not be read" in out
    assert "Traceback" not in out


def test_a_fault_of_a_source_is_told_and_its_traceback_shown_if_asked_for(
    gpuwhy, metrics, kernel_log, monkeypatch
):
    async def broken(*_args):
        raise TypeError("'int' object is not iterable")

    monkeypatch.setattr("engine.sources.logs.loki.LokiSource.records", broken)
    words = ("why", "node-1:2", "--metrics", metrics, "--kernel-log", kernel_log)
    words = (*words, "--loki", "http://127.0.0.1:1")
    status, out, err = gpuwhy(*words)
    assert status == 0
    assert "gpu_off_bus" in out
    assert "logs could not be read: http://127.0.0.1:1: unexpected TypeError: 'int' object" in out
    assert "Traceback" not in out + err
    monkeypatch.setenv("GPUWHY_DEBUG", "1")
    again, _, err = gpuwhy(*words)
    assert again == 0
    assert "reading the logs of http://127.0.0.1:1 failed\nTraceback" in err
    assert logging.getLogger("engine").handlers == []


def test_a_kernel_log_by_ssh(gpuwhy, metrics, monkeypatch, tmp_path):
    """The client is a stand-in in PATH; `tests/engine/sources/logs/test_ssh.py` has a real one."""
    entry = json.dumps(
        {"__REALTIME_TIMESTAMP": f"{(AT - 120) * 1e6:.0f}", "_HOSTNAME": "x", "MESSAGE": LOST}
    )
    (tmp_path / "entry").write_text(entry + "\n")
    (tmp_path / "ssh").write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/argv\ncat {tmp_path}/entry\n'
    )
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    _, out, _ = gpuwhy("why", "node-1:2", "--metrics", metrics, "--ssh-dmesg", "--json")
    assert first(out)[0] == "gpu_off_bus"
    argv = (tmp_path / "argv").read_text().splitlines()
    assert argv[-3:-1] == ["--", "node-1"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--metrics", "-", "--kernel-log", "-"), "both read standard input"),
        (("--server", "http://x", "--kernel-log", "a"), "a source of logs and --server"),
        (("--server", "http://x", "--loki", "http://y"), "a source of logs and --server"),
        (("--metrics", "x", "--loki", "ftp://y"), "is not an HTTP address"),
    ],
)
def test_what_does_not_fit_together_is_refused(gpuwhy, words, said):
    for command in (("why", "node-1:2"), ("sweep",)):
        status, _, err = gpuwhy(*command, *words)
        assert status == 2
        assert said in err


def test_settings_name_sources_and_secrets_stay_home(tmp_path):
    none = config.load(None, {})
    assert not configured(none)
    assert open_logs(none) is None
    environ = {
        "GPUWHY_LOKI_URL": "http://loki:3100",
        "GPUWHY_LOKI_BEARER_TOKEN": "s3cret",
        "GPUWHY_LOGS_FILES": "/var/log/kern.log:/var/log/messages",
        "GPUWHY_LOGS_SSH": "true",
    }
    settings = config.load(None, environ)
    logs = open_logs(settings)
    assert logs is not None
    assert logs.name == "http://loki:3100, /var/log/kern.log, /var/log/messages, ssh"
    assert "s3cret" not in repr(settings)
    other = open_logs(settings, loki="http://elsewhere:3100")
    assert other is not None
    assert other.name.startswith("http://elsewhere:3100")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("loki: {url: 'http://me:pw@loki'}", "GPUWHY_LOKI_USERNAME"),
        ("loki: {password: pw}", "GPUWHY_LOKI_PASSWORD"),
        ("loki: {headers: {Authorization: Bearer x}}", "GPUWHY_LOKI_BEARER_TOKEN"),
        ("logs: {file: x}", "logs.files"),
    ],
)
def test_a_secret_in_the_file_is_refused(tmp_path, text, said):
    file = tmp_path / "gpuwhy.yaml"
    file.write_text(text)
    with pytest.raises(GpuwhyError) as caught:
        config.load(file, {})
    assert said in caught.value.one_line()
    assert "pw" not in caught.value.message


async def test_the_server_asks_them_for_every_question(kernel_log):
    settings = config.load(None, {"GPUWHY_LOGS_FILES": kernel_log})
    backend = Backend(lambda: MemorySource(node(FULL)), open_logs=lambda: open_logs(settings))
    await backend.start()
    try:
        for _ in range(2):
            answer = await backend.run(Request("why", {"target": "node-1:2", "at": AT}))
            assert answer.data["diagnoses"][0]["cause"] == "gpu_off_bus"
        answer = await backend.run(Request("sweep", {"at": AT}))
        assert answer.data["incidents"][0]["cause"] == "gpu_off_bus"
    finally:
        await backend.aclose()


async def test_the_preflight_tries_them(tmp_path, kernel_log):
    base = {"GPUWHY_SERVER_DATA": str(tmp_path), "GPUWHY_SERVER_LISTEN": f"127.0.0.1:{free_port()}"}
    answer = await check(config.load(None, base), None)
    assert "logs" not in {one["name"] for one in answer.data["checks"]}
    good = config.load(None, {**base, "GPUWHY_LOGS_FILES": kernel_log, "GPUWHY_LOGS_SSH": "1"})
    answer = await check(good, None)
    assert {c["name"]: c["ok"] for c in answer.data["checks"]}["logs"]
    bad = config.load(None, {**base, "GPUWHY_LOGS_FILES": "/none"})
    answer = await check(bad, None)
    assert not {c["name"]: c["ok"] for c in answer.data["checks"]}["logs"]


@pytest.fixture
def scraped(metrics, tmp_path):
    """The same node as curl prints it: one sample a series, no times."""
    last = {}
    with Path(metrics).open() as stream:
        for line in stream:
            name, value, _ = line.rsplit(" ", 2)
            last[name] = value
    file = tmp_path / "curl.prom"
    file.write_text("".join(f"{name} {value}\n" for name, value in last.items()))
    os.utime(file, (AT, AT))
    return file


def test_metrics_without_times_are_judged_with_a_log(gpuwhy, scraped, kernel_log):
    words = ("why", "node-1:2", "--metrics", str(scraped), "--kernel-log", kernel_log, "--json")
    status, out, _ = gpuwhy(*words)
    cause, document = first(out)
    assert (status, cause, document["at"]) == (0, "gpu_off_bus", None)
    assert document["diagnoses"][0]["since"] is None
    assert any("judged as of 2025-11-29 16:00:00 UTC" in w for w in document["warnings"])
    _, out, _ = gpuwhy("why", "node-1:2", "--metrics", str(scraped), "--json")
    assert not json.loads(out)["diagnoses"]
    _, out, _ = gpuwhy("why", "node-1:3", *words[2:])
    assert not json.loads(out)["diagnoses"]


def test_a_sweep_of_metrics_without_times_takes_the_log(gpuwhy, scraped, kernel_log):
    _, out, _ = gpuwhy("sweep", "--metrics", str(scraped), "--kernel-log", kernel_log, "--json")
    document = json.loads(out)
    assert [i["cause"] for i in document["incidents"]] == ["gpu_off_bus"]
    assert document["at"] is None


def test_the_moment_asked_for_wins_over_that_of_the_file(gpuwhy, scraped, kernel_log):
    words = ("why", "node-1:2", "--metrics", str(scraped), "--kernel-log", kernel_log, "--json")
    os.utime(scraped, (AT + 86_400, AT + 86_400))
    _, out, _ = gpuwhy(*words)
    assert not json.loads(out)["diagnoses"]
    _, out, _ = gpuwhy(*words, "--at", "2025-11-29T16:00:00Z")
    cause, document = first(out)
    assert (cause, document["at"]) == ("gpu_off_bus", None)


def test_metrics_of_a_pipe_without_times_are_of_now(gpuwhy, scraped, tmp_path, monkeypatch):
    now = datetime.now(UTC) - timedelta(seconds=60)
    log = tmp_path / "now.log"
    log.write_text(f"{now.isoformat()} node-1 kernel: {LOST}\n")
    with scraped.open("rb") as stream:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(stream))
        _, out, _ = gpuwhy("why", "node-1:2", "--metrics", "-", "--kernel-log", str(log), "--json")
    assert first(out)[0] == "gpu_off_bus"


def test_a_warning_says_what_to_do_about_an_unread_log(gpuwhy, metrics):
    _, out, _ = gpuwhy("why", "node-1:2", "--metrics", metrics, "--kernel-log", "nolog")
    assert "logs could not be read: nolog: no such file; check the path" in out
