"""``gpuwhy nccl export`` as a process of its own, scraped by a real Prometheus."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from bot import ncclexport
from engine.errors import UsageError
from tests.support import inspector
from tests.support.servers import binary, free_port, scrape_config, start_prometheus
from tests.support.web import serve

GPUWHY = [sys.executable, "-c", "from bot.surfaces.cli.main import main; main()"]


@contextmanager
def exporter(folder: Path, port: int) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [*GPUWHY, "nccl", "export", str(folder), "--listen", f"127.0.0.1:{port}"],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        said = process.stderr.readline()
        assert said == f"serving on http://127.0.0.1:{port}/metrics\n"
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        if process.stderr is not None:
            process.stderr.close()


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return str(answer.read().decode())


def write(folder: Path, sequences: range, *, late: int = 0) -> None:
    for rank in range(2):
        with (folder / f"node-1-pid{rank}.log").open("a") as file:
            for sequence in sequences:
                took = 2000 - (late if rank == 1 else 0)
                file.write(inspector.record(rank, sequence, took, ranks=2, busbw=100.0) + "\n")


def query(server: str, promql: str) -> dict[str, float]:
    """Return the value of each rank."""
    text = get(f"{server}/api/v1/query?" + urllib.parse.urlencode({"query": promql}))
    found = json.loads(text)["data"]["result"]
    return {one["metric"].get("rank", ""): float(one["value"][1]) for one in found}


def eventually(server: str, promql: str, wanted: dict[str, float], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while (found := query(server, promql)) != wanted and time.monotonic() < deadline:
        time.sleep(0.2)
    assert found == wanted


def test_prometheus_scrapes_files_that_grow(tmp_path: Path) -> None:
    folder = tmp_path / "nccl-inspector-4711"
    folder.mkdir()
    write(folder, range(1, 101))
    port = free_port()
    config = scrape_config([f"127.0.0.1:{port}"], job="nccl")
    with exporter(folder, port) as process, start_prometheus(tmp_path / "tsdb", config=config) as p:
        count = 'nccl_allreduce_duration_seconds_count{size_bytes="268435456",slurm_job_id="4711"}'
        eventually(p.url, count, {"0": 100, "1": 100})
        write(folder, range(101, 151), late=1500)
        eventually(p.url, count, {"0": 150, "1": 150})
        mean = "nccl_allreduce_duration_seconds_sum / nccl_allreduce_duration_seconds_count"
        assert query(p.url, mean) == pytest.approx({"0": 2e-3, "1": 1.5e-3})
        high = (
            "histogram_quantile(0.99, sum by (rank, le) (nccl_allreduce_duration_seconds_bucket))"
        )
        assert query(p.url, high)["0"] <= 2e-3
        busbw = "nccl_allreduce_bus_bytes_total / nccl_allreduce_duration_seconds_sum"
        assert query(p.url, busbw) == pytest.approx({"0": 1e11, "1": 1e11})
        assert query(p.url, 'up{job="nccl"}') == {"": 1}
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
        assert process.stderr is not None
        assert process.stderr.read() == "stopped\n"


def test_promtool_finds_no_fault_with_its_text(tmp_path: Path) -> None:
    write(tmp_path, range(1, 4))
    made = ncclexport.Exporter([tmp_path])
    while made.poll():
        pass
    done = subprocess.run(
        [binary("promtool"), "check", "metrics"],
        input=made.text(),
        capture_output=True,
        check=False,
    )
    made.close()
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_after_a_restart_counters_are_where_they_were(tmp_path: Path) -> None:
    write(tmp_path, range(1, 11))
    texts = []
    for _ in range(2):
        port = free_port()
        with exporter(tmp_path, port) as process:
            texts.append(get(f"http://127.0.0.1:{port}/metrics"))
            assert get(f"http://127.0.0.1:{port}/healthz") == "ok\n"
            process.send_signal(signal.SIGINT)
            assert process.wait(10) == 0
    assert texts[0] == texts[1]
    assert "gpuwhy_nccl_records_total 20.0" in texts[0]


def test_told_to_stop_it_does_not_read_to_the_end(tmp_path: Path) -> None:
    write(tmp_path, range(1, 9_001))
    made = ncclexport.Exporter([tmp_path])
    made.stop()
    made.poll()
    made.close()
    assert "gpuwhy_nccl_records_total 0.0" in made.text().decode()


def test_a_large_backlog_can_be_interrupted(tmp_path: Path) -> None:
    for rank in range(8):
        lines = "".join(f"{inspector.record(rank, n, 900)}\n" for n in range(4_000))
        (tmp_path / f"node-1-pid{rank}.log").write_text(lines)
    process = subprocess.Popen(
        [*GPUWHY, "nccl", "export", str(tmp_path), "--listen", "127.0.0.1:0"],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        time.sleep(1.2)
        process.send_signal(signal.SIGTERM)
        assert process.wait(15) in {0, -signal.SIGTERM}, "before its handler stands it just ends"
    finally:
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()


def test_records_after_a_rotation_are_counted(tmp_path: Path) -> None:
    write(tmp_path, range(1, 11))
    port = free_port()
    url = f"http://127.0.0.1:{port}/metrics"
    with exporter(tmp_path, port):
        assert "gpuwhy_nccl_records_total 20.0" in get(url)
        for rank in range(2):
            file = tmp_path / f"node-1-pid{rank}.log"
            file.rename(file.with_suffix(".log.1"))
        write(tmp_path, range(11, 31))
        deadline = time.monotonic() + 30
        while "records_total 60.0" not in (text := get(url)) and time.monotonic() < deadline:
            time.sleep(0.2)
    assert "gpuwhy_nccl_records_total 60.0" in text
    assert "gpuwhy_nccl_rotated_files_total 2.0" in text
    counts = [line for line in text.split("\n") if line.startswith("nccl_allreduce_duration_")]
    assert [c.rpartition(" ")[2] for c in counts if "_count{" in c] == ["30.0", "30.0"]


def test_it_ends_in_time_however_many_hold_a_connection(tmp_path: Path) -> None:
    for rank in range(1_000):
        lines = [inspector.record(rank, k, 900, ranks=1_000, size=1 << (20 + k)) for k in (1, 2)]
        (tmp_path / f"node-1-pid{rank}.log").write_text("\n".join(lines) + "\n")
    port = free_port()
    with exporter(tmp_path, port) as process, ExitStack() as stack:
        text = get(f"http://127.0.0.1:{port}/metrics")
        held = []
        for number in range(400):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
            # Some ask for all and read nothing, some never end their request, some send nothing.
            end = (b"\r\n", b"", None)[number % 3]
            if end is not None:
                one.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n" + end)
            held.append(one)
        assert get(f"http://127.0.0.1:{port}/metrics") == text
        status = Path(f"/proc/{process.pid}/status").read_text()
        peak = next(line for line in status.split("\n") if line.startswith("VmHWM"))
        assert int(peak.split()[1]) < 300_000, "kB: readers who wait hold no copy of the text"
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        took = time.monotonic() - began
        assert process.stderr is not None
        assert process.stderr.read() == "stopped\n"
    assert took < 7


async def test_who_does_not_read_is_cut_off(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(ncclexport, "_SEND_S", 0.2)

    async def large(request: web.Request) -> web.StreamResponse:
        return await ncclexport._send(request, b"x" * (64 << 20))

    async with serve(large) as site:
        port = int(site.url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await asyncio.sleep(0.6)
        came = 0
        with suppress(ConnectionError):
            while piece := await reader.read(1 << 20):
                came += len(piece)
        writer.close()
    assert came < 64 << 20
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


async def test_a_scrape_may_ask_for_the_head_only() -> None:
    async def small(request: web.Request) -> web.StreamResponse:
        return await ncclexport._send(request, b"x 1\n" * 100_000)

    async with serve(small) as site, aiohttp.ClientSession() as client:
        async with client.head(site.url) as answer:
            assert (answer.status, answer.headers["Content-Length"]) == (200, "400000")
        async with client.get(site.url) as answer:
            assert await answer.read() == b"x 1\n" * 100_000


def test_an_address_that_is_taken_is_one_line(tmp_path: Path) -> None:
    port = free_port()
    with exporter(tmp_path, port):
        done = subprocess.run(
            [*GPUWHY, "nccl", "export", str(tmp_path), "--listen", f"127.0.0.1:{port}"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr.startswith(f"gpuwhy: cannot listen on 127.0.0.1:{port}: ")
    assert done.stderr.count("\n") == 1


def test_a_file_of_something_else_is_told_on_one_line(tmp_path: Path) -> None:
    (tmp_path / "kern.log").write_text("[    1.0] one\n[    2.0] two\n")
    command = [*GPUWHY, "nccl", "export", str(tmp_path / "kern.log"), "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        said = process.stderr.readline()
        assert said.startswith("gpuwhy: warning: ")
        assert "kern.log holds no record of NCCL Inspector" in said
        assert process.stderr.readline().startswith("serving on ")
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


@pytest.mark.parametrize(
    "listen", ["", "9468", "host", "host:", "host:x", "host:70000", "h:\u0663"]
)
def test_what_is_no_address_is_refused(listen: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no address to listen on"):
        ncclexport.export([tmp_path], listen, print)
