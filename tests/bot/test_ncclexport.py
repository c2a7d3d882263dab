"""``gpuwhy nccl export`` as a process of its own, scraped by a real Prometheus."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bot import ncclexport
from engine.errors import UsageError
from tests.support import inspector
from tests.support.servers import binary, free_port, scrape_config, start_prometheus

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


@pytest.mark.parametrize(
    "listen", ["", "9468", "host", "host:", "host:x", "host:70000", "h:\u0663"]
)
def test_what_is_no_address_is_refused(listen: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no address to listen on"):
        ncclexport.export([tmp_path], listen, print)
