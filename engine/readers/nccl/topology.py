"""The XML that NCCL writes of one node (``NCCL_TOPO_DUMP_FILE``, ``NCCL_GRAPH_DUMP_FILE``).

``<system>`` holds ``<cpu>``, nested ``<pci>`` (bridges and devices, with ``link_speed`` and
``link_width``), ``<gpu>`` with ``<nvlink target count>`` (RCCL: ``<xgmi>``), ``<nic>`` and ``<net
speed>`` in Mb/s. Source: NVIDIA/nccl v2.30.7 src/graph/xml.cc, topo.cc.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final

from engine.readers.base import Context, Result
from engine.readers.nccl import topology_words
from engine.readers.nccl.messages import number as whole

_TAG = re.compile(r"<(?P<end>/?)(?P<name>[a-z0-9]{1,16})(?P<rest>[^<>]{0,1500}?)(?P<empty>/?)>")
_ATTRIBUTE = re.compile(r"([a-z_0-9]{1,24})=\"([^\"]{0,120})\"")
_LANES = re.compile(r"^(?P<speed>\d{1,3}(?:\.\d)?) ?GT/s")
_NESTED: Final = ("system", "cpu", "pci", "nic", "graphs", "graph")
_DEEPEST: Final = 32
_MOST: Final = 1_024
# A node has some hundred lines; what never ends is no topology.
_LONGEST: Final = 65_536
# So many lines that are no XML end a file that lacks its end.
_FOREIGN: Final = 2


@dataclass(slots=True)
class Gpu:
    """A GPU, its links and where it stands.

    Attributes:
        place: the bus ids and CPU above it, the innermost last.
        links: number of NVLinks (XGMI links), None if the file holds none for any GPU.
        pcie: generation speed in GT/s and lanes, None if the file does not say.
    """

    dev: str
    rank: int | None
    bus: str
    place: tuple[str, ...]
    line: int
    gdr: bool | None
    pcie: tuple[float, int] | None
    links: int = 0


@dataclass(slots=True)
class Nic:
    """A network device; ``speed_mbps`` as the file gives it."""

    name: str
    place: tuple[str, ...]
    line: int
    speed_mbps: int | None
    gdr: bool | None
    rdma: bool


@dataclass(slots=True)
class Topology:
    """What one file shows, bounded."""

    line: int
    gpus: list[Gpu] = field(default_factory=list)
    nics: list[Nic] = field(default_factory=list)
    cpus: int = 0
    switches: bool = False
    cut: bool = False
    paths: dict[tuple[str, str], int] = field(default_factory=dict)
    """Path types (inside, between nodes) of the graphs, with their line."""


class TopologyReader:
    """Reads topology and graph files of NCCL and RCCL."""

    triggers: ClassVar[tuple[bytes, ...]] = (b"<system version=", b"<graphs version=")

    def __init__(self, _context: Context) -> None:
        self.open = False
        self._done: list[Topology] = []
        self._now: Topology | None = None
        self._stack: list[tuple[str, Mapping[str, str]]] = []
        self._lines = self._foreign = 0

    def feed(self, number: int, text: str) -> bool:
        """Take one line of the file."""
        if self._now is None:
            if "<system version=" not in text and "<graphs version=" not in text:
                return False
            self._now = Topology(number)
            self._stack.clear()
            self._lines = self._foreign = 0
        seen = False
        for tag in _TAG.finditer(text):
            seen = True
            if self._now is not None:
                self._tag(self._now, number, tag)
        self._lines += 1
        self._foreign = 0 if seen or not text.strip() else self._foreign + 1
        if self._lines > _LONGEST or self._foreign > _FOREIGN:
            self._cut()
        self.open = self._now is not None
        return seen or not text.strip() or "<" in text

    def finish(self) -> Result:
        """Say what each file shows."""
        self._cut()
        return topology_words.result(self._done)

    def _cut(self) -> None:
        """Close a file that has no end: its last GPU, and the NICs, may lack what came there."""
        if self._now is not None:
            self._now.cut = True
            del self._now.gpus[-1:]
            self._close()

    def _close(self) -> None:
        if self._now is not None and len(self._done) < 256:
            self._done.append(self._now)
        self._now = None
        self.open = False

    def _tag(self, one: Topology, number: int, tag: re.Match[str]) -> None:
        name = tag["name"]
        if tag["end"]:
            if name in ("system", "graphs"):
                self._close()
            while self._stack and name in _NESTED:
                if self._stack.pop()[0] == name:
                    break
            return
        given = dict(_ATTRIBUTE.findall(tag["rest"]))
        self._element(one, number, name, given)
        if not tag["empty"] and name in _NESTED and len(self._stack) < _DEEPEST:
            self._stack.append((name, given))

    def _element(self, one: Topology, number: int, name: str, given: Mapping[str, str]) -> None:
        if name == "cpu":
            one.cpus += 1
        elif name == "pci":
            one.switches |= given.get("class", "") in ("0x060400", "0x60400")
        elif name == "gpu" and "sm" in given and len(one.gpus) < _MOST:
            one.gpus.append(self._gpu(number, given))
        elif name in ("nvlink", "xgmi") and one.gpus:
            one.gpus[-1].links += min(whole(given.get("count", "")) or 0, 1_024)
        elif name == "net" and "speed" in given and len(one.nics) < _MOST:
            one.nics.append(self._nic(number, given))
        elif name == "graph" and len(one.paths) < 64:
            inside, between = given.get("typeintra", ""), given.get("typeinter", "")
            if inside.isalnum() and between.isalnum():
                one.paths.setdefault((inside[:4], between[:4]), number)

    def _gpu(self, number: int, given: Mapping[str, str]) -> Gpu:
        pci = self._pci()
        lanes = _LANES.match(pci.get("link_speed", ""))
        width = whole(pci.get("link_width", ""))
        return Gpu(
            dev=given.get("dev", "?")[:8],
            rank=whole(given.get("rank", "")),
            bus=pci.get("busid", "")[:20],
            place=self._place(),
            line=number,
            gdr=_flag(given, "gdr"),
            pcie=(float(lanes["speed"]), width) if lanes and width else None,
        )

    def _nic(self, number: int, given: Mapping[str, str]) -> Nic:
        guid = given.get("guid", "0x0").removeprefix("0x").strip("0")
        return Nic(
            name=given.get("name", "?")[:40],
            place=self._place(),
            line=number,
            speed_mbps=whole(given["speed"]),
            gdr=_flag(given, "gdr"),
            rdma=bool(guid),
        )

    def _pci(self) -> Mapping[str, str]:
        return next((a for n, a in reversed(self._stack) if n == "pci"), {})

    def _place(self) -> tuple[str, ...]:
        return tuple(
            f"{n}{a.get('numaid' if n == 'cpu' else 'busid', '')}"
            for n, a in self._stack
            if n in ("cpu", "pci")
        )


def _flag(given: Mapping[str, str], name: str) -> bool | None:
    return {"0": False, "1": True}.get(given.get(name, ""))
