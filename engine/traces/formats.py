"""The formats of captures: how each is told by its first bytes, and what reads it.

A further format is one more row, and a module that turns its files into a `Result`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from engine.errors import InputError
from engine.readers.base import Context, Result
from engine.readers.nccl_inspector import is_plugin_trace, read_plugin_trace
from engine.traces.figures import Limits
from engine.traces.judging import judge
from engine.traces.kineto import read_kineto
from engine.traces.model import Figures
from engine.traces.nsys import read_nsys
from engine.traces.parquet import ParquetTables
from engine.traces.tables import SqliteTables
from engine.traces.timeline import Timeline

Capture = Path | Iterable[bytes]
"""A file, or its bytes cut anywhere."""


@dataclass(frozen=True, slots=True)
class Format:
    """One format of captures.

    Attributes:
        kind: its id.
        claims: whether a file is of it: first bytes (up to 64 KiB, unpacked) and name.
        read: turns a capture into findings.
        whole: it must be a file on disk; chunks will not do.
    """

    kind: str
    claims: Callable[[bytes, str], bool]
    read: Callable[[Capture, Context], Result]
    whole: bool = False


_SQLITE, _PARQUET = b"SQLite format 3\x00", b"PAR1"
# `"traceEvents": [` not inside a text that quotes it.
_EVENTS = re.compile(rb'(?<!\\)"traceEvents"[ \t\r\n]{0,16}:[ \t\r\n]{0,16}\[')
_KINETO = re.compile(rb'(?<!\\)"(?:deviceProperties|distributedInfo|baseTimeNanoseconds)"')
# The bare array of events: its first element has a phase and a time or a process.
_ARRAY = re.compile(rb'\[\s{0,64}\{[^{}\[\]]{0,400}"ph"\s{0,8}:\s{0,8}"[A-Za-z]"')
_REPORTS = (".nsys-rep", ".qdrep", ".qdstrm")


def figures_of(source: Capture, kind: str, limits: Limits | None = None) -> Figures:
    """Return the figures of a capture of one of the timeline formats.

    Raises:
        InputError: it cannot be read, with what to do.
    """
    limits = limits or Limits()
    if kind == "chrome_trace":
        from engine.readers.text import chunks_of  # noqa: PLC0415 - both packages know each other

        return read_kineto(chunks_of(source) if isinstance(source, Path) else source, limits)
    assert isinstance(source, Path)
    tables = ParquetTables(source) if kind == "parquet" else SqliteTables(source)
    try:
        return read_nsys(tables, limits)
    finally:
        tables.close()


def _timeline(kind: str) -> Callable[[Capture, Context], Result]:
    def read(source: Capture, context: Context) -> Result:
        timeline = Timeline(context.catalogue)
        figures = figures_of(source, kind, timeline.limits)
        findings, causes, notes = judge(figures, timeline)
        return Result(kinds=[figures.source], findings=findings, causes=causes, notes=notes)

    return read


def _refuse_report(_source: Capture, _context: Context) -> NoReturn:
    raise InputError(
        "a report of Nsight Systems can be read by its own tools only",
        hint="export it: nsys export --type sqlite REPORT.nsys-rep",
    )


def _is_chrome(head: bytes, _name: str) -> bool:
    head = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if head.startswith(b"{"):
        start = head[:16_384]
        kineto = b'"schemaVersion"' in start and _KINETO.search(start) is not None
        return kineto or _EVENTS.search(head) is not None
    return _ARRAY.match(head) is not None and b'"pid"' in head


FORMATS: tuple[Format, ...] = (
    Format(
        "nsys_sqlite",
        lambda head, _: head.startswith(_SQLITE),
        _timeline("nsys_sqlite"),
        whole=True,
    ),
    Format(
        "parquet",
        lambda head, _: head.startswith(_PARQUET),
        _timeline("parquet"),
        whole=True,
    ),
    Format("nsys_report", lambda _, name: name.endswith(_REPORTS), _refuse_report),
    # Chrome's JSON as well, but of collectives alone.
    Format("nccl_profiler", lambda head, _: is_plugin_trace(head), read_plugin_trace),
    Format("chrome_trace", _is_chrome, _timeline("chrome_trace")),
)
