"""Reader of ``ethtool INTERFACE``: speed, duplex and whether there is a link (ethtool.c)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

from engine.model import Finding, Severity
from engine.readers.base import Result
from engine.readers.listing import Listing, at, finding, node, result_of
from engine.readers.quantities import integer, short
from engine.units import number

_START: Final = re.compile(r"^\s{0,4}Settings for ([\w.@-]{1,32}):\s*$")
_PAIR: Final = re.compile(r"^\s{1,8}([A-Z][\w /-]{1,44}?): {0,2}(.{0,200})$")
_MODES: Final = re.compile(r"\b([0-9]{2,7})base[A-Za-z0-9/-]{1,16}")
_SPEED: Final = re.compile(r"^([0-9]{1,7})Mb/s$")
_LISTS: Final = {
    "supported link modes": "supported",
    "advertised link modes": "advertised",
    "link partner advertised link modes": "partner",
}


@dataclass(slots=True)
class Interface:
    """One interface; speeds in Mb/s, as printed."""

    line: int
    name: str
    host: str | None
    speed: int | None = None
    duplex: str | None = None
    link: bool | None = None
    modes: dict[str, int] = field(default_factory=dict)

    @property
    def gbps(self) -> float:
        """Speed in Gb/s, 0 if there is none."""
        return (self.speed or 0) / 1000


class EthtoolLinkReader(Listing[Interface]):
    """Reads one block an interface."""

    triggers: ClassVar[tuple[bytes, ...]] = (b"Settings for ",)
    PATIENCE = 6

    _interface: Interface | None = None
    _list = ""

    def take(self, number: int, text: str) -> bool:
        """Take a line of ``ethtool``."""
        text = text.expandtabs()
        start = _START.match(text)
        if start:
            self._interface = Interface(number, start[1], self.host)
            self.kept.add(self._interface)
            self.inside, self._list = True, ""
            return True
        # A line at the margin is another tool's.
        self.inside = self.inside and text.startswith(" ")
        if not self.inside or self._interface is None:
            return False
        pair = _PAIR.match(text)
        value = text
        if pair:
            self._list = _LISTS.get(pair[1].lower(), "")
            value = pair[2].strip()
            self._pair(self._interface, pair[1].lower(), value)
        if self._list:
            speeds = [int(m) for m in _MODES.findall(value[:400])]
            modes = self._interface.modes
            modes[self._list] = max([modes.get(self._list, 0), *speeds])
        return bool(pair or self._list)

    def judge(self, records: Sequence[Interface]) -> Result:
        """Say what the links show."""
        found = [f for one in records for f in _judged(one, records)]
        return result_of(["ethtool"], found)

    @staticmethod
    def _pair(interface: Interface, key: str, value: str) -> None:
        if key == "speed":
            speed = _SPEED.match(value)
            interface.speed = integer(speed[1]) if speed else None
        elif key == "duplex":
            interface.duplex = short(value, 16)
        elif key == "link detected":
            interface.link = {"yes": True, "no": False}.get(value.split(" ", maxsplit=1)[0])


def _judged(one: Interface, every: Sequence[Interface]) -> Iterable[Finding]:
    kin = [
        i
        for i in every
        if i.host == one.host and i.modes.get("supported") == one.modes.get("supported")
    ]
    best = max(kin, key=lambda i: i.speed or 0)
    data = {
        "interface": one.name,
        "rate_gbps": one.gbps or None,
        "duplex": one.duplex,
        "link": one.link,
    }
    subject = f"{at(one.host)}{one.name}"
    if one.link is False:
        alone = len(every) == 1
        yield finding(
            "ethtool",
            "no_link",
            Severity.MEDIUM if alone else Severity.LOW,
            f"{subject} has no link"
            + ("." if alone else "; it may be unused, since other interfaces were listed too."),
            "Check cable, module and the switch port: ethtool -m INTERFACE shows the module, dmesg "
            "when the link went down.",
            line=one.line,
            cause="ib_link_down" if alone else None,
            data=data,
            entity=node(one.host),
            sources=("ethtool(8)",),
        )
        return
    if not one.speed:
        return
    partner = min(one.modes.get("advertised", 0), one.modes.get("partner", 0))
    if one.duplex == "Half":
        yield _slow(one, subject, "half duplex", "a wrong duplex setting on one end", data)
    elif one.speed < (best.speed or 0) and best.link is not False:
        yield _slow(
            one,
            subject,
            f"{number(one.gbps)} Gb/s while {best.name}, of the same make, has "
            f"{number(best.gbps)} Gb/s",
            "cable, module or switch port",
            data | {"sibling_rate_gbps": best.gbps},
        )
    elif one.speed < partner:
        yield _slow(
            one,
            subject,
            f"{number(one.gbps)} Gb/s though both ends offer {number(partner / 1000)} Gb/s",
            "a bad pair or cable",
            data | {"offered_gbps": partner / 1000},
        )
    else:
        top = one.modes.get("supported", 0) / 1000
        below = top > one.gbps
        yield finding(
            "ethtool",
            "link",
            Severity.INFO,
            f"{subject}: link at {number(one.gbps)} Gb/s"
            + (f", {one.duplex.lower()} duplex" if one.duplex else "")
            + (
                f". The NIC could do {number(top)} Gb/s: whether the switch and cable are meant to "
                "be slower, this listing cannot show."
                if below
                else "."
            ),
            "Compare with the same interface of another node; errors and discards are in "
            "ethtool -S.",
            line=one.line,
            data=data | {"supported_gbps": top or None},
            entity=node(one.host),
            sources=("ethtool(8)",),
        )


def _slow(one: Interface, subject: str, what: str, why: str, data: Mapping[str, object]) -> Finding:
    return finding(
        "ethtool",
        "link_slow",
        Severity.HIGH,
        f"{subject} runs at {what}: {why}. Nothing can pass more through it.",
        "Reseat or swap the cable or module, check the speed setting of the switch port.",
        line=one.line,
        cause="ib_link_degraded",
        data=data,
        entity=node(one.host),
        sources=("ethtool(8)",),
    )
