"""What port counters mean (`knowledge/nccl/port_counters.yaml`), and where they stop counting."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from engine.catalogue.types import Catalogue
from engine.model import Severity

# rx_prio3_pause, tx_priority_3_xoff.nic, rx_err_lane_0_phy, rx_pfc_ena_frames_pri3
_INDEX: Final = re.compile(
    r"(?<=prio)[0-9]{1,2}|(?<=priority_)[0-9]{1,2}|(?<=lane_)[0-9]{1,2}|(?<=_pri)[0-9]{1,2}$"
)
# Bits of PortCounters, which stay at their highest value; -x reads 64-bit ones.
# Source: InfiniBand Architecture Specification 1.4, table of PortCounters.
_BITS: Final = {
    "symbolerrorcounter": 16,
    "linkerrorrecoverycounter": 8,
    "linkdownedcounter": 8,
    "portrcverrors": 16,
    "portrcvremotephysicalerrors": 16,
    "portrcvswitchrelayerrors": 16,
    "portxmitdiscards": 16,
    "portxmitconstrainterrors": 8,
    "portrcvconstrainterrors": 8,
    "locallinkintegrityerrors": 4,
    "excessivebufferoverrunerrors": 4,
    "vl15dropped": 16,
    "portxmitdata": 32,
    "portrcvdata": 32,
    "portxmitpkts": 32,
    "portrcvpkts": 32,
    "portxmitwait": 32,
}


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a group of counters means.

    ``rises`` new events, and ``share`` of the packets if it is not None, are what it takes to
    name ``cause``.
    """

    id: str
    title: str
    class_: str
    meaning: str
    action: str
    cause: str | None
    severity: Severity
    rises: int
    share: float | None
    sources: tuple[str, ...]

    @property
    def counts(self) -> bool:
        """Whether events of this group are worth a word."""
        return self.class_ not in ("corrected", "harmless", "traffic")


class CounterFacts:
    """Looks counters up by the name that a tool prints."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._entries: Mapping[str, Mapping[str, Any]] = catalogue.entries.get("port_counters", {})

    @cached_property
    def _by_name(self) -> Mapping[str, Meaning]:
        found: dict[str, Meaning] = {}
        for entry in self._entries.values():
            share = entry.get("share")
            meaning = Meaning(
                str(entry["id"]),
                str(entry["title"]),
                str(entry["class"]),
                str(entry["meaning"]),
                str(entry["action"]),
                entry.get("cause"),
                Severity(entry["severity"]),
                int(entry["rises"]),
                float(share) if share is not None else None,
                tuple(entry["source"]),
            )
            found |= dict.fromkeys(map(str, entry["counters"]), meaning)
        return found

    def of(self, name: str) -> Meaning | None:
        """Return what a counter means, None if it is not known."""
        return self._by_name.get(_INDEX.sub("#", name.lower()))


def at_ceiling(name: str, value: int) -> bool:
    """Tell whether a counter of ``perfquery`` without ``-x`` is at its highest value."""
    bits = _BITS.get(name.lower())
    return bits is not None and value >= 2**bits - 1
