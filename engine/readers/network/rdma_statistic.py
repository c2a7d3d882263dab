"""Readers of ``rdma statistic`` (text, ``-p``, JSON) and of counters in sysfs.

Sources: iproute2 rdma/stat.c; Linux kernel, drivers/infiniband/core/sysfs.c
(/sys/class/infiniband/DEVICE/ports/PORT/counters and hw_counters).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from engine.readers.base import Context, Result
from engine.readers.documents import DocumentKind
from engine.readers.listing import Kept, Listing, result_of
from engine.readers.network.counter_changes import Take
from engine.readers.network.counter_facts import CounterFacts
from engine.readers.network.counters import judge_counters
from engine.readers.quantities import short

_START = re.compile(r"^\s{0,4}link ([\w.-]{1,63}/[0-9]{1,3})(?=\s|$)")
_PAIR = re.compile(r"([A-Za-z][\w.]{2,47}) ([0-9]{1,20})(?=\s|$)")
_SYSFS = re.compile(
    r"(?:/sys/class/infiniband/)?([\w.-]{1,63})/ports/([0-9]{1,3})/(?:hw_)?counters/(\w{3,48}):"
    r"\s?([0-9]{1,20})\s*$"
)


class RdmaStatisticReader(Listing[Take]):
    """Reads one line a port, or one line a counter under the port."""

    triggers: ClassVar[tuple[bytes, ...]] = (b"rx_write_requests ", b"link mlx5_")
    pattern: ClassVar[bytes] = rb"/ports/[0-9]+/(?:hw_)?counters/|link [\w-]+/[0-9]+ [a-z_]+ [0-9]"
    PATIENCE = 1

    _current: Take | None = None

    def take(self, number: int, text: str) -> bool:
        """Take a line of ``rdma statistic`` or of ``grep . …/counters/*``."""
        sysfs = _SYSFS.search(text[-240:])
        if sysfs:
            self._sysfs(number, sysfs)
            return True
        start = _START.match(text)
        if start:
            pairs = _PAIR.findall(text[start.end() :])
            if not pairs and text[start.end() :].strip():
                return False
            self._current = Take(number, start[1], self.host)
            self.inside = True
            self._add(pairs)
            return True
        if not self.inside or self._current is None or not text.startswith((" ", "\t")):
            return False
        pairs = _PAIR.findall(text)
        self._add(pairs)
        return bool(pairs)

    def judge(self, records: Sequence[Take]) -> Result:
        """Say what the counters show."""
        return _judge(records, self.context)

    def _add(self, pairs: Sequence[tuple[str, str]]) -> None:
        take = self._current
        if take is None or not pairs:
            return
        if not take.values:
            self.kept.add(take)
        for name, value in pairs:
            take.add(name, int(value))

    def _sysfs(self, number: int, found: re.Match[str]) -> None:
        name = f"{found[1]}/{found[2]}"
        # A counter that comes again starts the second listing.
        if self._current is None or self._current.name != name or found[3] in self._current.values:
            self._current = Take(number, name, self.host)
        self._add([(found[3], found[4])])


def _judge(records: Sequence[Take], context: Context) -> Result:
    facts = CounterFacts(context.catalogue)
    # hw_counters and counters of one port may be listed one after the other.
    return result_of(
        ["rdma_statistic"],
        judge_counters("rdma_statistic", _joined(records), facts, "rdma statistic"),
    )


def _joined(records: Sequence[Take]) -> list[Take]:
    """Put listings of one port with different counters together into one."""
    whole: dict[tuple[str | None, str | None], Take] = {}
    out: list[Take] = []
    for take in records:
        before = whole.get((take.host, take.name))
        if before is not None and not before.values.keys() & take.values.keys():
            before.values |= take.values
            continue
        whole[take.host, take.name] = take
        out.append(take)
    return out


def _is_statistic(value: object) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(one, dict) for one in value)
        and "ifname" in value[0]
        and "port" in value[0]
        and any(
            isinstance(v, int) and k.endswith(("_err", "_requests", "_sent"))
            for k, v in value[0].items()
        )
    )


def _read(value: Sequence[Mapping[str, Any]], context: Context, line: int) -> Result:
    takes: Kept[Take] = Kept()
    for one in value:
        take = Take(
            line, f"{short(str(one.get('ifname', '')))}/{short(str(one.get('port', '')), 4)}"
        )
        for name, count in one.items():
            if (
                isinstance(count, int)
                and not isinstance(count, bool)
                and name not in ("ifindex", "port")
            ):
                take.add(short(str(name), 48), count)
        takes.add(take)
    return _judge(takes.items, context)


RDMA_STATISTIC_JSON = DocumentKind("rdma_statistic", _is_statistic, _read)
