"""Exports and traces made to take all memory or time, or with numbers that make no sense."""

from __future__ import annotations

import gzip
import sqlite3
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.catalogue import Catalogue
from engine.errors import InputError
from engine.readers import read
from engine.traces import figures_of
from engine.traces.collect import MAX_PROCESSES, Collected
from engine.traces.intervals import Collector
from engine.traces.sampled import SampledRows
from engine.traces.stringids import StringIds
from engine.traces.tables import MAX_TEXT, SqliteTables
from tests.support.captures import Chrome, K, Nsys

COLUMNS = ("start", "end", "deviceId", "streamId", "correlationId", "globalPid", "shortName")


def database(path: Path, *statements: str) -> Path:
    with sqlite3.connect(path) as made:
        made.execute(f"CREATE TABLE {K}KERNEL({', '.join(f'{c} INT' for c in COLUMNS)})")
        for statement in statements:
            made.execute(statement)
    made.close()
    return path


def insert(path: Path, table: str, rows: Iterable[tuple[object, ...]]) -> Path:
    with sqlite3.connect(path) as made:
        for row in rows:
            made.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
    made.close()
    return path


def kernels(count: int, correlation: int | None = None) -> list[tuple[int, ...]]:
    return [
        (i * 10_000, i * 10_000 + 5_000, 0, 7, correlation if correlation is not None else i, 0, 1)
        for i in range(count)
    ]


# --- ids that join


@pytest.mark.parametrize("key", [0, -1, -(2**63)])
def test_ids_below_one_are_none(key: int) -> None:
    rows = SampledRows(1, 100)
    rows.add(np.full(1_000, key), np.arange(1_000))
    assert [column.size for column in rows.rows()] == [0, 0]
    assert rows.mask == 0


@pytest.mark.parametrize("key", [1, 7, 2**62])
@pytest.mark.parametrize("size", [2, 1_000])
def test_a_constant_id_joins_nothing(key: int, size: int) -> None:
    rows = SampledRows(1, 100)
    rows.add(np.full(size, key), np.arange(size))
    assert rows.rows()[0].size == 0


def test_ids_that_hash_alike_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.traces.sampled._FACTOR", np.uint64(1))
    rows = SampledRows(1, 100)
    for k in range(10):
        rows.add(np.arange(k * 500 + 1, (k + 1) * 500 + 1), np.arange(500))
    assert rows.rows()[0].size == 100


def test_few_parts_are_kept() -> None:
    rows, spans = SampledRows(1, 100_000), Collector(100_000, tagged=True)
    for k in range(5_000):
        rows.add(np.array([k + 1]), np.array([k]))
        spans.add(np.array([k * 10]), np.array([k * 10 + 5]), np.array([k]))
    assert len(rows._parts) <= 64
    assert len(spans._waiting) <= 64
    assert rows.rows()[0].tolist() == list(range(1, 5_001))
    assert spans.tags.tolist() == list(range(5_000))


def test_a_trace_whose_ids_are_all_zero() -> None:
    trace = Chrome()
    for i in range(60_000):
        trace.add("kernel", "k", i * 10.5, 5.0, device=0, stream=7, correlation=0)
    (device,) = figures_of([trace.bytes()], "chrome_trace").devices
    assert device.kernels == 60_000
    assert device.queued_launch_percent is None


def test_an_export_whose_ids_are_all_zero(tmp_path: Path) -> None:
    path = insert(database(tmp_path / "a.sqlite"), f"{K}KERNEL", kernels(60_000, 0))
    (device,) = figures_of(path, "nsys_sqlite").devices
    assert (device.kernels, device.queued_launch_percent) == (60_000, None)


# --- SQLite


@pytest.mark.parametrize(
    ("table", "names"),
    [
        ("(id INT, value TEXT)", True),
        ("(id INTEGER PRIMARY KEY, value TEXT)", True),
        ("(id INT PRIMARY KEY, value TEXT) WITHOUT ROWID", True),
        ("(id INT, value TEXT, rowid TEXT)", True),
        ("(id INT, value TEXT, rowid TEXT, oid TEXT, _rowid_ TEXT)", False),
        ("(id INT, value TEXT, PRIMARY KEY (value, id)) WITHOUT ROWID", False),
    ],
)
def test_names_are_found_without_going_through_the_table(
    tmp_path: Path, table: str, names: bool
) -> None:
    path = database(tmp_path / "a.sqlite", f"CREATE TABLE StringIds {table}")
    with sqlite3.connect(path) as made:
        made.executemany(
            "INSERT INTO StringIds (id, value) VALUES (?, ?)", [(n, f"k{n}") for n in range(999)]
        )
    made.close()
    asked: list[str] = []

    tables = SqliteTables(path)
    strings = StringIds(lambda sql, *values: asked.append(sql) or tables._ask(sql, *values))
    before = len(asked)
    found = [strings.text(n) for n in (0, 1, 500, 998, 999, -5)]
    assert found == (["k0", "k1", "k500", "k998", None, None] if names else [None] * 6)
    for sql in set(asked[before:]):
        plan = tables._ask(f"EXPLAIN QUERY PLAN {sql}", (1,)).fetchall()
        assert plan[0][-1].startswith("SEARCH")
    tables.close()


def test_the_steps_are_those_of_all_queries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.traces.tables._STEPS_BETWEEN", 100)
    monkeypatch.setattr("engine.traces.tables._STEPS_PER_BYTE", 0)
    monkeypatch.setattr("engine.traces.tables._STEPS_AT_LEAST", 30_000)
    path = insert(database(tmp_path / "a.sqlite"), f"{K}KERNEL", kernels(500))
    tables = SqliteTables(path)
    assert sum(batch[0].size for batch in tables.rows(f"{K}KERNEL", COLUMNS)) == 500
    again = chain.from_iterable(tables.rows(f"{K}KERNEL", COLUMNS) for _ in range(5))
    with pytest.raises(InputError, match="far longer"):
        list(again)
    tables.close()


def test_the_cache_is_not_as_large_as_the_file_says(tmp_path: Path) -> None:
    path = database(tmp_path / "a.sqlite", "PRAGMA default_cache_size = 900000")
    tables = SqliteTables(path)
    assert tables._ask("PRAGMA cache_size").fetchone()[0] == -4_096
    tables.close()


def test_long_texts_are_cut_by_the_database(tmp_path: Path) -> None:
    path = database(
        tmp_path / "a.sqlite",
        "CREATE TABLE TARGET_INFO_GPU(id INT, name TEXT)",
        "INSERT INTO TARGET_INFO_GPU VALUES (0, hex(zeroblob(3000000))), (1, zeroblob(3000000))",
        "CREATE TABLE NVTX_EVENTS(start INT, end INT, text TEXT, globalTid INT)",
        "INSERT INTO NVTX_EVENTS VALUES (1, 2, hex(zeroblob(3000000)), 1), (1, 2, 'forward', 1)",
    )
    tables = SqliteTables(path)
    assert tables.records("TARGET_INFO_GPU", ("id", "name"), 9) == [(0, "0" * MAX_TEXT), (1, None)]
    names = [n for some, _ in tables.named_rows("NVTX_EVENTS", "text", ("start",)) for n in some]
    assert sorted(map(len, names)) == [7, MAX_TEXT]
    tables.close()


def test_texts_in_columns_of_numbers_stay_in_the_file(tmp_path: Path) -> None:
    path = insert(database(tmp_path / "a.sqlite"), f"{K}KERNEL", kernels(3))
    insert(path, f"{K}KERNEL", [(1, 2, 0, 7, "x" * 100_000, 0, 1), (1, 2, 0, b"", 1, 0, 1)])
    tables = SqliteTables(path)
    assert [batch[0].size for batch in tables.rows(f"{K}KERNEL", COLUMNS)] == [3]
    tables.close()


def test_many_ranges_of_different_names(tmp_path: Path) -> None:
    path = database(
        tmp_path / "a.sqlite",
        "CREATE TABLE NVTX_EVENTS(start INT, end INT, text TEXT, globalTid INT)",
    )
    rows = [(i * 10, i * 10 + 5, f"step {i}", i << 24) for i in range(3_000)]
    insert(path, "NVTX_EVENTS", rows)
    tables = SqliteTables(path)
    batches = tables.named_rows("NVTX_EVENTS", "text", ("start",))
    assert [len(names) for names, _ in batches] == [1_024, 1_024, 952]
    tables.close()
    found = figures_of(path, "nsys_sqlite")
    assert [(p.name, p.count) for p in found.phases] == [("step *", 3_000)]
    assert found.steps is not None
    assert found.steps.count == 3_000


def test_a_process_for_each_row() -> None:
    data = Collected(small_ns=1)
    seen = 0
    for k in range(3):
        processes = np.arange(k * 8_192, (k + 1) * 8_192)
        groups = list(data.by_process(processes))
        for process, mine in groups:
            data.host(process)
            seen += int(mine.sum())
        assert len(groups) <= MAX_PROCESSES + 1
    assert seen == 3 * 8_192
    assert len(data.hosts) <= MAX_PROCESSES + 1
    assert len(list(data.by_device(np.arange(8_192)))) == 64
    assert data.left_out_devices == 8_192 - 64


# --- numbers that make no sense


@pytest.mark.parametrize(
    ("start", "end"), [(0, (1 << 62) - 1), (0, 2**63 - 1), (1 << 61, (1 << 61) + 5), (9, 3)]
)
def test_times_that_make_no_sense(tmp_path: Path, start: int, end: int) -> None:
    path = insert(database(tmp_path / "a.sqlite"), f"{K}KERNEL", kernels(100))
    whole = figures_of(path, "nsys_sqlite")
    insert(path, f"{K}KERNEL", [(start, end, 0, 7, 1, 0, 1)] * 3)
    call = "start INT, end INT, globalTid INT, correlationId INT, nameId INT"
    with sqlite3.connect(path) as made:
        for table in (f"{K}RUNTIME", "OSRT_API"):
            made.execute(f"CREATE TABLE {table}({call})")
        made.execute("CREATE TABLE NVTX_EVENTS(start INT, end INT, text TEXT, globalTid INT)")
    made.close()
    for table in (f"{K}RUNTIME", "OSRT_API"):
        insert(path, table, [(5, 25, 1, 1, 2), *[(start, end, 1, 1, 2)] * 9])
    insert(path, "NVTX_EVENTS", [(5, 25, "forward", 1), (5, None, "mark", 1), (start, end, "x", 1)])
    found = figures_of(path, "nsys_sqlite")
    assert found.odd == 3 + 9 + 9 + 1
    assert found.devices[0].kernels == 100
    assert found.devices[0].busy_ms == whole.devices[0].busy_ms
    assert [(c.count, c.max_ms) for c in found.calls] == [(1, 2e-05)]
    assert [(p.name, p.count) for p in found.phases] == [("forward", 1)]


def test_an_unknown_gpu(tmp_path: Path, catalogue: Catalogue) -> None:
    trace = Nsys()
    for i in range(200):
        trace.kernel(i * 100.0, 30.0)
    path = trace.write(tmp_path / "a.sqlite")
    with sqlite3.connect(path) as made:
        made.execute(f"ALTER TABLE {K}KERNEL DROP COLUMN deviceId")
        made.execute("CREATE TABLE TARGET_INFO_GPU(id INT, name TEXT)")
        made.execute("INSERT INTO TARGET_INFO_GPU VALUES (0, 'H100'), (1, 'H100')")
    made.close()
    answer = read(path, catalogue)
    said = " ".join(finding.says for finding in answer.findings)
    assert "unknown GPU" in said
    assert "GPU -1" not in f"{answer}"
    with sqlite3.connect(path) as made:
        made.execute("DELETE FROM TARGET_INFO_GPU WHERE id = 1")
    made.close()
    (device,) = figures_of(path, "nsys_sqlite").devices
    assert (device.index, device.name) == (0, "H100")


def test_errors_name_the_input(tmp_path: Path, catalogue: Catalogue) -> None:
    data = bytearray(database(tmp_path / "a.sqlite").read_bytes())
    data[100:] = b"\xff" * (len(data) - 100)
    with pytest.raises(InputError) as caught:
        read(bytes(data), catalogue)
    assert ".trace" not in str(caught.value)
    assert "the trace cannot be read" in str(caught.value)
    packed = tmp_path / "export.sqlite.gz"
    packed.write_bytes(gzip.compress(data))
    with pytest.raises(InputError, match=r"export\.sqlite\.gz cannot be read"):
        read(packed, catalogue)


# --- Parquet


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pytest.importorskip("pyarrow", reason="pip install 'gpuwhy[parquet]'")
    columns = dict(zip(COLUMNS, zip(*kernels(100), strict=True), strict=True))
    return parquet(tmp_path, f"{K}KERNEL", **{name: list(c) for name, c in columns.items()})


def parquet(path: Path, table: str, **columns: Any) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    plain = columns.pop("plain", False)
    pq.write_table(
        pa.table(columns), path / f"{table}.parquet", compression="zstd", use_dictionary=not plain
    )
    return path


def repeated(text: str, times: int) -> Any:
    import pyarrow as pa

    indices = pa.array([*[0] * (times - 1), None], pa.int32())
    return pa.DictionaryArray.from_arrays(indices, pa.array([text]))


@pytest.mark.parametrize("kept", [True, False], ids=["as a dictionary", "as strings"])
def test_texts_repeated_by_a_dictionary(folder: Path, kept: bool) -> None:
    import pyarrow as pa

    texts = repeated("x" * 200_000, 3_000)
    parquet(folder, "StringIds", id=range(3_000), value=texts if kept else texts.cast("string"))
    parquet(folder, "TARGET_INFO_GPU", id=range(3_000), name=repeated("n" * 300_000, 3_000))
    before = pa.default_memory_pool().max_memory()
    (device,) = figures_of(folder, "parquet").devices
    assert pa.default_memory_pool().max_memory() <= max(before, 64 << 20)
    assert device.top_kernels[0].name.startswith("xxx")
    assert device.name is not None
    assert len(device.name) <= 400


def test_texts_that_unpack_to_too_much(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.traces.arrow._MOST_TEXTS", 1_000_000)
    parquet(folder, "StringIds", id=range(20), value=["x" * 100_000] * 20, plain=True)
    with pytest.raises(InputError, match=r"StringIds\.parquet cannot be read: column value is"):
        figures_of(folder, "parquet")


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("StringIds", "id", [1]),
        ("StringIds", "value", {"a": 1}),
        ("StringIds", "value", 5),
        ("KERNEL", "deviceId", "a"),
        ("KERNEL", "start", [1]),
        ("NVTX_EVENTS", "text", [["a"]]),
        ("TARGET_INFO_GPU", "name", {"a": "b"}),
    ],
)
def test_columns_of_other_types(folder: Path, table: str, column: str, value: Any) -> None:
    columns = {
        "StringIds": {"id": 1, "value": "k"},
        "KERNEL": {"start": 1, "end": 2, "deviceId": 0},
        "NVTX_EVENTS": {"start": 1, "end": 2, "text": "k", "globalTid": 1},
        "TARGET_INFO_GPU": {"id": 1, "name": "k"},
    }[table]
    name = f"{K}KERNEL" if table == "KERNEL" else table
    parquet(folder, name, **{c: [v] for c, v in (columns | {column: value}).items()})
    with pytest.raises(InputError, match=f"column {column} holds no ") as caught:
        figures_of(folder, "parquet")
    assert "\n" not in str(caught.value)


def test_dictionaries_and_numbers_of_other_kinds(folder: Path) -> None:
    import pyarrow as pa

    count = 6
    devices = pa.DictionaryArray.from_arrays(pa.array([0] * count), pa.array([3]))
    parquet(
        folder, f"{K}KERNEL",
        start=[0.0, 10.0, float("nan"), float("inf"), 1e30, 5.5],
        end=[5.0, 15.0, 9.0, 9.0, 1e31, float("inf")],
        deviceId=devices,
        correlationId=[None] * count,
        shortName=pa.array([1] * count, pa.uint64()),
    )  # fmt: skip
    raw = pa.array([b"\xffbad", None], pa.binary())
    parquet(folder, "StringIds", id=[1, 2], value=raw)
    (device,) = figures_of(folder, "parquet").devices
    assert (device.index, device.kernels) == (3, 2)
    assert device.top_kernels[0].name == "\ufffdbad"


def test_odd_rows_of_parquet(folder: Path) -> None:
    parquet(
        folder, "NVTX_EVENTS",
        start=[1, 5, 0, 3], end=[9, None, 2**62, 2], text=["forward", "mark", "x", "y"],
        globalTid=[1] * 4,
    )  # fmt: skip
    found = figures_of(folder, "parquet")
    assert found.odd == 2
    assert [(p.name, p.count) for p in found.phases] == [("forward", 1)]
