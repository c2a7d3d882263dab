"""Reader of ``iblinkinfo``, with or without ``-l`` (rdma-core, infiniband-diags/iblinkinfo.c)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from engine.model import Finding, Severity
from engine.readers.base import Result
from engine.readers.listing import Listing, finding, result_of
from engine.readers.network.port import SOURCES
from engine.readers.quantities import decimal, integer, listed, plural, short

_NODE: Final = re.compile(r"^\s{0,4}(CA|Switch|Router): (?:0x[0-9a-f]{1,16} )?(.{1,80}?):\s*$")
_LINK: Final = re.compile(
    r"^\s{0,14}(?:(?P<guid>0x[0-9a-f]{1,16})\s{1,12})?(?:\"(?P<owner>[^\"]{0,80})\"\s{1,8})?"
    r"(?P<lid>[0-9]{1,5})\s{1,5}(?P<port>[0-9]{1,3})\[.{0,3}\]\s{1,4}==\(\s{0,20}"
    r"(?:(?P<width>[0-9]{1,2})X\s{1,12}(?P<gbps>[0-9]{1,4}(?:\.[0-9]{1,5})?) Gbps )?"
    r"(?:\([A-Z0-9]{2,6}\) )?\s{0,20}(?P<state>[A-Z][a-z]{2,12})(?: \([A-Z0-9]{2,6}\))?/"
    r"\s{0,4}(?P<physical>[A-Za-z]{4,24})\)==>(?P<rest>.{0,240})$"
)
_PEER: Final = re.compile(r"\[.{0,3}\]\s{1,4}\"([^\"]{0,80})\"")
_COULD: Final = re.compile(r"Could be ([0-9]{1,2})X|Could be ([0-9]{1,4}(?:\.[0-9]{1,5})?) Gbps")


@dataclass(frozen=True, slots=True)
class Link:
    """One end of a link; ``lane_gbps`` and ``could_gbps`` are Gb/s a lane."""

    line: int
    owner: str
    kind: str
    port: int
    width: int | None
    lane_gbps: float | None
    state: str
    physical: str
    peer: str
    could_width: int | None
    could_gbps: float | None

    @property
    def name(self) -> str:
        """Both ends, for sentences."""
        end = f"{self.owner} port {self.port}"
        return f"{end} to {self.peer}" if self.peer else end


class IblinkinfoReader(Listing[Link]):
    """Reads one line a port; the owner stands in a line above, or in front with ``-l``."""

    triggers: ClassVar[tuple[bytes, ...]] = (b")==>",)
    pattern: ClassVar[bytes] = rb"(?m)^(?:CA|Switch|Router): [^\n]{1,90}:\s*$"
    PATIENCE = 4

    _kind = "CA"
    _owner = ""

    def take(self, number: int, text: str) -> bool:
        """Take a line of ``iblinkinfo``."""
        link = _LINK.match(text)
        if link:
            self.inside = True
            self.kept.add(self._link(number, link))
            return True
        owner = _NODE.match(text)
        if owner is None:
            return False
        self.inside = True
        self._kind, self._owner = owner[1], short(owner[2])
        return True

    def judge(self, records: Sequence[Link]) -> Result:
        """Say which links could be faster, and what the others have."""
        return result_of(["iblinkinfo"], [*_slow(records), *_overview(records)])

    def _link(self, number: int, found: re.Match[str]) -> Link:
        rest = found["rest"]
        peer = _PEER.search(rest)
        could = _COULD.findall(rest)
        widths = [int(w) for w, _ in could if w]
        speeds = [s for _, s in could if s]
        return Link(
            number,
            short(found["owner"]) if found["owner"] else self._owner or "the node",
            self._kind,
            int(found["port"]),
            integer(found["width"] or ""),
            decimal(found["gbps"] or ""),
            found["state"],
            found["physical"],
            short(peer[1]) if peer else "",
            widths[0] if widths else None,
            decimal(speeds[0]) if speeds else None,
        )


def _slow(links: Sequence[Link]) -> Iterable[Finding]:
    # Both ends of a link are listed; 12X is what the specification allows, no cable has it.
    slow = [
        link
        for link in links
        if link.could_gbps or (link.could_width and (link.width or 0) < link.could_width <= 4)
    ]
    if not slow:
        return
    first = slow[0]
    have = f"{first.width}X {first.lane_gbps:g} Gb/s a lane" if first.lane_gbps else "slower"
    could = " ".join(
        part
        for part in (
            f"{first.could_width}X" if first.could_width and first.could_width <= 4 else "",
            f"{first.could_gbps:g} Gb/s a lane" if first.could_gbps else "",
        )
        if part
    )
    yield finding(
        "iblinkinfo",
        "link_slow",
        Severity.HIGH,
        f"{plural(len(slow), 'link end')} below what both ends support: "
        f"{listed(link.name for link in slow)}. {first.name} has {have} and could have {could}.",
        "Reseat or swap the cable of each link, or lift a speed limit that was set on the switch "
        "port; mlxlink -d DEVICE -m -c at the host's end shows what the cable supports.",
        line=first.line,
        cause="ib_link_degraded",
        data={
            "device": first.owner,
            "port": first.port,
            "peer": first.peer or None,
            "width": first.width,
            "lane_gbps": first.lane_gbps,
            "could_be_width": first.could_width,
            "could_be_lane_gbps": first.could_gbps,
            "links_slow": len(slow),
        },
        sources=SOURCES,
    )


def _overview(links: Sequence[Link]) -> Iterable[Finding]:
    up = Counter(
        f"{link.width}X {link.lane_gbps:g} Gb/s a lane"
        for link in links
        if link.physical == "LinkUp" and link.lane_gbps and link.width
    )
    waiting = [x for x in links if x.physical == "LinkUp" and x.state not in ("Active", "Down")]
    down = sum(link.state == "Down" for link in links)
    if waiting:
        yield finding(
            "iblinkinfo",
            "link_not_active",
            Severity.HIGH,
            f"{listed(link.name for link in waiting)}: the physical link is up, the state is "
            f"{waiting[0].state}: the subnet manager has not brought it to Active.",
            "Check the subnet manager (sminfo) and its log for this port.",
            line=waiting[0].line,
            cause="ib_link_down",
            data={"device": waiting[0].owner, "port": waiting[0].port, "state": waiting[0].state},
            sources=SOURCES,
        )
    if not up and not down:
        return
    widths = ", ".join(f"{count} at {what}" for what, count in up.most_common(8))
    yield finding(
        "iblinkinfo",
        "links",
        Severity.INFO,
        f"{plural(sum(up.values()), 'link end')} up ({widths or 'none'}), {plural(down, 'port')} "
        "without a link. Ports of a switch without a link are mostly unused; a host that should be "
        "there and is not is not listed at all.",
        "Compare the list of hosts with the ones that should be there (ibhosts), and speeds of "
        "links of one kind with each other.",
        line=links[0].line,
        data={"links_up": sum(up.values()), "ports_down": down, "rates": dict(up)},
        sources=SOURCES,
    )
