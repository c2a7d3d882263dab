"""``--server URL`` shows exactly what the command shows by itself."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from bot.surfaces.cli.main import run
from engine.sources.exposition import FileSource
from tests.bot.http.conftest import TOKEN, running

METRICS = """\
DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-1",modelName="NVIDIA H100 80GB HBM3",Hostname="node-1"} 60
DCGM_FI_DEV_SM_CLOCK{gpu="0",UUID="GPU-1",modelName="NVIDIA H100 80GB HBM3",Hostname="node-1"} 900
DCGM_FI_DEV_CLOCKS_EVENT_REASONS{gpu="0",UUID="GPU-1",Hostname="node-1"} 128
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1",Hostname="node-1"} 98
DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-1",Hostname="node-1"} 300
"""
LOG = b"NVRM: Xid (PCI:0000:1a:00): 79, pid=1, GPU has fallen off the bus.\n\xff\xfe odd bytes\n"


@pytest.fixture(scope="module")
def metrics(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("metrics") / "m.prom"
    path.write_text(METRICS)
    return str(path)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory, metrics: str) -> Iterator[str]:
    """Run a server in a thread of its own."""
    folder = tmp_path_factory.mktemp("server")
    started = threading.Event()
    found: list[str] = []
    ends: list[Callable[[], None]] = []

    async def main() -> None:
        async with running(folder, lambda: FileSource([metrics])) as server:
            end = asyncio.Event()
            loop = asyncio.get_running_loop()
            found.append(server.urls[0])
            ends.append(lambda: loop.call_soon_threadsafe(end.set))
            started.set()
            await end.wait()

    thread = threading.Thread(target=asyncio.run, args=(main(),))
    thread.start()
    assert started.wait(30)
    yield found[0]
    ends[0]()
    thread.join(30)


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUWHY_TOKEN", TOKEN)


@pytest.mark.parametrize("form", [[], ["--json"], ["--color", "always"]])
@pytest.mark.parametrize(
    "words",
    [
        ["decode", "0x48"],
        ["decode", "72"],
        ["why", "node-1:0"],
        ["why", "node-1:0", "--window", "5m", "--fail-on", "high"],
        ["why", "fleet", "--at", "2026-01-31T03:12:00Z"],
        ["why", "node-9:0"],
        ["sweep", "--where", "Hostname=node-1"],
        ["read", "kernel.log"],
        ["read", "kernel.log", "m.prom", "missing.log"],
        ["read", "missing.log"],
        ["rules", "list"],
        ["rules", "show", "power_brake"],
        ["rules", "show", "power_brak"],
        ["rules", "test", "power_brake"],
    ],
    ids=" ".join,
)
def test_the_same_output_as_here(words, form, address, metrics, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("kernel.log").write_bytes(LOG)
    Path("m.prom").write_text(METRICS)
    local = [] if words[0] in {"decode", "read", "rules"} else ["--metrics", metrics]
    status, here = run([*words, *form, *local]), capsys.readouterr()
    remote_status, there = run([*words, *form, "--server", address]), capsys.readouterr()
    # The commands that are offered name the source that was typed; a server has its own.
    typed = f" --metrics {metrics}"
    assert (remote_status, there.out, there.err) == (status, here.out.replace(typed, ""), here.err)


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (["decode", "1", "--server", "nonsense"], 2, "takes an address"),
        (["decode", "1", "--server", "http://u:p@x"], 2, "GPUWHY_TOKEN"),
        (["decode", "1", "--server", "http://127.0.0.1:1"], 3, "cannot be reached"),
        (["why", "a:1", "--server", "http://x", "--metrics", "f"], 2, "its own"),
        (["why", "a:1", "--server", "http://x", "--timeout", "9s"], 2, "prometheus.timeout"),
        (["why", "a:1", "--server", "http://x", "--all"], 2, "--json has all"),
        (["sweep", "--server", "http://x", "--all"], 2, "--json has all"),
        (["read", "f", "--server", "http://x", "--all"], 2, "--json has all"),
        (["decode", "1", "--server", "http://x", "--overlay", "f"], 2, "--overlay"),
    ],
)
def test_what_cannot_be_asked_is_told_in_one_line(words, status, says, capsys):
    assert run(words) == status
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1


def test_a_wrong_token_is_told(address, monkeypatch, capsys):
    monkeypatch.setenv("GPUWHY_TOKEN", "another-token-entirely")
    assert run(["decode", "1", "--server", address]) == 2
    assert "does not know this API token" in capsys.readouterr().err


def test_netrc_does_not_replace_the_token(address, tmp_path, monkeypatch, capsys):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login someone password else\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    assert run(["decode", "0x48", "--server", address]) == 0
    capsys.readouterr()


@pytest.mark.parametrize(
    ("status", "body"),
    [(200, b"<html>a portal</html>"), (200, b"{}"), (502, b"bad gateway"), (404, b'{"error": 1}'),
     (302, b""), (200, b'{"schema": "gpuwhy/answer/9"}'), (200, b"[" * 5000)],
)  # fmt: skip
def test_what_is_no_gpuwhy_is_told_in_one_line(status, body, capsys):
    class Stranger(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Location", "http://127.0.0.1:1/")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Stranger) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        assert run(["decode", "1", "--server", f"http://127.0.0.1:{server.server_port}"]) in {2, 3}
        thread.join(10)
    assert capsys.readouterr().err.count("\n") == 1


def test_decode_here_does_not_load_what_only_the_server_needs():
    code = (
        "import sys; from bot.surfaces.cli.main import run; run(['decode', '0x48']); "
        "sys.exit(any(m in sys.modules for m in ('requests', 'aiohttp', 'pydantic', 'numpy')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_serve_check_says_everything_in_one_line_each(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("GPUWHY_SERVER_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("GPUWHY_SERVER_LISTEN", "127.0.0.1:0")
    assert run(["serve", "--check", "--json"]) == 0
    checks = json.loads(capsys.readouterr().out)["checks"]
    assert {c["name"] for c in checks if c["ok"]} == {
        "rules", "policy", "data", "listen", "tokens", "store", "source", "capture", "slack", "watch"
    }  # fmt: skip
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("variables", "status", "says"),
    [
        ({"GPUWHY_PROMETHEUS_URL": "http://127.0.0.1:1"}, 3, "source: http://127.0.0.1:1"),
        ({"GPUWHY_STORE_URL": "postgresql://u:hunter2@127.0.0.1:1/x"}, 3, "store: "),
        ({"GPUWHY_STORE_URL": "mysql://u:hunter2@x"}, 3, "store: "),
        ({"GPUWHY_SLACK_MODE": "socket"}, 2, "slack: slack.mode socket needs slack.bot_token"),
        (
            {
                "GPUWHY_SLACK_MODE": "http",
                "GPUWHY_SLACK_BOT_TOKEN": "xapp-1-hunter2",
                "GPUWHY_SLACK_SIGNING_SECRET": "hunter2",
            },
            2,
            "slack.bot_token is an app token",
        ),
        (
            {
                "GPUWHY_SLACK_MODE": "http",
                "GPUWHY_SLACK_BOT_TOKEN": "xoxb-1-hunter2",
                "GPUWHY_SLACK_SIGNING_SECRET": "hunter2",
                "GPUWHY_SLACK_API_URL": "http://127.0.0.1:1/api",
            },
            3,
            "slack: Slack cannot be reached",
        ),
        (
            {
                "GPUWHY_SLACK_MODE": "socket",
                "GPUWHY_SLACK_BOT_TOKEN": "xoxb-1-hunter2",
                "GPUWHY_SLACK_APP_TOKEN": "xoxb-1-hunter2",
            },
            2,
            "slack.app_token is a bot token",
        ),
        ({"GPUWHY_CAPTURE_SSH_IDENTITY": "/no/key"}, 2, "capture.ssh.identity /no/key cannot be"),
        ({"GPUWHY_CAPTURE_SSH_USER": "-oX=y"}, 2, "capture: ssh user '-oX=y' is not usable"),
        ({"GPUWHY_SERVER_DATA": "/proc/nope"}, 2, "data: /proc cannot be written"),
        ({"GPUWHY_SERVER_LISTEN": "192.0.2.1:80"}, 2, "listen: cannot listen on 192.0.2.1:80"),
        (
            {"GPUWHY_POLICY_RULES": '[{"effect": "allow", "commands": "capure"}]'},
            2,
            "policy: no command capure",
        ),
        ({"GPUWHY_WATCH_EVERY": "10s"}, 2, "watch: watch.every is set, but there is no source"),
        (
            {"GPUWHY_WATCH_EVERY": "10s", "GPUWHY_WATCH_PROMETHEUS": "http://127.0.0.1:1"},
            3,
            "watch: http://127.0.0.1:1",
        ),
        (
            {"GPUWHY_WATCH_EVERY": "10s", "GPUWHY_WATCH_WHERE": "cluster"},
            2,
            "watch: watch.where: selector, column 8",
        ),
        (
            {"GPUWHY_WATCH_EVERY": "10s", "GPUWHY_WATCH_CHANNEL": "C0123"},
            2,
            "watch: watch.channel is set, but slack.mode is off",
        ),
        (
            {"GPUWHY_WATCH_CHANNEL": "C0123"},
            2,
            "watch: watch.channel is set, but not how often to look; set watch.every",
        ),
        (
            {"GPUWHY_WATCH_CHANNEL": "#gpus"},
            2,
            "GPUWHY_WATCH_CHANNEL: watch.channel: must be the id",
        ),
        ({"GPUWHY_WATCH_EVERY": "10ms"}, 2, "GPUWHY_WATCH_EVERY: watch.every: "),
        ({"GPUWHY_WATCH_HOLD": "soon"}, 2, "watch.hold: cannot read 'soon'"),
    ],
)
def test_serve_check_finds_what_is_wrong(variables, status, says, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("GPUWHY_SERVER_DATA", str(tmp_path))
    monkeypatch.setenv("GPUWHY_SERVER_LISTEN", "127.0.0.1:0")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert run(["serve", "--check"]) == status
    out, err = capsys.readouterr()
    assert says in err
    assert "hunter2" not in out + err
