"""One line of an NCCL log: who printed it, at which level, where in the source, and the message.

Forms (NVIDIA/nccl src/debug.cc, v2.4 to v2.30; RCCL prints the same)::

    host:pid:tid [cudaDev] NCCL INFO text
    [YYYY-MM-DD HH:MM:SS] host:pid:tid [cudaDev] file.cc:334 (function) NCCL WARN text

Launchers and log collectors put labels before that, which may name the rank (``[rank3]:``,
``[1,3]<stdout>:``, ``3:`` of ``srun -l``) or the machine (``pdsh``). Any of it may be cut off.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

_MARK = re.compile(r"\b[NR]CCL (INFO|WARN|TRACE|CALL|VERSION|ERROR|ABORT) ?")
# The prefix of NCCL is shorter; a longer head is a progress bar or the like before it.
_HEAD = 600
# aws-ofi-nccl gives the function where NCCL gives the file.
_PLACE = re.compile(
    r"(?:^|[ \t])(?P<place>[^\s:]{1,300}\.(?:cc|h|hpp|cpp|c|cu|cuh):\d{1,7})"
    r"[ \t]*(?:\(\w{1,80}\))?[ \t]*$"
    r"|\][ \t]+(?P<function>\w{1,120}:\d{1,7})[ \t]*(?:\(\w{1,80}\))?[ \t]*$"
)
_WHO = re.compile(
    r"(?:(?P<host>[A-Za-z0-9][\w.-]{0,252}):(?P<pid>\d{1,10})(?::(?P<tid>\d{1,10}))?[ \t]*)?"
    r"(?:\[(?P<device>\d{1,3})\])?[ \t]*$"
)
_RANK = re.compile(
    r"\[rank(?P<torch>\d{1,6})\]:|\[\d{1,6},(?P<mpi>\d{1,6})\]<std|^\s{0,8}(?P<srun>\d{1,6}): "
)
_LABEL = re.compile(r"(?:^|[ \t])(?P<label>[A-Za-z0-9][A-Za-z0-9.-]{1,252}): ?$")
# A progress bar may stand before the label.
_LABEL_REACH: Final = 6_144


@dataclass(frozen=True, slots=True)
class NcclLine:
    """One line.

    Attributes:
        number: line of the input, from 1.
        text: the message; the whole line where it has no prefix of NCCL.
        level: ``INFO``, ``WARN`` …; empty without such a prefix.
        device: CUDA device of the printing thread, which is not the rank.
        place: ``file:line`` of the source that printed it, empty if not given.
        rank: global rank, where a label before the line names it.
        label: machine as named by a log collector, in front of NCCL's own prefix.
    """

    number: int
    text: str
    level: str = ""
    host: str | None = None
    pid: int | None = None
    device: int | None = None
    place: str = ""
    rank: int | None = None
    label: str | None = None


def parse(number: int, text: str) -> NcclLine:
    """Return a line with its prefix taken apart."""
    mark = _MARK.search(text)
    if mark is None:
        return NcclLine(number, text.strip(), rank=rank_of(text))
    head = text[max(0, mark.start() - _HEAD) : mark.start()]
    rank = rank_of(head)
    place = _PLACE.search(head)
    if place is not None:
        start = place.start("place") if place["place"] else place.start("function")
        head = head[:start].rstrip()
    who = _WHO.search(head)
    host = pid = device = None
    label = None
    if who is not None:
        host = who["host"]
        pid = int(who["pid"]) if who["pid"] else None
        device = int(who["device"]) if who["device"] else None
        found = _LABEL.search(head[: who.start()])
        label = found["label"] if found and not found["label"].isdigit() else None
    return NcclLine(
        number=number,
        text=text[mark.end() :].strip(),
        level=mark[1],
        host=host,
        pid=pid,
        device=device,
        place=(place["place"] or place["function"]) if place else "",
        rank=rank,
        label=label if label != host else None,
    )


def rank_of(text: str) -> int | None:
    """Return the global rank that a launcher's label at the start of a line names."""
    found = _RANK.search(text[:_LABEL_REACH])
    if found is None:
        return None
    return int(found["torch"] or found["mpi"] or found["srun"])


def host_of_head(head: str) -> str | None:
    """Return the machine in the part of a line before ``NCCL INFO``."""
    who = _WHO.search(head[-_HEAD:])
    return who["host"] if who else None


@dataclass(slots=True)
class Places:
    """Where a message was printed, however often: machines, CUDA devices and ranks, bounded."""

    LIMIT = 1_024

    line: int
    count: int = 0
    hosts: dict[str, set[int]] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    devices: set[int] = field(default_factory=set)
    ranks: set[int] = field(default_factory=set)

    def add(self, line: NcclLine) -> None:
        """Count one more line."""
        self.count += 1
        host = line.host or line.label
        if host and (host in self.hosts or len(self.hosts) < self.LIMIT):
            devices = self.hosts.setdefault(host, set())
            if line.device is not None and len(devices) < self.LIMIT:
                devices.add(line.device)
            if line.label and line.label != host:
                self.labels.setdefault(host, line.label)
        elif line.device is not None and len(self.devices) < self.LIMIT:
            self.devices.add(line.device)
        if line.rank is not None and len(self.ranks) < self.LIMIT:
            self.ranks.add(line.rank)

    @property
    def host(self) -> str | None:
        """The machine, if it is one only."""
        return next(iter(self.hosts)) if len(self.hosts) == 1 else None

    def words(self) -> str:
        """Return ``on n1 (10.0.0.1), CUDA device 4``; empty if the lines do not say."""
        if not self.hosts:
            return f"on {_devices(self.devices)}" if self.devices else ""
        if len(self.hosts) > 4:
            shown = list(self.hosts)[:4]
            return f"on {len(self.hosts)} hosts ({', '.join(shown)} …)"
        return "on " + "; ".join(
            host
            + (f" ({self.labels[host]})" if host in self.labels else "")
            + (f", {_devices(devices)}" if devices else "")
            for host, devices in self.hosts.items()
        )


def _devices(devices: set[int]) -> str:
    return f"CUDA device{'s' if len(devices) > 1 else ''} {listed(devices)}"


def listed(numbers: set[int] | list[int], limit: int = 12) -> str:
    """Return numbers in words, runs drawn together: ``0-3, 7``; the rest is counted."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    parts = [
        str(first)
        if first == last
        else f"{first}, {last}"
        if last == first + 1
        else f"{first}-{last}"
        for first, last in runs
    ]
    more = f" and {len(parts) - limit} more" if len(parts) > limit else ""
    return ", ".join(parts[:limit]) + more
