"""Small captures made up for tests: Chrome traces as PyTorch writes them, and nsys exports."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import orjson

GEMM = "ampere_sgemm_128x64_tn"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)"
NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
# 2024-04-01, so that times are those of a real trace.
T0_US = 1_711_964_646_000_000.0


class Chrome:
    """Events of a Chrome trace; times in microseconds from its begin."""

    def __init__(self, *, names: dict[str, str] | None = None) -> None:
        self.events: list[dict[str, Any]] = []
        self._id = 0
        # Categories that differ by version and vendor.
        self._names = names or {}

    def add(self, cat: str, name: str, at: float, dur: float, **args: Any) -> None:
        self.events.append(
            {
                "ph": "X",
                "cat": self._names.get(cat, cat),
                "name": name,
                "pid": args.get("device", 4242),
                "tid": args.get("stream", 4242),
                "ts": T0_US + at,
                "dur": dur,
                "args": args,
            }
        )

    def kernel(
        self,
        at: float,
        dur: float,
        name: str = GEMM,
        *,
        device: int = 0,
        stream: int = 7,
        launched: float | None = None,
        call: str = "cudaLaunchKernel",
        launch_us: float = 4.0,
    ) -> None:
        """Add a kernel, and its launch call where it is told when that began."""
        self._id += 1
        self.add("kernel", name, at, dur, device=device, stream=stream, correlation=self._id)
        if launched is not None:
            self.add("cuda_runtime", call, launched, launch_us, correlation=self._id)

    def copy(self, at: float, dur: float, name: str, size: int, *, device: int = 0) -> None:
        self._id += 1
        self.add(
            "gpu_memcpy", name, at, dur, device=device, stream=9, correlation=self._id, bytes=size
        )

    def range(self, name: str, at: float, dur: float) -> None:
        self.add("user_annotation", name, at, dur)

    def bytes(self, **header: Any) -> bytes:
        """Return the trace as a file."""
        whole: dict[str, Any] = {
            "schemaVersion": 1,
            "deviceProperties": [
                {"id": k, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85 << 30}
                for k in range(8)
            ],
            "traceEvents": self.events,
        }
        return orjson.dumps(whole | header)


K = "CUPTI_ACTIVITY_KIND_"
_TABLES = {
    f"{K}KERNEL": (
        "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId "
        "INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, "
        "demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, graphNodeId INTEGER"
    ),
    f"{K}RUNTIME": (
        "start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid "
        "INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL"
    ),
    f"{K}MEMCPY": (
        "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId "
        "INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, "
        "bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL, srcKind INTEGER, dstKind INTEGER"
    ),
    f"{K}MEMSET": (
        "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, streamId "
        "INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, value INTEGER, bytes INTEGER"
    ),
    f"{K}GRAPH_TRACE": (
        "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, graphId INTEGER "
        "NOT NULL, graphExecId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER"
    ),
    f"{K}OVERHEAD": "start INTEGER, end INTEGER, overheadType INTEGER",
    "NVTX_EVENTS": (
        "start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, text TEXT, globalTid "
        "INTEGER, textId INTEGER, domainId INTEGER"
    ),
    "OSRT_API": "start INTEGER, end INTEGER, globalTid INTEGER, nameId INTEGER",
}
PID = 281_476_838_981_632
TID = PID | 7


class Nsys:
    """Rows of an nsys export; times in microseconds from the begin of the capture."""

    def __init__(self, *, old: bool = False) -> None:
        """``old``: as up to 2022, with another table about the export and no calls of ids."""
        self.rows: dict[str, list[dict[str, Any]]] = {}
        self.strings: dict[str, int] = {}
        self._old = old
        self._id = 0

    def string(self, text: str) -> int:
        return self.strings.setdefault(text, len(self.strings) + 1)

    def add(self, table: str, at: float, dur: float, **cells: Any) -> None:
        times = {"start": round(at * 1e3), "end": round((at + dur) * 1e3)}
        self.rows.setdefault(table, []).append(times | cells)

    def kernel(
        self,
        at: float,
        dur: float,
        name: str = GEMM,
        *,
        device: int = 0,
        stream: int = 7,
        launched: float | None = None,
        call: str = "cudaLaunchKernel_v7000",
        launch_us: float = 4.0,
    ) -> None:
        self._id += 1
        number = self.string(name)
        self.add(
            f"{K}KERNEL", at, dur, deviceId=device, contextId=1, streamId=stream,
            correlationId=self._id, globalPid=PID, demangledName=number, shortName=number,
        )  # fmt: skip
        if launched is not None:
            self.call(call, launched, launch_us, self._id)

    def call(self, name: str, at: float, dur: float, correlation: int | None = None) -> None:
        self.add(
            f"{K}RUNTIME", at, dur, eventClass=0, globalTid=TID, correlationId=correlation,
            nameId=self.string(name), returnValue=0,
        )  # fmt: skip

    def copy(
        self, at: float, dur: float, size: int, kind: int, src: int = 1, *, device: int = 0
    ) -> None:
        self.add(
            f"{K}MEMCPY", at, dur, deviceId=device, contextId=1, streamId=9, correlationId=None,
            globalPid=PID, bytes=size, copyKind=kind, srcKind=src, dstKind=2,
        )  # fmt: skip

    def range(self, text: str, at: float, dur: float, *, registered: bool = False) -> None:
        name = {"textId": self.string(text)} if registered else {"text": text}
        self.add("NVTX_EVENTS", at, dur, eventType=59, globalTid=TID, **name)

    def wait(self, name: str, at: float, dur: float) -> None:
        self.add("OSRT_API", at, dur, globalTid=TID, nameId=self.string(name))

    def write(self, path: Path) -> Path:
        """Write the export as SQLite."""
        database = sqlite3.connect(path)
        about = "EXPORT_META_DATA" if self._old else "META_DATA_EXPORT"
        database.execute(f"CREATE TABLE {about} (name TEXT, value TEXT)")
        database.execute(f"INSERT INTO {about} VALUES ('EXPORT_PRODUCT_VERSION', '2026.2.1')")
        database.execute("CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT)")
        database.executemany(
            "INSERT INTO StringIds VALUES (?, ?)", [(n, t) for t, n in self.strings.items()]
        )
        for table, rows in self.rows.items():
            columns = _TABLES[table]
            if self._old:
                columns = columns.replace(", graphNodeId INTEGER", "")
            database.execute(f"CREATE TABLE {table} ({columns})")
            _insert(database, table, rows)
        database.commit()
        database.close()
        return path


def _insert(database: sqlite3.Connection, table: str, rows: Sequence[dict[str, Any]]) -> None:
    names = list(dict.fromkeys(name for row in rows for name in row))
    marks = ", ".join("?" * len(names))
    quoted = ", ".join(f'"{name}"' for name in names)
    database.executemany(
        f"INSERT INTO {table} ({quoted}) VALUES ({marks})",
        [[row.get(name) for name in names] for row in rows],
    )


def export_parquet(database: Path, folder: Path) -> Path:
    """Write every table of a database as ``nsys export --type parquetdir`` does."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir()
    source = sqlite3.connect(database)
    tables = [row[0] for row in source.execute("SELECT name FROM sqlite_master WHERE type='table'")]
    for table in tables:
        cursor = source.execute(f'SELECT * FROM "{table}"')
        names = [column[0] for column in cursor.description]
        rows = cursor.fetchall()
        columns = {name: [row[k] for row in rows] for k, name in enumerate(names)}
        pq.write_table(pa.table(columns), folder / f"{table}.parquet")
    source.close()
    return folder


def chunks(data: bytes, size: int) -> Iterable[bytes]:
    """Yield data in pieces."""
    for start in range(0, len(data), size):
        yield data[start : start + size]
