"""Reader of ``cpu.stat`` of a control group: how often its CPU quota stopped it.

Source: Linux kernel, Documentation/scheduler/sched-bwc.rst (version 1: ``throttled_time`` in ns),
Documentation/admin-guide/cgroup-v2.rst (``throttled_usec``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

from engine.model import Severity
from engine.readers.base import Result
from engine.readers.listing import Listing, at, finding, node, result_of
from engine.units import number

_LINE: Final = re.compile(
    r"^\s{0,4}(?:/\S{1,200}:)?(usage_usec|user_usec|system_usec|nr_periods|nr_throttled|"
    r"throttled_usec|throttled_time|nr_bursts|burst_usec|burst_time|core_sched\.\w{4,24}) "
    r"([0-9]{1,20})\s*$"
)
# Part of the periods, and fewest periods, from which the quota is what slows it: ours. A short
# burst is stopped now and then in any container with a quota.
SHARE: Final = 0.1
ENOUGH: Final = 100


@dataclass(slots=True)
class Stat:
    """One listing: counters by name."""

    line: int
    host: str | None
    values: dict[str, int] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """Time in which the group stood still, in s."""
        return self.values.get("throttled_usec", 0) / 1e6 + (
            self.values.get("throttled_time", 0) / 1e9
        )


class CpuQuotaReader(Listing[Stat]):
    """Reads the counters; two listings are compared."""

    triggers: ClassVar[tuple[bytes, ...]] = (
        b"nr_periods ",
        b"nr_throttled ",
        b"usage_usec ",
        b"user_usec ",
        b"system_usec ",
    )
    PATIENCE = 1

    _stat: Stat | None = None

    def take(self, number: int, text: str) -> bool:
        """Take a line of ``cpu.stat``."""
        found = _LINE.match(text)
        if found is None:
            return False
        if self._stat is None or found[1] in self._stat.values:
            self._stat = Stat(number, self.host)
            self.kept.add(self._stat)
        self._stat.values[found[1]] = int(found[2])
        self.inside = True
        return True

    def end(self) -> None:
        """Start afresh with the next listing."""
        self._stat = None

    def judge(self, records: Sequence[Stat]) -> Result:
        """Say in which part of its periods the group was stopped."""
        whole = [r for r in records if {"nr_periods", "nr_throttled"} <= r.values.keys()]
        if not whole:
            return Result()
        first, last = whole[0], whole[-1]
        before = first.values if len(whole) > 1 and first.host == last.host else {}
        periods = last.values["nr_periods"] - before.get("nr_periods", 0)
        stopped = last.values["nr_throttled"] - before.get("nr_throttled", 0)
        compared = bool(before) and periods > 0 and stopped >= 0
        if not compared:
            periods, stopped = last.values["nr_periods"], last.values["nr_throttled"]
        seconds = last.seconds - (first.seconds if compared else 0.0)
        share = stopped / periods if periods else 0.0
        bad = share >= SHARE and periods >= ENOUGH
        since = "between the two listings" if compared else "since the group was made"
        return result_of(
            ["cpu_quota"],
            [
                finding(
                    "cpu_quota",
                    "throttled" if bad else "not_throttled" if periods else "no_quota",
                    Severity.MEDIUM if bad else Severity.INFO,
                    f"{at(last.host)}"
                    + (
                        f"The CPU quota stopped this control group in {100 * share:.3g} % of "
                        f"{periods:,} periods {since}, {number(round(seconds, 1))} s in all."
                        if periods
                        else "This control group has no CPU quota: none of its periods is counted."
                    )
                    + (
                        " Its threads stand still for the rest of each period, also where the "
                        "host has idle cores."
                        if bad
                        else ""
                    ),
                    "Raise the quota (Kubernetes: resources.limits.cpu, or leave the limit out; "
                    "docker: --cpus), or start fewer threads (OMP_NUM_THREADS, num_workers)."
                    if bad
                    else "Nothing to do.",
                    line=last.line,
                    cause="cpu_quota_throttled" if bad else None,
                    data={
                        "periods": periods,
                        "throttled_periods": stopped,
                        "throttled_percent": round(100 * share, 2),
                        "throttled_s": round(seconds, 3),
                        "compared": compared,
                    },
                    entity=node(last.host),
                    sources=("Linux kernel, Documentation/scheduler/sched-bwc.rst",),
                )
            ],
        )
