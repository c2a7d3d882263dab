"""Lists of nodes, or of pairs of nodes, with one bus bandwidth each: which node stands out.

``node07,node12  49.4`` below a line that says what the figures are. A node that is slow with every
partner is the bad one (NVIDIA/nccl-tests issue 106).
"""

from __future__ import annotations

import re
from statistics import median

from engine.model import Entity, Finding, Kind, Severity
from engine.readers.nccl_tests.verdict import DEGRADED, HEALTHY, gbs, share

_HOST = r"[A-Za-z][A-Za-z0-9_.-]{0,61}[A-Za-z0-9]"
_JOIN = r"[ \t]{0,4}(?:,|\+|&|/|<-{0,2}>|-{1,2}>|\u2194|[ \t]-[ \t]|\bvs\b|\band\b)[ \t]{0,4}"
_FIGURE = r"(\d{1,4}(?:\.\d{1,4})?)(?![\d.:]|[ \t]?(?:us|ms|%|Gb|[KMG]i?B\b(?!/)))"
_PAIR = re.compile(rf"(?<![\w.-])({_HOST}){_JOIN}({_HOST})[ \t:=|]{{1,40}}{_FIGURE}")
_ONE = re.compile(rf"^[ \t|*#-]{{0,8}}({_HOST})[ \t:=|]{{1,40}}{_FIGURE}[ \t|]{{0,8}}(?:GB/s)?\s*$")
_HEADER = re.compile(
    r"\b(?:bus[ _-]?bw|bus[ _-]?bandwidth|nccl-tests|\w{4,20}_perf)\b", re.IGNORECASE
)
_PAIRED = re.compile(r"\bpairs?\b|\bpairwise\b|\b(?:two|2)[ -]nodes?\b|\bbetween\b", re.IGNORECASE)
_EACH = re.compile(
    r"\b(?:per|each|every|by|all|single)[ -](?:node|host|server|machine)s?\b|\bnode by node\b",
    re.IGNORECASE,
)
# Below this share of the best pair, or of the median node, an entry is slow (site default: wider
# than the 5-10 % by which runs of sound nodes differ).
_SLOW = 0.85
_MOST, _SKIPPED, _SHOWN = 4_096, 2, 8
_SOURCES = ("NVIDIA/nccl-tests issue 106", "GoogleCloudPlatform/cluster-health-scanner 81c525d")


class Lists:
    """Collects the entries of a list; ``open`` while the next line may be one."""

    def __init__(self) -> None:
        self.open = False
        self._line = 0
        self._paired = self._single = False
        self._misses = 0
        self._entries: list[tuple[tuple[str, ...], float]] = []

    def announce(self, number: int, text: str) -> bool:
        """Look whether a line says that a list follows."""
        if not _HEADER.search(text):
            return False
        paired, single = _PAIRED.search(text) is not None, _EACH.search(text) is not None
        if paired or single:
            self._paired, self._single = paired, single and not paired
            self.open, self._misses = True, 0
            self._line = self._line or number
        return paired or single

    def feed(self, number: int, text: str) -> bool:
        """Take a line of the list."""
        if not self.open:
            return False
        found: list[tuple[tuple[str, ...], float]] = [
            ((a, b), float(v)) for a, b, v in _PAIR.findall(text[:1024])
        ]
        if not found and self._single and (one := _ONE.match(text[:256])):
            found = [((one[1],), float(one[2]))]
        found = [(who, value) for who, value in found if _named(who)]
        if not found:
            self._misses += bool(text.strip())
            self.open = self._misses <= _SKIPPED
            return False
        self._line, self._misses = self._line or number, 0
        self._entries += found[: _MOST - len(self._entries)]
        return True

    def finding(self, kind: str) -> Finding | None:
        """Return what the list shows, None where there is too little of it."""
        entries = self._entries
        if len(entries) < (2 if self._paired else 3):
            return None
        values = [value for _, value in entries]
        good = max(values) if self._paired else median(values)
        slow = [(who, value) for who, value in entries if value < _SLOW * good]
        cleared = {host for who, value in entries if value >= _SLOW * good for host in who}
        suspects = list(dict.fromkeys(h for who, _ in slow for h in who if h not in cleared))
        what = "pairs of nodes" if self._paired else "nodes"
        data: dict[str, object] = {
            "verdict": DEGRADED if slow else HEALTHY,
            "entries": len(entries),
            "peak_busbw_gbs": max(values),
            "slowest_busbw_gbs": min(values),
            "slow_nodes": suspects[:64],
        }
        if not slow:
            says = (
                f"None of the {len(entries)} {what} stands out: {gbs(min(values))} to "
                f"{gbs(max(values))} GB/s bus bandwidth."
            )
            return Finding(
                kind=kind,
                id=HEALTHY,
                severity=Severity.INFO,
                says=says,
                action="Nothing to do.",
                entity=None,
                line=self._line,
                cause="healthy",
                data=data,
                sources=_SOURCES,
            )
        return Finding(
            kind=kind,
            id=DEGRADED,
            severity=Severity.HIGH,
            says=self._says(slow, suspects, good),
            action=_action(suspects, paired=self._paired),
            entity=Entity(Kind.NODE, suspects[0], host=suspects[0]) if len(suspects) == 1 else None,
            line=self._line,
            cause="ib_link_degraded" if self._paired else "straggler",
            data=data,
            sources=_SOURCES,
        )

    def _says(
        self, slow: list[tuple[tuple[str, ...], float]], suspects: list[str], good: float
    ) -> str:
        shown = ", ".join(f"{'-'.join(who)} {gbs(value)}" for who, value in slow[:_SHOWN])
        more = f" and {len(slow) - _SHOWN} more" if len(slow) > _SHOWN else ""
        worst = min(value for _, value in slow)
        names = ", ".join(suspects[:_SHOWN])
        if not self._paired:
            return (
                f"Slow: {shown}{more} GB/s bus bandwidth, down to {share(worst, good)} of the "
                f"median node ({gbs(good)} GB/s). The fault is on that node, not in the fleet."
            )
        said = (
            f"{len(slow)} of {len(self._entries)} pairs of nodes are slow: {shown}{more} GB/s bus "
            f"bandwidth, down to {share(worst, good)} of the best pair ({gbs(good)} GB/s)."
        )
        if not suspects:
            return (
                f"{said} Each of these nodes is fast with another partner, so the path between "
                "them (a leaf or spine link, routing) is suspect, not a node."
            )
        if len(suspects) == 1:
            return f"{said} All have {names} in them and its partners are fast with others."
        return f"{said} None of {names} was fast with any partner: pair them anew to tell which."


def _named(who: tuple[str, ...]) -> bool:
    """Whether words can be names of hosts: those have a digit, or a hyphen."""
    return all(any(c.isdigit() for c in host) or "-" in host for host in who)


def _action(suspects: list[str], *, paired: bool) -> str:
    where = suspects[0] if len(suspects) == 1 else "the slow nodes"
    if not paired:
        return (
            f"On {where}: nvidia-smi nvlink -s and -e, nvidia-smi -q -d PERFORMANCE, nvidia-smi "
            "topo -m and the kernel log, each beside a good node; keep it out of jobs until then."
        )
    return (
        f"On {where}: ibstat (every card Active at full rate), perfquery -x, lspci -vvv (width and "
        "speed of the card's slot, ACS), nvidia-smi topo -m, and NCCL_TOPO_DUMP_FILE beside that "
        "of a good node; keep it out of jobs until then. Half of the figure is what one of two "
        "cards, or a slot at half width, leaves."
    )
