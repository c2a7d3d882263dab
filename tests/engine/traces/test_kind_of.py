"""Which files are captures, and which only look like one."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.catalogue import Catalogue
from engine.errors import InputError
from engine.readers import read
from engine.traces import kind_of, needs_file

CHROME = (
    b'{"schemaVersion": 1, "deviceProperties": [{"id": 0}], "traceEvents": [',
    b'{\n  "schemaVersion": 1,\n  "distributedInfo": {"backend": "nccl", "pg_config": ['
    + b"9," * 9_000,
    b'{"traceEvents": [\n',
    b'\xef\xbb\xbf{"displayTimeUnit":"ns","metadata":{},"traceEvents":[',
    b'[\n{"name": "Asub", "cat": "PERF", "ph": "B", "pid": 22630, "tid": 22630, "ts": 829},',
    b'[{"ph":"X","pid":1,"ts":3}',
)
OTHERS = (
    b"",
    b"{",
    b"[",
    b'{"entries": [], "version": "2.9"}',
    b'{"level":"info","msg":"wrote \\"traceEvents\\": [ to disk"}\n{"level":"info"}',
    b'{"DCGM Diagnostic": {"test_categories": []}}',
    b'{"status":"success","data":{"resultType":"streams","result":[]}}',
    b'[{"metric": "x", "phase": "ph"}]',
    b"NVRM: Xid (PCI:0000:3b:00): 79, pid=1",
    b"SQLite format 3 is what the file should be\n",
    b"PARAMETERS\n",
)


@pytest.mark.parametrize("head", CHROME)
def test_chrome_traces(head: bytes) -> None:
    assert kind_of(head[:65_536], None) == "chrome_trace"
    assert not needs_file("chrome_trace")


@pytest.mark.parametrize("head", OTHERS)
def test_others(head: bytes) -> None:
    assert kind_of(head, "trace.json") is None


def test_by_their_first_bytes() -> None:
    assert kind_of(b"SQLite format 3\x00\x10\x00", "report") == "nsys_sqlite"
    assert kind_of(b"PAR1\x15\x04", None) == "parquet"
    assert needs_file("nsys_sqlite")
    assert needs_file("parquet")


@pytest.mark.parametrize("name", ["job.nsys-rep", "OLD.QDREP"])
def test_reports_are_refused_with_what_to_do(
    name: str, tmp_path: Path, catalogue: Catalogue
) -> None:
    path = tmp_path / name
    path.write_bytes(b"\x01\x02report")
    with pytest.raises(InputError) as caught:
        read(path, catalogue)
    assert "nsys export --type sqlite" in str(caught.value.hint)
