"""Reader of ``iperf3``, text and JSON (esnet/iperf src/iperf_api.c, iperf_locale.c)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from engine.model import Finding, Severity
from engine.readers.base import Context, Result
from engine.readers.documents import DocumentKind
from engine.readers.listing import Listing, at, finding, node, result_of
from engine.readers.network.tcp import LOSS
from engine.readers.quantities import size_bytes
from engine.units import number

_SUMMARY: Final = re.compile(
    r"^\s{0,4}\[\s{0,3}(SUM|[0-9]{1,3})\](?:\[[A-Z-]{2,6}\])?"
    r"\s{1,6}0\.00-([0-9]{1,7}\.[0-9]{2})\s{1,4}sec\s{1,8}"
    r"([0-9.]{1,10} [KMGT]?Bytes)\s{1,8}([0-9.]{1,10}) ([KMGT]?)bits/sec"
    r"(?:\s{1,10}[0-9.]{1,12} ms\s{1,8}([0-9]{1,15})/([0-9]{1,15}) \([^)]{1,16}\))?"
    r"(?:\s{1,8}([0-9]{1,12}))?\s{1,24}(sender|receiver)\s*$"
)
_ERROR: Final = re.compile(r"^\s{0,4}iperf3: error - (.{1,160})$")
_SCALE: Final = {"": 1e-9, "K": 1e-6, "M": 1e-3, "G": 1.0, "T": 1e3}
# Segment of an Ethernet frame of 1500 bytes: jumbo frames make fewer, so a share is a lower bound.
_SEGMENT: Final = 1_448


@dataclass(frozen=True, slots=True)
class Run:
    """One summary line, or an error. ``gbps`` is Gb/s; lost and total are UDP datagrams."""

    line: int
    host: str | None
    stream: str
    role: str
    seconds: float = 0.0
    sent_bytes: float = 0.0
    gbps: float = 0.0
    retransmits: int | None = None
    lost: int | None = None
    total: int | None = None
    error: str | None = None


class Iperf3Reader(Listing[Run]):
    """Reads the summary lines; intervals in between are skipped."""

    triggers: ClassVar[tuple[bytes, ...]] = (b"bits/sec", b"iperf3: error")

    def take(self, number: int, text: str) -> bool:
        """Take a line of ``iperf3``."""
        error = _ERROR.match(text)
        if error:
            self.kept.add(Run(number, self.host, "", "error", error=error[1]))
            return True
        summary = _SUMMARY.match(text)
        if summary is None:
            return "bits/sec" in text and text.lstrip().startswith("[")
        self.kept.add(
            Run(
                number,
                self.host,
                summary[1],
                summary[9],
                float(summary[2]),
                size_bytes(summary[3].replace(" ", "")) or 0.0,
                float(summary[4]) * _SCALE[summary[5]] if summary[4].count(".") < 2 else 0.0,
                int(summary[8]) if summary[8] else None,
                int(summary[6]) if summary[6] else None,
                int(summary[7]) if summary[7] else None,
            )
        )
        return True

    def judge(self, records: Sequence[Run]) -> Result:
        """Say what the transfer reached, and what was lost on the way."""
        found = [_failed(run) for run in records if run.error]
        whole = [r for r in records if r.stream == "SUM"] or [r for r in records if not r.error]
        receivers = [r for r in whole if r.role == "receiver"]
        senders = [r for r in whole if r.role == "sender"]
        for receiver in receivers or senders:
            sender = next(
                (s for s in senders if s.stream == receiver.stream and s.host == receiver.host),
                None,
            )
            found.append(
                _transfer(
                    receiver,
                    sender,
                    sum(r.role == "receiver" and r.stream != "SUM" for r in records),
                )
            )
        return result_of(["iperf3"] if found else [], found)


def _failed(run: Run) -> Finding:
    text = run.error or ""
    refused = "refused" in text or "unable to connect" in text
    return finding(
        "iperf3",
        "failed",
        Severity.LOW,
        f"{at(run.host)}iperf3 did not run: "
        + (
            "nothing answers at that address and port."
            if refused
            else "the server is busy with another test."
            if "busy" in text
            else "it ended with an error."
        ),
        "Start iperf3 -s on the other host, and check that port 5201 is open between them."
        if refused
        else "Repeat the test.",
        line=run.line,
        entity=node(run.host),
        sources=("esnet/iperf src/iperf_error.c",),
    )


def _transfer(run: Run, sender: Run | None, streams: int) -> Finding:
    retransmits = sender.retransmits if sender else run.retransmits
    share = None
    if retransmits is not None and sender and sender.sent_bytes:
        share = retransmits * _SEGMENT / sender.sent_bytes
    lost = run.lost / run.total if run.lost is not None and run.total else None
    bad = max(share or 0.0, lost or 0.0) >= LOSS
    parts = []
    if retransmits is not None:
        parts.append(
            f"{retransmits:,} segments sent again"
            + (f" (about {100 * share:.2g} %)" if share else "")
        )
    if lost is not None:
        parts.append(f"{run.lost:,} of {run.total:,} datagrams lost ({100 * lost:.2g} %)")
    return finding(
        "iperf3",
        "transfer",
        Severity.MEDIUM if bad else Severity.INFO,
        f"{at(run.host)}iperf3: {number(round(run.gbps, 3))} Gb/s "
        f"({number(round(run.gbps / 8, 3))} GB/s) over {number(run.seconds)} s"
        + (f" with {streams} streams" if streams > 1 else "")
        + (f", {' and '.join(parts)}" if parts else "")
        + "."
        + (" That is loss on the path." if bad else "")
        + (
            ""
            if streams > 1 or run.gbps > 40 or lost is not None
            else " One TCP stream is one core's work and seldom fills a fast link: more streams "
            "(-P 8) show what the path can do."
        ),
        "Look at drops on the path: ethtool -S, ip -s link, switch ports."
        if bad
        else "Compare with the link rate (ethtool); RDMA traffic of NCCL takes another path, which "
        "ib_write_bw tests.",
        line=run.line,
        cause="network_congestion" if bad else None,
        data={
            "gbps": round(run.gbps, 4),
            "gbs": round(run.gbps / 8, 4),
            "seconds": run.seconds,
            "streams": streams or None,
            "retransmits": retransmits,
            "share_retransmitted": round(share, 6) if share is not None else None,
            "share_lost": round(lost, 6) if lost is not None else None,
        },
        entity=node(run.host),
        sources=("esnet/iperf documentation",),
    )


def _is_iperf3(value: object) -> bool:
    start = value.get("start") if isinstance(value, dict) else None
    return isinstance(start, dict) and str(start.get("version", "")).startswith("iperf 3")


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and abs(value) < 1e30 else 0.0


def _read(value: Mapping[str, Any], _context: Context, line: int) -> Result:
    if isinstance(value.get("error"), str):
        return result_of(
            ["iperf3"], [_failed(Run(line, None, "", "error", error=value["error"][:160]))]
        )
    end = value.get("end")
    end = end if isinstance(end, dict) else {}
    raw_streams = end.get("streams")
    runs: dict[str, Run] = {}
    for role, keys in (("sender", ("sum_sent", "sum")), ("receiver", ("sum_received", "sum"))):
        held = next((end[k] for k in keys if isinstance(end.get(k), dict)), None)
        if held is None:
            continue
        lost, packets = held.get("lost_packets"), held.get("packets")
        retransmits = held.get("retransmits")
        runs[role] = Run(
            line,
            None,
            "SUM",
            role,
            _number(held.get("seconds")),
            _number(held.get("bytes")),
            _number(held.get("bits_per_second")) / 1e9,
            retransmits if isinstance(retransmits, int) else None,
            lost if isinstance(lost, int) else None,
            packets if isinstance(packets, int) else None,
        )
    if not runs:
        return Result(kinds=["iperf3"])
    run = runs.get("receiver") or runs["sender"]
    streams = len(raw_streams) if isinstance(raw_streams, list) else 0
    return result_of(["iperf3"], [_transfer(run, runs.get("sender"), streams)])


IPERF3_JSON = DocumentKind("iperf3", _is_iperf3, _read)
