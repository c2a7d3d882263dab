"""Figures of nsys exports agree with plain SQL that was written for this test."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

from engine.traces import figures_of
from engine.traces.model import Device, Figures
from tests.support.captures import ADD, GEMM, NCCL, K, Nsys
from tests.support.realdata import capture

REAL = ("h100_2gpu_1s.sqlite", "mfu_2gpu_before.sqlite", "healthy_1pct.sqlite")
WORK = ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE")

# The union of intervals as gaps and islands: a row begins an island if it starts after all ends
# of the rows before it.
UNION = """
WITH work(s, e) AS ({rows}),
marked AS (
  SELECT s, e, max(e) OVER (ORDER BY s, e ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reach
  FROM work WHERE e > s
),
islands AS (
  SELECT s, e, sum(reach IS NULL OR s > reach) OVER (ORDER BY s, e ROWS UNBOUNDED PRECEDING) AS n
  FROM marked
)
SELECT min(s) AS s, max(e) AS e FROM islands GROUP BY n ORDER BY 1
"""


def made(path: Path) -> Path:
    trace = Nsys()
    at = 100.0
    for i in range(400):
        name, stream = (NCCL, 20) if i % 10 == 9 else ((GEMM, 7) if i % 2 else (ADD, 13))
        trace.kernel(at, 30.0 + i % 70, name, stream=stream, launched=at - 20, device=i % 2)
        at += 25.0 if i % 3 else 140.0
        if i % 50 == 49:
            trace.copy(at, 900.0, 20_000_000, 1, 0, device=i % 2)
            at += 2_500.0
    trace.call("cudaStreamSynchronize_v3020", at - 3_000, 2_000.0)
    trace.add(f"{K}MEMSET", at, 5.0, deviceId=0, streamId=7, correlationId=None, value=0)
    trace.add(f"{K}GRAPH_TRACE", at + 10, 700.0, deviceId=1, graphId=1, streamId=7)
    for step in range(5):
        trace.range(f"step_{step}", step * 2_000.0, 1_900.0)
        trace.range("forward", step * 2_000.0, 800.0, registered=True)
    return trace.write(path)


@pytest.fixture(params=[*REAL, "made"])
def both(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[tuple[Figures, sqlite3.Cursor]]:
    made_up = request.param == "made"
    path = made(tmp_path / "made.sqlite") if made_up else capture("nsys", request.param)
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as database:
        yield figures_of(path, "nsys_sqlite"), database.cursor()


def tables(sql: sqlite3.Cursor) -> list[str]:
    known = {row[0] for row in sql.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    return [K + name for name in WORK if K + name in known]


def union(sql: sqlite3.Cursor, sources: list[str], device: Device, where: str = "1") -> list[tuple]:
    if not sources:
        return []
    rows = " UNION ALL ".join(
        f"SELECT start, end FROM {t} WHERE deviceId = {device.index} AND start >= 0 AND {where}"
        for t in sources
    )
    return sql.execute(UNION.format(rows=rows)).fetchall()


def ms(spans: list[tuple]) -> float:
    return sum(end - start for start, end in spans) / 1e6


def test_devices_and_spans(both: tuple[Figures, sqlite3.Cursor]) -> None:
    figures, sql = both
    every = {
        row[0]
        for table in tables(sql)
        for row in sql.execute(f"SELECT DISTINCT deviceId FROM {table}")
    }
    assert [d.index for d in figures.devices] == sorted(every)
    for device in figures.devices:
        spans = union(sql, tables(sql), device)
        assert device.span_ms == pytest.approx((spans[-1][1] - spans[0][0]) / 1e6, abs=1e-6)
        assert device.busy_ms == pytest.approx(ms(spans), abs=1e-6)


def test_gaps(both: tuple[Figures, sqlite3.Cursor]) -> None:
    figures, sql = both
    for device in figures.devices:
        spans = union(sql, tables(sql), device)
        gaps = [b[0] - a[1] for a, b in pairwise(spans)]
        long = [gap for gap in gaps if gap > 1_000_000]
        assert device.gaps.count == len(long)
        assert device.gaps.total_ms == pytest.approx(sum(long) / 1e6, abs=1e-6)
        assert device.gaps.longest_ms == pytest.approx(max(long, default=0) / 1e6, abs=1e-6)
        assert device.idle_ms == pytest.approx(sum(gaps) / 1e6, abs=1e-6)


def test_kernels(both: tuple[Figures, sqlite3.Cursor]) -> None:
    figures, sql = both
    for device in figures.devices:
        rows = sql.execute(
            f"SELECT value, count(*), sum(end - start), min(end - start), max(end - start) "
            f"FROM {K}KERNEL JOIN StringIds ON id = shortName WHERE deviceId = ? "
            "GROUP BY shortName ORDER BY 3 DESC",
            (device.index,),
        ).fetchall()
        total = sum(row[2] for row in rows)
        assert device.kernels == sum(row[1] for row in rows)
        assert device.kernel_sum_ms == pytest.approx(total / 1e6, abs=1e-6)
        for row, kernel in zip(rows, device.top_kernels, strict=False):
            assert kernel.count == row[1]
            assert kernel.total_ms == pytest.approx(row[2] / 1e6, abs=1e-6)
            assert (kernel.min_us, kernel.max_us) == (row[3] / 1e3, row[4] / 1e3)
            assert kernel.share_percent == pytest.approx(100 * row[2] / total, abs=1e-3)
        small = sql.execute(
            f"SELECT count(*) FROM {K}KERNEL WHERE deviceId = ? AND end - start < 50000",
            (device.index,),
        ).fetchone()[0]
        assert device.small_kernels == small


def test_communication(both: tuple[Figures, sqlite3.Cursor]) -> None:
    figures, sql = both
    nccl = "shortName IN (SELECT id FROM StringIds WHERE value LIKE 'nccl%')"
    for device in figures.devices:
        own = [f"{K}KERNEL"]
        moving = union(sql, own, device, nccl)
        rest = union(sql, own, device, f"NOT {nccl}")
        graphs = [t for t in tables(sql) if t.endswith("GRAPH_TRACE")]
        if graphs:
            continue  # graphs count as compute; the next test has none of them
        both_ = union(sql, own, device)
        assert device.communication_ms == pytest.approx(ms(moving), abs=1e-6)
        assert device.compute_ms == pytest.approx(ms(rest), abs=1e-6)
        exposed = ms(both_) - ms(rest)
        assert device.exposed_communication_ms == pytest.approx(exposed, abs=1e-6)
        if moving:
            hidden = 100 * (ms(moving) - exposed) / ms(moving)
            assert device.overlap_percent == pytest.approx(hidden, abs=1e-3)


def test_copies(both: tuple[Figures, sqlite3.Cursor]) -> None:
    figures, sql = both
    for device in figures.devices:
        if not device.copies:
            assert not union(sql, [t for t in tables(sql) if "MEMCPY" in t], device)
            continue
        rows = sql.execute(
            f"SELECT count(*), sum(bytes), sum(end - start) FROM {K}MEMCPY WHERE deviceId = ?",
            (device.index,),
        ).fetchone()
        assert sum(c.count for c in device.copies) == rows[0]
        assert sum(c.size_bytes or 0 for c in device.copies) == rows[1]
        assert sum(c.total_ms for c in device.copies) == pytest.approx(rows[2] / 1e6, abs=1e-6)
        for kind, word in ((1, "HtoD"), (2, "DtoH"), (8, "DtoD")):
            count = sql.execute(
                f"SELECT count(*) FROM {K}MEMCPY WHERE deviceId = ? AND copyKind = ?",
                (device.index, kind),
            ).fetchone()[0]
            assert sum(c.count for c in device.copies if c.direction == word) == count


def test_calls(both: tuple[Figures, sqlite3.Cursor]) -> None:
    figures, sql = both
    for kind, pattern in (("launches", "cu%Launch%"), ("syncs", "cu%Synchronize%")):
        calls = getattr(figures, kind)
        rows = sql.execute(
            f"SELECT count(*), ifnull(sum(end - start), 0) FROM {K}RUNTIME JOIN StringIds "
            "ON id = nameId WHERE value LIKE ? AND start >= 0",
            (pattern,),
        ).fetchone()
        assert (calls.count, calls.total_ms) == (rows[0], pytest.approx(rows[1] / 1e6, abs=1e-6))


def test_queued(both: tuple[Figures, sqlite3.Cursor]) -> None:
    figures, sql = both
    known = {row[1] for row in sql.execute(f"PRAGMA table_info({K}KERNEL)")}
    # Correlation ids are those of a process.
    same = "(k.globalPid >> 24) = (r.globalTid >> 24)" if "globalPid" in known else "1"
    for device in figures.devices:
        rows = sql.execute(
            f"SELECT k.start - r.end FROM {K}KERNEL k JOIN {K}RUNTIME r USING (correlationId) "
            f"WHERE k.deviceId = ? AND r.start >= 0 AND {same}",
            (device.index,),
        ).fetchall()
        if not rows:
            assert device.queued_launch_percent is None
            continue
        share = 100 * sum(row[0] > 10_000 for row in rows) / len(rows)
        assert device.queued_launch_percent == pytest.approx(share, abs=0.5)


def test_ranges_of_the_made_one(tmp_path: Path) -> None:
    figures = figures_of(made(tmp_path / "made.sqlite"), "nsys_sqlite")
    assert {p.name: (p.count, p.total_ms) for p in figures.phases} == {
        "step_*": (5, 9.5),
        "forward": (5, 4.0),
    }
    assert figures.steps is not None
    assert (figures.steps.count, figures.steps.median_ms) == (5, 1.9)
