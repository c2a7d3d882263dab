"""How fast captures are read, and in how much memory, beside the least that it takes.

Times are CPU times of whole processes, less those of one that reads an empty capture: what else
runs on the machine then matters less.

Chrome traces: the peers walk the same file. `ijson` (yajl2_c) is a tokeniser that streams; orjson
is the fastest parser there is for Python, given here the same pieces of whole events that we give
it, and its objects dropped: nothing that looks at every event can be faster. The target is judged
by orjson. nsys exports: the peer is one SQL statement for each figure, run by sqlite3 itself.

``GPUWHY_BENCH_TRACE_MB`` sets the size of both files; the target holds for 1000 too.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from pathlib import Path

from benchmarks.cold import Cost, measure
from benchmarks.harness import Row
from benchmarks.traces import write_kineto, write_nsys

MEGABYTES = float(os.environ.get("GPUWHY_BENCH_TRACE_MB", "200"))
ROUNDS = 3
JSON_TARGET, SQL_TARGET = 2.0, 1.5
TARGET_MEMORY = 150 << 20
_READ = (
    "import sys; from pathlib import Path; from engine.catalogue import load_catalogue; "
    "from engine.readers import read; read(Path(sys.argv[1]), load_catalogue())"
)
_ORJSON = (
    "import sys; from pathlib import Path; from engine.readers.text import chunks_of; "
    "from engine.traces.jsonevents import EventFile; "
    "[0 for _ in EventFile(chunks_of(Path(sys.argv[1])), frozenset()).events()]"
)
_IJSON = (
    "import sys; from collections import deque; import ijson.backends.yajl2_c as ijson; "
    "deque(ijson.basic_parse(open(sys.argv[1], 'rb')), maxlen=0)"
)
_EMPTY = '{"schemaVersion": 1, "deviceProperties": [], "traceEvents": []}'
_KERNEL, _RUNTIME = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"
_NCCL = "(SELECT id FROM StringIds WHERE value LIKE 'nccl%')"
# Length, number of long gaps and idle time of a union of intervals.
_UNION = """
WITH marked AS (
  SELECT deviceId AS d, start AS s, end AS e, max(end) OVER (PARTITION BY deviceId ORDER BY start
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reach
  FROM {kernel} WHERE {where})
SELECT d, sum(max(e - max(s, ifnull(reach, s)), 0)), sum(s - reach > 1000000),
  sum(max(s - reach, 0))
FROM marked GROUP BY d
"""
STATEMENTS = (
    (
        "SELECT deviceId, shortName, count(*), sum(end - start), min(end - start), "
        f"max(end - start), sum(end - start < 50000) FROM {_KERNEL} GROUP BY 1, 2"
    ),
    _UNION.format(kernel=_KERNEL, where="1"),
    _UNION.format(kernel=_KERNEL, where=f"shortName IN {_NCCL}"),
    _UNION.format(kernel=_KERNEL, where=f"shortName NOT IN {_NCCL}"),
    f"SELECT nameId, count(*), sum(end - start), max(end - start) FROM {_RUNTIME} GROUP BY 1",
    (
        f"SELECT k.deviceId, avg(k.start - r.end > 10000) FROM {_KERNEL} k JOIN {_RUNTIME} r "
        "USING (correlationId) GROUP BY 1"
    ),
    (
        "SELECT text, count(*), sum(end - start), max(end - start) FROM NVTX_EVENTS "
        "WHERE text NOT GLOB '*::*, op_id = *' GROUP BY 1"
    ),
)
_SQL = (
    "import sys, sqlite3; from benchmarks.bench_traces import STATEMENTS; "
    "database = sqlite3.connect(f'file:{sys.argv[1]}?immutable=1', uri=True); "
    "[database.execute(one).fetchall() for one in STATEMENTS]"
)


def rows() -> list[Row]:
    """Read a Chrome trace and an nsys export, and let the peers do their part."""
    with tempfile.TemporaryDirectory() as folder:
        return [*_chrome(Path(folder)), *_nsys(Path(folder))]


def _python(code: str, *arguments: Path) -> list[str]:
    return [sys.executable, "-c", code, *map(str, arguments)]


def _chrome(folder: Path) -> list[Row]:
    file, empty = folder / "trace.json", folder / "empty.json"
    write_kineto(file, MEGABYTES * 1e6)
    empty.write_text(_EMPTY)
    streams = importlib.util.find_spec("ijson") is not None
    commands = [_python(_READ, file), _python(_READ, empty), _python(_ORJSON, file)]
    commands += [_python(_ORJSON, empty)]
    commands += [_python(_IJSON, file)] if streams else []
    ours, nothing, orjson, parsed_nothing, *ijson = measure(ROUNDS, *commands)
    took = ours.cpu - nothing.cpu
    least = orjson.cpu - parsed_nothing.cpu
    beside = f"orjson {least:.1f} s"
    if ijson:
        beside += f", ijson {ijson[0].cpu:.1f} s"
    megabytes = file.stat().st_size / 1e6
    file.unlink()
    return [
        Row(
            f"read, Chrome trace of {megabytes:.0f} MB",
            f"{took:.1f} s ({megabytes / took:.0f} MB/s)",
            beside,
            f"{took / least:.2f} x orjson",
            f"<= {JSON_TARGET:g} x",
            took <= JSON_TARGET * least,
        ),
        _memory("Chrome trace", ours, nothing),
    ]


def _nsys(folder: Path) -> list[Row]:
    file, empty = folder / "export.sqlite", folder / "empty.sqlite"
    write_nsys(file, MEGABYTES * 1e6)
    write_nsys(empty, 0)
    ours, nothing, sql, no_sql = measure(
        ROUNDS,
        _python(_READ, file),
        _python(_READ, empty),
        _python(_SQL, file),
        _python(_SQL, empty),
    )
    took, least = ours.cpu - nothing.cpu, sql.cpu - no_sql.cpu
    megabytes = file.stat().st_size / 1e6
    file.unlink()
    return [
        Row(
            f"read, nsys export of {megabytes:.0f} MB",
            f"{took:.1f} s ({megabytes / took:.0f} MB/s)",
            f"bare SQL {least:.1f} s",
            f"{took / least:.2f} x",
            f"<= {SQL_TARGET:g} x",
            took <= SQL_TARGET * least,
        ),
        _memory("nsys export", ours, nothing),
    ]


def _memory(what: str, ours: Cost, nothing: Cost) -> Row:
    return Row(
        f"read, {what}, peak memory",
        f"{ours.memory / 1e6:.0f} MB",
        f"empty one {nothing.memory / 1e6:.0f} MB",
        f"+ {(ours.memory - nothing.memory) / 1e6:.0f} MB",
        "< 150 MiB",
        ours.memory < TARGET_MEMORY,
    )
