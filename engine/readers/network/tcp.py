"""Readers of TCP retransmission counts: ``netstat -s``, ``nstat`` and ``ss -ti``.

Totals of a host since boot say little; of two listings the difference is taken. Linux kernel,
Documentation/networking/snmp_counter.rst; iproute2 misc/ss.c.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from engine.model import Finding, Severity
from engine.readers.base import Result
from engine.readers.listing import Listing, at, finding, node, result_of
from engine.readers.quantities import plural

# Share of segments sent again from which loss is a fault, and fewest segments to say so: ours.
# TCP loses packets on a healthy path when it fills it; that stays far below one in a hundred.
LOSS: Final = 0.01
ENOUGH: Final = 10_000

_NETSTAT: Final = re.compile(
    r"^\s{1,8}([0-9]{1,20}) segments (sent out|send out|retransmitted|retransmited)\s*$"
)
_NSTAT: Final = re.compile(
    r"^#?(TcpOutSegs|TcpRetransSegs)\s{1,40}([0-9]{1,20})\s{1,20}[0-9.]{1,20}\s*$"
)
_OTHER: Final = re.compile(
    r"^#kernel\s*$|^[A-Z]\w{2,60}\s{1,40}[0-9]{1,20}\s{1,20}[0-9.]{1,20}\s*$"
)
_SENT: Final = re.compile(r" bytes_sent:([0-9]{1,20})(?= |$)")
_AGAIN: Final = re.compile(r" bytes_retrans:([0-9]{1,20})(?= |$)")
_RTT: Final = re.compile(r" rtt:([0-9]{1,9}(?:\.[0-9]{1,6})?)/")


@dataclass(slots=True)
class Totals:
    """Segments of a host, sent and sent again."""

    line: int
    host: str | None
    sent: int | None = None
    again: int | None = None


class TcpTotalsReader(Listing[Totals]):
    """Reads two counters out of ``netstat -s`` or ``nstat``."""

    triggers: ClassVar[tuple[bytes, ...]] = (
        b"#kernel",
        b" segments sen",
        b" segments retransmit",
        b"TcpOutSegs",
        b"TcpRetransSegs",
    )

    def take(self, number: int, text: str) -> bool:
        """Take one of the lines with the two counters."""
        netstat = _NETSTAT.match(text)
        nstat = None if netstat else _NSTAT.match(text)
        if netstat:
            sent, value = netstat[2].startswith("sen"), int(netstat[1])
        elif nstat:
            sent, value = nstat[1] == "TcpOutSegs", int(nstat[2])
        else:
            self.inside = self.inside or text.rstrip() == "#kernel"
            return self.inside and bool(_OTHER.match(text))
        last = self.kept.items[-1] if self.kept.items else None
        if (
            last is None
            or last.host != self.host
            or (last.sent if sent else last.again) is not None
        ):
            last = Totals(number, self.host)
            self.kept.add(last)
        if sent:
            last.sent = value
        else:
            last.again = value
        return True

    def judge(self, records: Sequence[Totals]) -> Result:
        """Say which part of the segments was sent again."""
        hosts: dict[str | None, list[Totals]] = {}
        for one in records:
            if one.sent is not None and one.again is not None:
                hosts.setdefault(one.host, []).append(one)
        found = [f for takes in hosts.values() if (f := _segments(takes)) is not None]
        return result_of(["tcp_counters"] if found else [], found)


def _segments(takes: Sequence[Totals]) -> Finding | None:
    first, last = takes[0], takes[-1]
    sent, again = last.sent or 0, last.again or 0
    compared = len(takes) > 1 and (first.sent or 0) <= sent and (first.again or 0) <= again
    if compared:
        sent, again = sent - (first.sent or 0), again - (first.again or 0)
    if not sent:
        return None
    share = again / sent
    bad = compared and share >= LOSS and sent >= ENOUGH
    when = "between the two listings" if compared else "since boot, on all connections together"
    return finding(
        "tcp_counters",
        "retransmissions",
        Severity.MEDIUM if bad else Severity.INFO,
        f"{at(last.host)}{again:,} of {sent:,} TCP segments ({100 * share:.2g} %) were sent again "
        f"{when}." + (" That is loss on the path." if bad else ""),
        "Find the connections with ss -ti (bytes_retrans), then look at drops and errors on the "
        "path: ethtool -S, ip -s link, the switch ports."
        if bad
        else "Totals are no rate: take it twice under load (nstat prints the difference since its "
        "last run).",
        line=last.line,
        cause="network_congestion" if bad else None,
        data={
            "segments_sent": sent,
            "segments_retransmitted": again,
            "share_retransmitted": round(share, 8),
            "compared": compared,
        },
        entity=node(last.host),
        sources=("Linux kernel, Documentation/networking/snmp_counter.rst",),
    )


@dataclass(frozen=True, slots=True)
class Connection:
    """Bytes of one connection, and its round trip in ms."""

    line: int
    host: str | None
    sent: int
    again: int
    rtt_ms: float | None


class SsReader(Listing[Connection]):
    """Reads the lines with details of ``ss -ti``; addresses are not kept."""

    triggers: ClassVar[tuple[bytes, ...]] = (b" cwnd:",)

    def take(self, number: int, text: str) -> bool:
        """Take the line under a connection."""
        if " cwnd:" not in text or " rtt:" not in text:
            return False
        sent, again, rtt = _SENT.search(text), _AGAIN.search(text), _RTT.search(text)
        self.kept.add(
            Connection(
                number,
                self.host,
                int(sent[1]) if sent else 0,
                int(again[1]) if again else 0,
                float(rtt[1]) if rtt else None,
            )
        )
        return True

    def judge(self, records: Sequence[Connection]) -> Result:
        """Say which part of the bytes was sent again."""
        sent = sum(c.sent for c in records)
        again = sum(c.again for c in records)
        if not sent:
            return Result(kinds=["ss"])
        worst = max(records, key=lambda c: (c.again, -c.line))
        share = again / sent
        bad = share >= LOSS and sent >= 10_000 * 1_460
        return result_of(
            ["ss"],
            [
                finding(
                    "ss",
                    "retransmissions",
                    Severity.MEDIUM if bad else Severity.INFO,
                    f"{plural(len(records), 'connection')}: {again:,} of {sent:,} bytes "
                    f"({100 * share:.2g} %) were sent again"
                    + (
                        f"; most on the connection in line {worst.line} ({worst.again:,} bytes)."
                        if worst.again
                        else "."
                    ),
                    "Look at drops and errors on the path of that connection: ethtool -S, ip -s "
                    "link, the switch ports."
                    if bad
                    else "Nothing here points at loss.",
                    line=worst.line,
                    cause="network_congestion" if bad else None,
                    data={
                        "connections": len(records),
                        "bytes_sent": sent,
                        "bytes_retransmitted": again,
                        "share_retransmitted": round(share, 8),
                        "rtt_ms": worst.rtt_ms,
                    },
                    entity=node(worst.host),
                    sources=("iproute2 ss(8)",),
                )
            ],
        )
