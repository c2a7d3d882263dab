"""What Lustre's counters show: RPC histograms, statistics of a client, settings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from engine.model import Finding, Severity
from engine.readers.listing import at, finding, node
from engine.readers.quantities import listed, plural
from engine.readers.storage.lctl_parameter import SOURCES, Parameter
from engine.units import number, quantity

_STAT: Final = re.compile(
    r"^\s{0,4}([\w.]{2,40})\s{1,40}([0-9]{1,20}) samples \[([a-z]{2,8})\](?:"
    r"\s{1,8}([0-9]{1,20})\s{1,8}([0-9]{1,20})\s{1,8}([0-9]{1,24}))?"
)
_HISTOGRAM: Final = re.compile(
    r"^\s{0,4}([0-9]{1,12})([KM]?):\s{1,24}([0-9]{1,20})\s{1,8}[0-9]{1,3}\s{1,8}[0-9]{1,3}"
    r"\s{1,8}\|\s{1,12}([0-9]{1,20})\s"
)
_TIME: Final = re.compile(r"^\s{0,4}snapshot_time:?\s{1,40}([0-9]{1,12}\.[0-9]{1,9})")
_SMALL_PAGES: Final = 16


def _sections(lines: Sequence[str]) -> dict[str, list[tuple[int, int, int]]]:
    """Return histograms by heading: (bucket, reads, writes)."""
    found: dict[str, list[tuple[int, int, int]]] = {}
    name = ""
    for text in lines:
        row = _HISTOGRAM.match(text.expandtabs() + " ")
        if row:
            scale = {"": 1, "K": 1_024, "M": 1_048_576}[row[2]]
            found.setdefault(name, []).append((int(row[1]) * scale, int(row[3]), int(row[4])))
        elif " rpcs " in text or " count " in text:
            name = text.strip().partition("  ")[0].strip().lower()
    return found


def judge_rpcs(parameters: Sequence[Parameter]) -> Iterable[Finding]:
    """Say how large RPCs were, and how many were under way at a time."""
    reads = writes = small_reads = small_writes = full = busy = 0
    for one in parameters:
        sections = _sections(one.lines)
        for pages, r, w in sections.get("pages per rpc", []):
            reads, writes = reads + r, writes + w
            if pages < _SMALL_PAGES:
                small_reads, small_writes = small_reads + r, small_writes + w
        for flying, r, w in sections.get("rpcs in flight", []):
            busy += r + w
            full += (r + w) if flying >= 8 else 0
    if not reads + writes:
        return
    first = parameters[0]
    small = (small_reads + small_writes) / (reads + writes)
    crowded = full / busy if busy else 0.0
    notes = []
    if small >= 0.5:
        notes.append(
            f"{100 * small:.0f} % of the RPCs carry less than 64 KiB: small or scattered I/O, "
            "which no Lustre does fast"
        )
    if crowded >= 0.5:
        notes.append(
            f"{100 * crowded:.0f} % were sent with 8 or more in flight, the default limit "
            "(max_rpcs_in_flight): the client's window may be what bounds it"
        )
    yield finding(
        "lctl",
        "rpc_stats",
        Severity.LOW if notes else Severity.INFO,
        f"{at(first.host)}{reads:,} read and {writes:,} write RPCs on "
        f"{plural(len(parameters), 'target')} since the counters were cleared. "
        + ("; ".join(notes) + "." if notes else "Most are large and the window is not full."),
        "Write and read large blocks in sequence, pack small samples into shards."
        if small >= 0.5
        else "lctl set_param osc.*.max_rpcs_in_flight=16 (owner of the client), then measure again."
        if notes
        else "Nothing to do here.",
        line=first.line,
        data={
            "read_rpcs": reads,
            "write_rpcs": writes,
            "small_rpc_share": round(small, 4),
            "eight_in_flight_share": round(crowded, 4),
        },
        entity=node(first.host),
        sources=SOURCES,
    )


def judge_statistics(parameters: Sequence[Parameter]) -> Iterable[Finding]:
    """Say what was read and written; of two listings, at which rate."""
    by_device: dict[tuple[str | None, str, str], list[Parameter]] = {}
    for one in parameters:
        by_device.setdefault((one.host, one.group, one.device), []).append(one)
    for (host, group, device), takes in by_device.items():
        first, last = _figures(takes[0]), _figures(takes[-1])
        seconds = last.get("time", 0) - first.get("time", 0) if len(takes) > 1 else 0.0
        compared = seconds > 0 and all(last.get(k, v) >= v for k, v in first.items())
        moved = {
            way: last.get(f"{way}_bytes.sum", 0)
            - (first.get(f"{way}_bytes.sum", 0) if compared else 0)
            for way in ("read", "write")
        }
        calls = {
            way: last.get(f"{way}_bytes", 0) - (first.get(f"{way}_bytes", 0) if compared else 0)
            for way in ("read", "write")
        }
        if not any(calls.values()) and not last:
            continue
        parts = []
        data: dict[str, object] = {"device": device, "compared": compared}
        for way in ("read", "write"):
            if not calls[way]:
                continue
            mean = moved[way] / calls[way]
            rate = f", {quantity(moved[way] / seconds, 'B/s')}" if compared else ""
            parts.append(
                f"{way} {number(moved[way] / 1e9)} GB in {number(calls[way])} calls of "
                f"{number(mean / 1024)} KiB on average{rate}"
            )
            data[f"{way}_gb"] = round(moved[way] / 1e9, 6)
            data[f"{way}_mean_bytes"] = round(mean)
            if compared:
                data[f"{way}_gbs"] = round(moved[way] / seconds / 1e9, 6)
        yield finding(
            "lctl",
            "stats",
            Severity.INFO,
            f"{at(host)}{group}.{device}: "
            + (f"in {number(round(seconds, 1))} s " if compared else "")
            + (", ".join(parts) or "no reads or writes counted")
            + ("." if compared else ". Totals since the counters were cleared are no rate."),
            "Compare the rate with the client's NIC and with another node."
            if compared
            else "Take it twice, some seconds apart: the difference over the snapshot times is the "
            "rate. lctl set_param llite.*.stats=clear starts from zero.",
            line=takes[-1].line,
            data=data,
            entity=node(host),
            sources=SOURCES,
        )


def _figures(parameter: Parameter) -> dict[str, float]:
    found: dict[str, float] = {}
    for text in parameter.lines:
        time, stat = _TIME.match(text), _STAT.match(text)
        if time:
            found["time"] = float(time[1])
        elif stat:
            found[stat[1]] = float(stat[2])
            if stat[6]:
                found[f"{stat[1]}.sum"] = float(stat[6])
    return found


def judge_settings(settings: Sequence[Parameter]) -> Finding:
    """List settings, and name those that differ between targets."""
    values: dict[str, list[str]] = {}
    for one in settings:
        held = values.setdefault(one.name, [])
        if one.value[:24] not in held and len(held) < 8:
            held.append(one.value[:24])
    differ = [name for name, held in values.items() if len(held) > 1]
    return finding(
        "lctl",
        "settings",
        Severity.INFO,
        f"{at(settings[0].host)}Lustre settings: "
        f"{listed(f'{name} = {listed(held)}' for name, held in list(values.items())[:12])}."
        + (f" {listed(differ)} differ between targets." if differ else ""),
        "Compare with a client that is fast.",
        line=settings[0].line,
        data={
            "settings": {
                name: held[0] if len(held) == 1 else held
                for name, held in list(values.items())[:64]
            }
        },
        entity=node(settings[0].host),
        sources=SOURCES,
    )
