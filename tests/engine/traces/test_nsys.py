"""Exports of nsys by version, to Parquet, damaged and made to harm."""

from __future__ import annotations

import gzip
import random
import sqlite3
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from engine.catalogue import Catalogue
from engine.errors import InputError
from engine.readers import read
from engine.traces import figures_of
from engine.traces.parquet import ParquetTables
from tests.support.captures import ADD, GEMM, NCCL, K, Nsys, export_parquet
from tests.support.realdata import captures


def sample(*, old: bool = False) -> Nsys:
    trace = Nsys(old=old)
    for i in range(300):
        name, stream = (NCCL, 20) if i % 10 == 9 else (GEMM if i % 2 else ADD, 7)
        trace.kernel(i * 100.0 + 6, 70.5, name, stream=stream, launched=i * 100.0, device=i % 2)
    trace.copy(31_000.0, 500.0, 5_000_000, 1, 0)
    trace.copy(32_000.0, 100.0, 100_000, 2, 0)
    trace.call("cudaMalloc_v3020", 30_100.0, 80.0)
    trace.call("cudaStreamSynchronize_v3020", 30_200.0, 700.0)
    trace.wait("poll", 29_000.0, 300.0)
    for step in range(4):
        trace.range(f"step_{step}", step * 7_000.0, 6_500.0)
        trace.range("forward", step * 7_000.0, 2_000.0, registered=True)
        trace.range(f"aten::mm, op_id = {step}", step * 7_000.0, 100.0)
    return trace


@pytest.fixture
def export(tmp_path: Path) -> Path:
    return sample().write(tmp_path / "export.sqlite")


def sql(path: Path, *statements: str) -> None:
    database = sqlite3.connect(path)
    for statement in statements:
        database.execute(statement)
    database.commit()
    database.close()


def test_old_and_new_schema_give_the_same(export: Path, tmp_path: Path) -> None:
    old = figures_of(sample(old=True).write(tmp_path / "old.sqlite"), "nsys_sqlite")
    assert old == figures_of(export, "nsys_sqlite")


def test_figures(export: Path) -> None:
    found = figures_of(export, "nsys_sqlite")
    assert found.tool == "Nsight Systems 2026.2.1"
    assert [d.kernels for d in found.devices] == [150, 150]
    first, second = found.devices
    assert [(c.direction, c.memory, c.size_bytes) for c in first.copies] == [
        ("HtoD", "pageable", 5_000_000),
        ("DtoH", None, 100_000),
    ]
    assert second.communication_ms == pytest.approx(30 * 0.0705)
    assert first.communication_ms == 0.0
    assert first.overlap_percent is None
    assert found.allocations is not None
    assert found.allocations.count == 1
    assert [p.name for p in found.phases] == ["step_*", "forward"]
    assert [c.name for c in found.system_calls] == ["poll"]


@pytest.mark.parametrize("table", [f"{K}RUNTIME", "NVTX_EVENTS", "OSRT_API", f"{K}MEMCPY"])
def test_tables_without_data_are_not_written(export: Path, table: str) -> None:
    sql(export, f"DROP TABLE {table}")
    found = figures_of(export, "nsys_sqlite")
    assert len(found.devices) == 2
    assert found.cpu_traced is (table != f"{K}RUNTIME")


@pytest.mark.parametrize("column", ["streamId", "correlationId", "globalPid", "demangledName"])
def test_columns_may_lack(export: Path, column: str) -> None:
    sql(export, f"ALTER TABLE {K}KERNEL DROP COLUMN {column}")
    assert [d.kernels for d in figures_of(export, "nsys_sqlite").devices] == [150, 150]


def test_rows_in_any_order(export: Path, tmp_path: Path) -> None:
    whole = figures_of(export, "nsys_sqlite")
    shuffled = sample()
    for rows in shuffled.rows.values():
        random.Random(7).shuffle(rows)
    found = figures_of(shuffled.write(tmp_path / "shuffled.sqlite"), "nsys_sqlite")
    assert found == replace(whole, phases=found.phases)


def test_values_of_wrong_types_are_left_out(export: Path) -> None:
    whole = figures_of(export, "nsys_sqlite")
    for cells in ("'soon', 5", "x'00', 5", "1e300, 5", "9e18, 1", "NULL, 7"):
        start, end = cells.split(", ")
        sql(
            export,
            f"INSERT OR IGNORE INTO {K}KERNEL (start, end, deviceId, contextId, streamId, "
            f"demangledName, shortName) VALUES ({start}, {end}, 0, 1, 7, 1, 1)",
        )
    found = figures_of(export, "nsys_sqlite")
    assert found.devices[0].busy_ms == whole.devices[0].busy_ms
    assert found.devices[0].kernels == whole.devices[0].kernels


def test_packed(export: Path, catalogue: Catalogue) -> None:
    assert read(gzip.compress(export.read_bytes()), catalogue) == read(export, catalogue)


def test_the_file_is_not_touched(export: Path, catalogue: Catalogue) -> None:
    before = export.read_bytes()
    read(export, catalogue)
    assert export.read_bytes() == before
    assert [p.name for p in export.parent.iterdir()] == [export.name]


# --- Parquet


@pytest.fixture
def parquet(export: Path, tmp_path: Path) -> Path:
    pytest.importorskip("pyarrow", reason="pip install 'gpuwhy[parquet]'")
    return export_parquet(export, tmp_path / "tables")


def test_parquet_gives_the_same(export: Path, parquet: Path) -> None:
    found = figures_of(parquet, "parquet")
    assert found == replace(figures_of(export, "nsys_sqlite"), source="nsys_parquet")


def test_any_of_its_files_will_do(parquet: Path, catalogue: Catalogue) -> None:
    answer = read(parquet / f"{K}KERNEL.parquet", catalogue)
    assert answer.kinds == ("nsys_parquet",)
    assert answer == read(parquet / "StringIds.parquet", catalogue)


@pytest.mark.parametrize("path", captures("nsys", "*.sqlite"), ids=lambda p: p.stem)
def test_real_ones_as_parquet(path: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="pip install 'gpuwhy[parquet]'")
    found = figures_of(export_parquet(path, tmp_path / "tables"), "parquet")
    assert found == replace(figures_of(path, "nsys_sqlite"), source="nsys_parquet")


def test_a_damaged_parquet_file(parquet: Path) -> None:
    file = parquet / f"{K}KERNEL.parquet"
    file.write_bytes(file.read_bytes()[:-40] + b"PAR1")
    with pytest.raises(InputError, match=r"KERNEL\.parquet cannot be read"):
        figures_of(parquet, "parquet")


def test_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match="pyarrow") as caught:
        ParquetTables(tmp_path)
    assert "gpuwhy[parquet]" in str(caught.value.hint)


# --- hostile


def test_another_database(tmp_path: Path, catalogue: Catalogue) -> None:
    path = tmp_path / "history.sqlite"
    sql(path, "CREATE TABLE urls (id INTEGER, url TEXT)", "INSERT INTO urls VALUES (1, 'x')")
    with pytest.raises(InputError, match="no table of an nsys export") as caught:
        read(path, catalogue)
    assert "nsys export" in str(caught.value.hint)


def test_views_are_not_asked(tmp_path: Path) -> None:
    path = tmp_path / "views.sqlite"
    sql(
        path,
        "CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT)",
        f"CREATE VIEW {K}KERNEL AS WITH RECURSIVE c(start) AS (SELECT 1 UNION ALL SELECT start + 1 "
        "FROM c) SELECT start, start + 1 AS end, 0 AS deviceId FROM c",
    )
    assert figures_of(path, "nsys_sqlite").devices == ()


def test_computed_columns_are_not_asked(export: Path) -> None:
    sql(
        export,
        "DROP TABLE NVTX_EVENTS",
        "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, globalTid INTEGER, "
        "text AS (hex(zeroblob(1000))))",
        "INSERT INTO NVTX_EVENTS VALUES (1, 2, 3)",
    )
    assert figures_of(export, "nsys_sqlite").phases == ()


def test_a_query_that_does_not_end_is_stopped(
    export: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.traces.tables._STEPS_AT_LEAST", 1_000)
    monkeypatch.setattr("engine.traces.tables._STEPS_PER_BYTE", 0)
    monkeypatch.setattr("engine.traces.tables._STEPS_BETWEEN", 100)
    with pytest.raises(InputError, match="far longer"):
        figures_of(export, "nsys_sqlite")


def test_texts_that_are_too_long(export: Path) -> None:
    sql(export, "UPDATE StringIds SET value = hex(zeroblob(20000000)) WHERE id = 1")
    with pytest.raises(InputError, match="too big"):
        figures_of(export, "nsys_sqlite")


def test_long_texts_are_cut(export: Path) -> None:
    sql(export, "UPDATE StringIds SET value = hex(zeroblob(1000000)) WHERE id = 1")
    found = figures_of(export, "nsys_sqlite")
    assert max(len(k.name) for d in found.devices for k in d.top_kernels) <= 400


def test_names_with_quotes(tmp_path: Path) -> None:
    path = tmp_path / "quotes.sqlite"
    sql(
        path,
        "CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT)",
        'CREATE TABLE "x"" FROM y; DROP TABLE z; --" ("a"" b" TEXT)',
    )
    assert figures_of(path, "nsys_sqlite").devices == ()


@pytest.mark.parametrize("seed", range(60))
def test_damaged_files(export: Path, seed: int) -> None:
    rng = random.Random(seed)
    data = bytearray(export.read_bytes())
    for _ in range(rng.randrange(1, 200)):
        data[rng.randrange(16, len(data))] = rng.randrange(256)
    if seed % 3 == 0:
        del data[rng.randrange(100, len(data)) :]
    export.write_bytes(data)
    with suppress(InputError):
        figures_of(export, "nsys_sqlite")
