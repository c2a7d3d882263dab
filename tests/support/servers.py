"""Real metrics servers on loopback, for tests and benchmarks.

Every server is a context manager that ends its process whatever happens. A missing binary is an
error, never a skip: ``make test`` installs what is needed.
"""

from __future__ import annotations

import contextlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

START_TIMEOUT_S = 30.0
_STOP_TIMEOUT_S = 10.0
_ATTEMPTS = 3


@dataclass(frozen=True)
class Server:
    """A running server."""

    url: str
    process: subprocess.Popen[bytes]
    log: Path


def binary(name: str) -> str:
    """Return the path of a program, or raise with what to install."""
    found = shutil.which(name)
    if found is None:
        package = {"promtool": "prometheus"}.get(name, name)
        message = f"{name} is not installed; on Debian and Ubuntu: apt-get install {package}"
        raise RuntimeError(message)
    return found


def free_port() -> int:
    """Return a TCP port that was free on 127.0.0.1 a moment ago."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def scrape_config(targets: Sequence[str], *, interval: str = "1s", job: str = "dcgm") -> str:
    """Return a Prometheus configuration that scrapes ``host:port`` targets."""
    listed = ", ".join(f"'{t}'" for t in targets)
    return (
        f"global: {{scrape_interval: {interval}, scrape_timeout: {interval}}}\n"
        f"scrape_configs:\n- job_name: {job}\n  static_configs:\n  - targets: [{listed}]\n"
    )


def load_openmetrics(source: str | Path, data_dir: Path) -> None:
    """Write OpenMetrics text (or a file of it) with times into blocks of a Prometheus data folder."""
    data_dir.mkdir(parents=True, exist_ok=True)
    with _as_file(source) as path:
        subprocess.run(
            [binary("promtool"), "tsdb", "create-blocks-from", "openmetrics", path, data_dir],
            check=True,
            capture_output=True,
        )


@contextlib.contextmanager
def start_prometheus(
    data_dir: Path, *, config: str = "", extra_args: Sequence[str] = ()
) -> Iterator[Server]:
    """Run Prometheus on a data folder, which may hold blocks; yield once it is ready.

    Args:
        data_dir: the storage folder; created if missing.
        config: the configuration file's text, for example from `scrape_config`.
        extra_args: more command-line arguments.
    """
    data_dir.mkdir(parents=True, exist_ok=True)
    config_file = data_dir / "prometheus.yml"
    config_file.write_text(config)
    fixed = [
        f"--config.file={config_file}",
        f"--storage.tsdb.path={data_dir}",
        "--storage.tsdb.retention.time=100y",
        "--log.level=warn",
        *extra_args,
    ]
    with _start("prometheus", "--web.listen-address", fixed, "/-/ready") as server:
        yield server


@contextlib.contextmanager
def start_victoriametrics(data_dir: Path, *, extra_args: Sequence[str] = ()) -> Iterator[Server]:
    """Run VictoriaMetrics on a data folder; yield once it is ready. Load it with `import_text`."""
    fixed = [
        f"-storageDataPath={data_dir}",
        "-retentionPeriod=100y",
        "-memory.allowedBytes=256MB",
        "-loggerLevel=WARN",
        *extra_args,
    ]
    with _start("victoria-metrics", "-httpListenAddr", fixed, "/health") as server:
        yield server


def import_openmetrics(server: Server, source: str | Path) -> None:
    """Load OpenMetrics text (or a file of it) with times into VictoriaMetrics and make it visible."""
    text = source.read_text() if isinstance(source, Path) else source
    body = "".join(_with_milliseconds(line) for line in text.splitlines()).encode()
    _post(f"{server.url}/api/v1/import/prometheus", body)
    _get(f"{server.url}/internal/force_flush")


def _with_milliseconds(line: str) -> str:
    """Turn a line's time from seconds (OpenMetrics) into milliseconds (text format)."""
    if not line or line.startswith("#"):
        return ""
    head, _, stamp = line.rpartition(" ")
    return f"{head} {round(float(stamp) * 1000)}\n"


@contextlib.contextmanager
def _as_file(source: str | Path) -> Iterator[Path]:
    if isinstance(source, Path):
        yield source
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "samples.om"
        path.write_text(source)
        yield path


@contextlib.contextmanager
def _start(
    program: str, listen_flag: str, args: Sequence[str], ready_path: str
) -> Iterator[Server]:
    path = binary(program)
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        log = Path(folder) / "server.log"
        for attempt in range(1, _ATTEMPTS + 1):
            address = f"127.0.0.1:{free_port()}"
            with log.open("wb") as out:
                process = subprocess.Popen(
                    [path, f"{listen_flag}={address}", *args],
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                )
            stack.callback(_end, process)
            server = Server(f"http://{address}", process, log)
            if _wait_ready(server, ready_path):
                yield server
                return
            # Somebody else may have taken the port in between: try another.
            if "address already in use" not in log.read_text() or attempt == _ATTEMPTS:
                message = f"{program} did not start: {log.read_text()[-2000:]}"
                raise RuntimeError(message)


def _wait_ready(server: Server, ready_path: str) -> bool:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and server.process.poll() is None:
        with contextlib.suppress(OSError, urllib.error.HTTPError):
            _get(server.url + ready_path)
            return True
        time.sleep(0.02)
    return False


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ask the process to stop, and kill it if it does not."""
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(_STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=START_TIMEOUT_S) as answer:
        return bytes(answer.read())


def _post(url: str, body: bytes) -> None:
    request = urllib.request.Request(url, data=body, method="POST")
    with urllib.request.urlopen(request, timeout=START_TIMEOUT_S):
        pass
