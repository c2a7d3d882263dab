"""What other commands of IBM Storage Scale show: health, disks, space."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from engine.model import Finding, Severity
from engine.readers.listing import at, filesystem, finding, node
from engine.readers.quantities import listed, plural
from engine.units import number

SOURCES: Final = ("IBM Storage Scale documentation, mmhealth, mmlsdisk, mmdf",)
FULL, HARD_FULL = 90.0, 95.0


@dataclass(frozen=True, slots=True)
class Component:
    """A row of ``mmhealth``; ``rest`` is when it changed and why."""

    line: int
    host: str | None
    name: str
    status: str
    rest: str


@dataclass(frozen=True, slots=True)
class NodeState:
    """A row of ``mmgetstate``: the state of the daemon on a node."""

    line: int
    host: str | None
    node: str
    state: str


@dataclass(frozen=True, slots=True)
class Disk:
    """A row of ``mmlsdisk``."""

    line: int
    host: str | None
    name: str
    status: str
    availability: str


@dataclass(frozen=True, slots=True)
class Space:
    """A row of ``mmdf``: percent in use, or (None) a number of inodes."""

    line: int
    host: str | None
    name: str
    size: float
    used_percent: float | None


def _component_cause(one: Component) -> str | None:
    text = one.rest.lower()
    if any(
        word in text
        for word in ("no_space", "data_high", "meta_high", "inode_high", "_full", "inode_error")
    ):
        return "storage_full"
    if one.name.startswith("NETWORK"):
        return (
            "ib_link_down"
            if one.status == "FAILED" or "link_down" in text or "state_err" in text
            else None
        )
    if (
        one.name in ("GPFS", "FILESYSTEM", "FILESYSMGR", "DISK", "NATIVE_RAID", "NSD")
        or "waiter" in text
    ):
        return (
            "storage_slow"
            if one.status == "FAILED" or "waiter" in text or "disk" in text or "down" in text
            else None
        )
    return None


def judge_components(components: Sequence[Component]) -> Iterable[Finding]:
    """Say which components are not healthy, worst first."""
    bad = [c for c in components if c.status in ("FAILED", "DEGRADED")]
    for one in bad[:32]:
        yield finding(
            "mmhealth",
            one.name.lower(),
            Severity.HIGH if one.status == "FAILED" else Severity.MEDIUM,
            f"{at(one.host)}Storage Scale component {one.name} is {one.status}: {one.rest[:160]}.",
            f"mmhealth node show {one.name} -v names the events; mmhealth event show EVENT says "
            "what to do.",
            line=one.line,
            cause=_component_cause(one),
            data={"component": one.name, "status": one.status, "reasons": one.rest[:200]},
            entity=node(one.host),
            sources=SOURCES,
        )
    if components and not bad:
        other = [c for c in components if c.status not in ("HEALTHY", "TIPS", "DISABLED")]
        first = components[0]
        yield finding(
            "mmhealth",
            "healthy" if not other else "unknown",
            Severity.INFO,
            f"{at(first.host)}{plural(len(components), 'Storage Scale component')}: none FAILED or "
            "DEGRADED" + (f"; not known: {listed(c.name for c in other)}." if other else "."),
            "Health is no speed: mmdiag --waiters shows what waits.",
            line=first.line,
            data={"components": len(components)},
            entity=node(first.host),
            sources=SOURCES,
        )


def judge_states(nodes: Sequence[NodeState]) -> Iterable[Finding]:
    """Say on which nodes the daemon is not active; alone on one node it names no cause."""
    off = [n for n in nodes if n.state != "active"]
    waiting = sum(n.state == "arbitrating" for n in off)
    yield finding(
        "mmgetstate",
        "not_active" if off else "active",
        Severity.HIGH
        if waiting or len(off) > len(nodes) / 2
        else Severity.MEDIUM
        if off
        else Severity.INFO,
        (
            f"Storage Scale is not active on {plural(len(off), 'node')} of {len(nodes)}: "
            f"{listed(f'{n.node} ({n.state})' for n in off)}."
            + (
                " Arbitrating nodes wait for a quorum: nothing can be read there."
                if waiting
                else ""
            )
            if off
            else f"Storage Scale is active on all {plural(len(nodes), 'node')} of the listing."
        ),
        "mmgetstate -aL shows the quorum; /var/adm/ras/mmfs.log.latest on these nodes says why, "
        "then mmstartup -N NODE by the owner of the cluster."
        if off
        else "Health is no speed: mmdiag --waiters shows what waits.",
        line=(off or nodes)[0].line,
        cause="storage_slow" if waiting else None,
        data={"nodes": len(nodes), "not_active": [n.node for n in off[:64]] or None},
        entity=node(off[0].node) if len(off) == 1 else None,
        sources=("IBM Storage Scale documentation, mmgetstate",),
    )


def judge_disks(disks: Sequence[Disk]) -> Iterable[Finding]:
    """Say which disks are down or not ready."""
    down = [d for d in disks if d.availability != "up"]
    odd = [d for d in disks if d.availability == "up" and d.status != "ready"]
    if down:
        yield finding(
            "mmlsdisk",
            "disk_down",
            Severity.HIGH,
            f"{plural(len(down), 'disk')} not up: "
            f"{listed(f'{d.name} ({d.status}, {d.availability})' for d in down)}. Data on them is "
            "read from a replica, or not at all.",
            "Check the NSD servers and paths (mmlsnsd -X), then mmchdisk FS start -d DISK by the "
            "owner of the file system.",
            line=down[0].line,
            cause="storage_slow",
            data={"disks_down": [d.name for d in down[:64]], "disks": len(disks)},
            sources=SOURCES,
        )
    if odd:
        yield finding(
            "mmlsdisk",
            "disk_not_ready",
            Severity.LOW,
            f"{plural(len(odd), 'disk')} up but {odd[0].status}: {listed(d.name for d in odd)}. "
            "Nothing new is written there.",
            "Ask the owner of the file system whether that is meant.",
            line=odd[0].line,
            data={"disks_not_ready": [d.name for d in odd[:64]]},
            sources=SOURCES,
        )
    if disks and not down and not odd:
        yield finding(
            "mmlsdisk",
            "disks",
            Severity.INFO,
            "All disks of the listing are up and ready.",
            "Nothing to do here.",
            line=disks[0].line,
            data={"disks": sum(bool(d.name) for d in disks) or None},
            sources=SOURCES,
        )


def judge_space(rows: Sequence[Space]) -> Iterable[Finding]:
    """Say how full disks, pools and inodes are."""
    inodes = {r.name: r for r in rows if r.used_percent is None}
    used, most = inodes.get("number of used inodes"), inodes.get("maximum number of inodes")
    parts = [r for r in rows if r.used_percent is not None]
    if used and most and most.size:
        percent = 100 * used.size / most.size
        full = percent >= FULL
        yield finding(
            "mmdf",
            "inodes_full" if full else "inodes",
            Severity.HIGH if full else Severity.INFO,
            f"{number(round(percent, 1))} % of the inodes are in use ({used.size:,.0f} of "
            f"{most.size:,.0f}).",
            "mmchfs FS --inode-limit raises the limit; better pack small files."
            if full
            else "Nothing to do.",
            line=used.line,
            cause="storage_full" if full else None,
            data={"inodes_percent": round(percent, 2)},
            sources=SOURCES,
        )
    if not parts:
        return
    worst = max(parts, key=lambda r: r.used_percent or 0)
    total = next((r for r in reversed(parts) if r.name == "(total)"), None)
    percent = worst.used_percent or 0.0
    full = percent >= FULL
    yield finding(
        "mmdf",
        "full" if full else "room",
        Severity.HIGH if percent >= HARD_FULL else Severity.MEDIUM if full else Severity.INFO,
        f"{worst.name} is {number(percent)} % full"
        + (f"; the whole file system {number(total.used_percent or 0)} %." if total else "."),
        "Delete or move data; mmdf FS -P POOL shows a pool; a full pool stops writes placed there."
        if full
        else "Nothing to do.",
        line=worst.line,
        cause="storage_full" if full else None,
        data={
            "fullest": worst.name,
            "use_percent": percent,
            "total_percent": total.used_percent if total else None,
        },
        entity=filesystem("GPFS"),
        sources=SOURCES,
    )
