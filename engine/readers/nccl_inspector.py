"""Records of NCCL's profiler plugins: how long collectives took, and who comes late.

Inspector's records are read line by line, the trace of the example plugin as a whole. The figures
are those of ``gpuwhy nccl stats`` (`engine.nccl`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from engine.model import Confidence, Finding, Severity, Step
from engine.nccl.inspector import parse_record, record_of
from engine.nccl.model import GroupFigures, NcclStats, Straggler
from engine.nccl.promtext import PromText
from engine.nccl.records import Record
from engine.nccl.say import size_class, time
from engine.nccl.summary import summary
from engine.nccl.tally import Tally
from engine.readers.base import Context, Result
from engine.readers.documents import DocumentKind
from engine.readers.joint import Document

KIND: Final = "nccl_inspector"
TRACE_KIND: Final = "nccl_profiler"
_SOURCES: Final = {
    KIND: "NVIDIA/nccl 2.30.7 plugins/profiler/inspector",
    TRACE_KIND: "NVIDIA/nccl 2.30.7 plugins/profiler/example",
}
# The first events of the example plugin's trace, or of its first release.
_TRACE_MARKS = (b'"cat": "GROUP_API"', b'"CommHash"')
_MOST_GROUPS = 8
_MOST_STRAGGLERS = 16
# Ranks whose first line is kept.
_MOST_RANKS = 65_536

_Lines = dict[tuple[str, int | None], int]
"""Where the first record of a rank of a communicator stands."""


class NcclInspectorReader:
    """Reads Inspector's JSON lines, and its text for node_exporter."""

    triggers: ClassVar[tuple[bytes, ...]] = (
        b'"coll_perf"',
        b'"p2p_perf"',
        b"nccl_bus_bandwidth_gbs{",
        b"nccl_collective_exec_time_microseconds{",
        b"nccl_p2p_bus_bandwidth_gbs{",
        b"nccl_p2p_exec_time_microseconds{",
    )
    # A file holds one rank: who comes late shows only beside the files of the others.
    together: ClassVar[bool] = True

    def __init__(self, _context: Context) -> None:
        self.open = False
        self._tally = Tally()
        self._text = PromText()
        self._seen = False
        self._cut = 0
        self._lines: _Lines = {}

    def feed(self, number: int, text: str) -> bool:
        """Take a record; what a log collector put before it is skipped."""
        if '_perf"' not in text:
            return self._metric(number, text)
        start = text.find("{")
        if start < 0 or text.lstrip().startswith('"'):
            return False  # a line of a record that was pretty-printed
        record = parse_record(text[start:])
        if record is None:
            self._cut += 1
        else:
            self._add(record, number)
        self._seen = True
        return True

    def finish(self) -> Result:
        """Say how long collectives took."""
        if not self._seen:
            return Result()
        result = _result(summary(self._tally, unread_lines=self._cut), self._lines)
        if self._cut:
            result.notes.append(
                f"{self._cut} record(s) of NCCL Inspector are cut off or damaged and were left out."
            )
        return result

    def _metric(self, number: int, text: str) -> bool:
        if not text.lstrip().startswith("nccl_"):
            return False
        for record in self._text.feed(text.strip().encode("utf-8", "replace")):
            self._add(record, number)
        self._seen = True
        return True

    def _add(self, record: Record, number: int) -> None:
        self._tally.add(record)
        if len(self._lines) < _MOST_RANKS:
            self._lines.setdefault((record.comm, record.rank), number)


def _detect(value: object) -> bool:
    one = value[0] if isinstance(value, list) and value else value
    return isinstance(one, dict) and ("coll_perf" in one or "p2p_perf" in one)


def _records(value: Any) -> list[Record]:
    ones = value if isinstance(value, list) else (value,)
    return [record for one in ones if (record := record_of(one)) is not None]


def _together(documents: Sequence[Document], _context: Context) -> Result:
    tally = Tally()
    lines: _Lines = {}
    single = len({one.name for one in documents}) == 1
    for document in documents:
        for record in document.value:
            tally.add(record)
            if single and len(lines) < _MOST_RANKS:
                lines.setdefault((record.comm, record.rank), document.line)
    return _result(summary(tally), lines)


INSPECTOR_RECORD: Final = DocumentKind(KIND, _detect, None, together=_together, slim=_records)
"""A record that was pretty-printed, or a list of records (``jq -s``)."""


def is_plugin_trace(head: bytes) -> bool:
    """Whether a file is a trace of NCCL's example profiler plugin, by its first bytes."""
    return head.lstrip()[:1] == b"[" and any(mark in head for mark in _TRACE_MARKS)


def read_plugin_trace(source: Path | Iterable[bytes], _context: Context) -> Result:
    """Return what a trace of NCCL's example profiler plugin shows.

    Raises:
        InputError: it cannot be read.
    """
    from engine.nccl.files import Given, tally_of  # noqa: PLC0415 - it imports this package

    tally = Tally()
    tally_of([Given("the trace", source)], tally)
    result = _result(summary(tally), {}, TRACE_KIND)
    if not tally.records:
        result.notes.append("The trace of NCCL's profiler plugin holds no collective that ended.")
    return result


def _result(stats: NcclStats, lines: _Lines, kind: str = KIND) -> Result:
    findings = [
        _late(one, lines.get((one.comm, one.entity.rank)), kind)
        for one in stats.stragglers[:_MOST_STRAGGLERS]
    ]
    findings += [_durations(one, _line_of(one, lines), kind) for one in stats.groups[:_MOST_GROUPS]]
    result = Result([kind], findings, list(dict.fromkeys(f.cause for f in findings if f.cause)))
    result.notes += stats.notes
    result.notes += _left_out(stats)
    return result


def _line_of(one: GroupFigures, lines: _Lines) -> int | None:
    """Return where a group stands that is of one rank; one of several stands in no single place."""
    if len(one.by_rank) + one.left_out != 1:
        return None
    return lines.get((one.comm, one.by_rank[0].rank))


def _left_out(stats: NcclStats) -> Iterator[str]:
    if any(c.missing_count for c in stats.communicators):
        yield (
            "Ranks are compared where the files of all are given together, here or to: "
            "gpuwhy nccl stats FILE… or a folder."
        )
    more = len(stats.groups) - _MOST_GROUPS
    if more > 0:
        yield (
            f"{more} more groups of communicator, collective and size took less time in all; "
            "gpuwhy nccl stats FILE --json has them."
        )


def _late(one: Straggler, line: int | None, kind: str) -> Finding:
    likely = one.confidence is not Confidence.POSSIBLE
    data: dict[str, Any] = {
        "rank": one.entity.rank,
        "host": one.entity.host,
        "gpu": one.entity.gpu,
        "communicator": one.comm_name or one.comm,
        "operations": one.operations,
        "last_percent": round(100 * one.last_share, 1),
        "duration_ratio": one.ratio,
        "wait_us": one.wait_us,
        "wait_percent": round(100 * one.wait_share, 1),
        "confidence": str(one.confidence),
    }
    return Finding(
        kind=kind,
        id="straggler",
        severity=Severity.MEDIUM if likely else Severity.LOW,
        says=one.says,
        action=" ".join(_step(step) for step in one.next),
        entity=one.entity,
        line=line,
        cause="straggler",
        data={key: value for key, value in data.items() if value is not None},
        sources=(_SOURCES[kind],),
    )


def _step(step: Step) -> str:
    return f"{step.do.rstrip('.')}: {step.command}." if step.command else step.do


def _durations(one: GroupFigures, line: int | None, kind: str) -> Finding:
    over = f" over {one.ranks} ranks" if one.ranks else ""
    what = "average" if one.averages else "operation"
    number = f"{one.count} {what}{'' if one.count == 1 else 's'}"
    spread = one.duration_us
    says = (
        f"{one.collective} of {size_class(one)}{over} (communicator {one.comm_name or one.comm}): "
        f"{number}, median {time(spread.p50)}, 99 % within {time(spread.p99)}"
    )
    if one.busbw_gbs is not None:
        says += f", median bus bandwidth {one.busbw_gbs:.4g} GB/s"
    best = one.busbw_moving_gbs
    if best is not None and one.busbw_gbs is not None and best > 1.05 * one.busbw_gbs:
        says += f" ({best:.4g} GB/s on the rank that waited least)"
    data: dict[str, Any] = {
        "collective": one.collective,
        "communicator": one.comm_name or one.comm,
        "ranks": one.ranks,
        "nodes": one.nodes,
        "size_bytes": one.size_max,
        "operations": one.count,
        "p50_us": spread.p50,
        "p99_us": spread.p99,
        "max_us": spread.max,
        "busbw_gbs": one.busbw_gbs,
        "busbw_moving_gbs": best,
        "timing_source": ", ".join(one.timing) or None,
    }
    return Finding(
        kind=kind,
        id="durations",
        severity=Severity.INFO,
        says=says + ".",
        action="",
        entity=None,
        line=line,
        cause=None,
        data={key: value for key, value in data.items() if value is not None},
        sources=(_SOURCES[kind],),
    )
