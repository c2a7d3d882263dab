"""Durations as Prometheus histograms, with bounded label sets.

A histogram, not a summary: quantiles of several ranks and of any window can be had from it, and
``_sum`` over ``_count`` is the exact mean of a rank, which is what stragglers are told by. Beside
it ``…_bus_bytes_total`` counts bytes on the bus, so that its rate over that of ``_sum`` is the mean
bus bandwidth.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from engine.nccl.follow import Follower
from engine.nccl.records import COLLECTIVES, Record, bucket

LABELS: Final = ("rank", "size_bytes", "comm", "nranks", "node", "slurm_job_id")
BUCKETS_S: Final = (
    *(20e-6, 50e-6, 100e-6, 200e-6, 500e-6, 1e-3, 2e-3, 5e-3),
    *(10e-3, 20e-3, 50e-3, 100e-3, 500e-3, 2.0, 10.0),
)
"""Upper bounds in seconds, three a decade where collectives usually are."""

OTHER: Final = "other"
_KNOWN = {name: name.lower() for name in COLLECTIVES}
_MOST = {"rank": 1_024, "comm": 64, "node": 256, "slurm_job_id": 16}
# Sizes from 2^0 to 2^44 bytes (16 TiB).
_LARGEST = 1 << 44


@dataclass(slots=True)
class _Histogram:
    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS_S) + 1))
    sum_s: float = 0.0
    bus_bytes: float = 0.0
    seen_at: float = 0.0


Series = tuple[str, ...]


class Durations(Collector):
    """Collects histograms from records.

    Attributes:
        records: counted so far.
        folded: how often a label's value became ``other``, by label.
        dropped: records in no series, as there were too many label sets.
        forgotten: label sets that were dropped for age.
    """

    def __init__(self, *, most_series: int = 2_000, forget_after_s: float = 1_800.0) -> None:
        """Start empty.

        Args:
            most_series: label sets kept, each with 18 lines of text.
            forget_after_s: a label set without a record for so long is dropped, so that finished
                jobs make room.
        """
        self._most = most_series
        self._forget_s = forget_after_s
        self._found: dict[str, dict[Series, _Histogram]] = {}
        self._values: dict[str, dict[str, int]] = {label: {} for label in _MOST}
        self._series = 0
        self.records = 0
        self.folded = dict.fromkeys(_MOST, 0)
        self.dropped = 0
        self.forgotten = 0

    def add(self, record: Record, now: float) -> None:
        """Count a record.

        Args:
            record: one measured operation; averages are not durations and are not taken.
            now: seconds of a clock that only goes forward, for forgetting.
        """
        self.records += 1
        if record.mean:
            self.dropped += 1
            return
        name = _KNOWN.get(record.collective, OTHER)
        series = self._found.setdefault(name, {})
        key = self._key(record)
        one = series.get(key)
        if one is None:
            if self._series >= self._most:
                self.dropped += 1
                return
            self._series += 1
            one = series[key] = _Histogram()
            for label, value in zip(LABELS, key, strict=True):
                if label in self._values:
                    known = self._values[label]
                    known[value] = known.get(value, 0) + 1
        seconds = record.duration_us / 1e6
        one.counts[bisect_left(BUCKETS_S, seconds)] += 1
        one.sum_s += seconds
        one.bus_bytes += (record.busbw or 0.0) * 1e9 * seconds
        one.seen_at = now

    def forget(self, now: float) -> None:
        """Drop label sets that had no record for long."""
        for series in self._found.values():
            old = [k for k, one in series.items() if now - one.seen_at > self._forget_s]
            for key in old:
                del series[key]
                for label, value in zip(LABELS, key, strict=True):
                    known = self._values.get(label)
                    if known is not None and value in known:
                        known[value] -= 1
                        if not known[value]:
                            del known[value]
            self._series -= len(old)
            self.forgotten += len(old)

    def collect(self) -> Iterator[Metric]:
        """Yield the families; called for every scrape."""
        for name in sorted(self._found):
            durations = HistogramMetricFamily(
                f"nccl_{name}_duration_seconds",
                f"Time of {name} on a rank, waiting for other ranks included.",
                labels=LABELS,
            )
            moved = CounterMetricFamily(
                f"nccl_{name}_bus_bytes",
                f"Bytes that {name} put on the bus, by NCCL's bus bandwidth.",
                labels=LABELS,
            )
            for key, one in sorted(self._found[name].items()):
                durations.add_metric(key, buckets=_cumulative(one.counts), sum_value=one.sum_s)
                if one.bus_bytes:
                    moved.add_metric(key, one.bus_bytes)
            yield durations
            yield moved
        yield from self._own()

    def _own(self) -> Iterator[Metric]:
        yield CounterMetricFamily("gpuwhy_nccl_records", "Records read.", value=float(self.records))
        folded = CounterMetricFamily(
            "gpuwhy_nccl_folded",
            f"Values of a label that became {OTHER}, because there were too many.",
            labels=("label",),
        )
        for label, count in sorted(self.folded.items()):
            folded.add_metric((label,), float(count))
        yield folded
        yield CounterMetricFamily(
            "gpuwhy_nccl_dropped_records",
            "Records in no series: too many label sets, or averages.",
            value=float(self.dropped),
        )
        yield GaugeMetricFamily(
            "gpuwhy_nccl_label_sets", "Label sets kept.", value=float(self._series)
        )
        yield CounterMetricFamily(
            "gpuwhy_nccl_forgotten_label_sets",
            "Label sets dropped because nothing came for long.",
            value=float(self.forgotten),
        )

    def _key(self, record: Record) -> Series:
        rank = "" if record.rank is None else str(record.rank)
        size = min(bucket(record.size), _LARGEST)
        return (
            self._bounded("rank", rank),
            str(size),
            self._bounded("comm", record.comm_name or record.comm),
            "" if record.ranks is None else str(min(record.ranks, 1 << 20)),
            self._bounded("node", (record.where or "").partition(":")[0]),
            self._bounded("slurm_job_id", record.job or ""),
        )

    def _bounded(self, label: str, value: str) -> str:
        known = self._values[label]
        if value in known or not value or len(known) < _MOST[label]:
            return value
        self.folded[label] += 1
        return OTHER


class Following(Collector):
    """Tells how far a follower is, and what it could not read."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower

    def collect(self) -> Iterator[Metric]:
        """Yield the families; called for every scrape."""
        counts = self._follower.counts
        for name, about, value in (
            ("files", "Files that are followed.", counts.files),
            ("other_files", "Files that hold no records.", counts.other),
            ("unreadable_files", "Files that cannot be read now.", len(counts.errors)),
            ("left_out_files", "Files beyond the most that are followed.", counts.left_out),
            ("backlog_bytes", "Bytes that are there and not read yet.", self._follower.backlog),
        ):
            yield GaugeMetricFamily(f"gpuwhy_nccl_{name}", about, value=float(value))
        for name, about, value in (
            ("lines", "Lines read.", counts.lines),
            ("bad_lines", "Lines that should have held a record and did not.", counts.bad),
            ("rotated_files", "Files that were replaced by a new one.", counts.rotated),
            ("truncated_files", "Files that began anew.", counts.truncated),
            ("gone_files", "Files that were deleted.", counts.gone),
        ):
            yield CounterMetricFamily(f"gpuwhy_nccl_{name}", about, value=float(value))


def _cumulative(counts: list[int]) -> list[tuple[str, float]]:
    total = 0
    made = []
    for bound, count in zip((*map(floatToGoString, BUCKETS_S), "+Inf"), counts, strict=True):
        total += count
        made.append((bound, float(total)))
    return made
