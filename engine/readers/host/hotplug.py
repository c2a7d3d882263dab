"""PCIe links that go down, are contained, narrowed, or a device that no longer answers.

Lines: Linux drivers/pci/pcie/dpc.c, drivers/pci/hotplug/pciehp_ctrl.c, drivers/pci/pci.c
(``pcie_print_link_status``, power states) and drivers/pci/quirks.c.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

from engine.model import Finding, Severity
from engine.readers.host.devices import ADDRESS
from engine.readers.host.part import MOST_EVENTS, Rule, RulePart, Tally
from engine.readers.logline import LogLine

_SOURCE = "Linux drivers/pci (dpc.c, pciehp_ctrl.c, pci.c)"
_LOOK = (
    "See what is left of it: lspci -tv and lspci -vvv -s {pci}. Look for Xid 79 or a lost NIC at "
    "the same time; check seating, riser, slot, cable of the backplane and power, then power-cycle."
)
# What is printed while the machine starts says nothing about later (s).
_START_S = 180.0
_DEVICE = rf"(?P<pci>{ADDRESS})"
# Up to Linux 6 the service stands behind the address: ``pciehp 0000:a0:01.1:pcie204: Slot(12): …``.
_PORT = rf"{_DEVICE}(?::pcie\d{{1,5}})?:(?: pciehp:)?"

_UP = re.compile(r"[Ss]lot\((?P<slot>[\w-]{1,16})\): (?:Link Up|Card present)(?! event ignored)")


class HotplugPart(RulePart):
    """Reads containment, hot-plug, bandwidth and power-state lines."""

    kind: ClassVar[str] = "pcie_link"
    marks: ClassVar[tuple[str, ...]] = (
        "DPC: ",
        "containment event",
        "Slot(",
        "slot(",
        "pciehp",
        "available PCIe bandwidth",
        "power state from D3",
        "non-functional downstream link",
        "device inaccessible",
        "not ready ",
    )
    rules: ClassVar = (
        Rule(
            "dpc_containment",
            re.compile(
                rf"{_DEVICE}: (?:DPC: |pcie_dpc: )?(?:DPC )?containment event, "
                r"status:(?P<status>0x[0-9a-f]{4})(?: source:(?P<source>0x[0-9a-f]{4}))?"
            ),
            Severity.CRITICAL,
            "PCIe containment (DPC) at {device}{of}: after an uncorrectable error the port took "
            "its "
            "link down, and everything below it went away.",
            _LOOK,
            "pcie_errors",
            apart=("pci",),
            source=_SOURCE,
        ),
        Rule(
            "dpc_reason",
            re.compile(
                rf"{_DEVICE}: DPC: (?P<reason>unmasked uncorrectable error|ERR_NONFATAL|ERR_FATAL"
                r"|RP PIO error|software trigger|reserved error) detected"
            ),
            Severity.HIGH,
            "{device}{of} gives the reason of its containment: {reason}.",
            _LOOK,
            "pcie_errors",
            apart=("pci",),
            source=_SOURCE,
        ),
        Rule(
            "slot_power_fault",
            re.compile(
                rf"{_PORT} (?:[Ss]lot\((?P<slot>[\w-]{{1,16}})\): Power fault"
                r"|Power fault on [Ss]lot ?\(?(?P<slot2>[\w-]{1,16}))"
            ),
            Severity.CRITICAL,
            "Power fault at PCIe slot {slot}{slot2}{of}: the slot's power failed or was cut.",
            "Check the slot's and the riser's power, then power-cycle; look for a lost GPU or NIC.",
            "pcie_errors",
            apart=("pci",),
            source=_SOURCE,
        ),
        Rule(
            "slot_link_down",
            re.compile(
                rf"{_PORT} [Ss]lot\((?P<slot>[\w-]{{1,16}})\): "
                r"(?P<what>Link Down|Card not present)(?! ignored)"
            ),
            Severity.HIGH,
            "PCIe hot-plug: {what} at slot {slot} ({device}){of}: the device in it is gone for the "
            "kernel.",
            _LOOK,
            "pcie_errors",
            apart=("pci", "slot"),
            source=_SOURCE,
        ),
        Rule(
            "link_retrain_failed",
            re.compile(
                rf"{_DEVICE}: broken device, retraining non-functional downstream link at "
                r"(?P<speed_gt_s>[\d.]{1,5})\s?GT/s"
            ),
            Severity.HIGH,
            "The link below {device}{of} does not train; the kernel tries {speed_gt_s} GT/s.",
            _LOOK,
            "pcie_errors",
            apart=("pci",),
            source="Linux drivers/pci/quirks.c",
        ),
        Rule(
            "power_state",
            re.compile(
                rf"(?P<driver>[a-z][\w-]{{1,24}}) {_DEVICE}: (?:can't change|Unable to change|"
                r"Refused to change) power state from (?P<from_state>D3\w{0,4}) to (?P<to_state>D0)"
            ),
            Severity.HIGH,
            "{device}{of} does not come back from power state {from_state}: its configuration "
            "space "
            "does not answer, so for the host the device is gone.",
            "Power-cycle the machine (a warm reboot often does not bring it back). If it returns, "
            "keep the device out of D3: for NVIDIA GPUs run nvidia-persistenced; otherwise boot "
            "with pcie_port_pm=off.",
            "pcie_errors",
            apart=("pci",),
            source=_SOURCE,
        ),
        Rule(
            "not_ready",
            re.compile(
                rf"{_DEVICE}: not ready (?P<waited_ms>\d{{3,7}})ms after (?P<after>[\w ]{{3,20}}); "
                rf"giving up"
            ),
            Severity.HIGH,
            "{device}{of} did not come back {waited_ms} ms after {after}.",
            _LOOK,
            "pcie_errors",
            apart=("pci",),
            source=_SOURCE,
        ),
        Rule(
            "bandwidth_limited",
            re.compile(
                rf"{_DEVICE}: (?P<available_gb_s>[\d.]{{1,9}}) Gb/s available PCIe bandwidth, "
                rf"limited by "
                rf"(?P<speed_gt_s>[\d.]{{1,5}}) GT/s PCIe x(?P<width>\d{{1,2}}) link at "
                rf"(?P<limited_at>{ADDRESS}) \(capable of (?P<capable_gb_s>[\d.]{{1,9}}) Gb/s with "
                r"(?P<capable_speed_gt_s>[\d.]{1,5}) GT/s PCIe x(?P<capable_width>\d{1,2}) link\)"
            ),
            Severity.INFO,
            "{device}{of} has {available_gb_s} Gb/s of PCIe bandwidth, limited by the link at "
            "{limited_at} ({speed_gt_s} GT/s x{width}); it could have {capable_gb_s} Gb/s "
            "({capable_speed_gt_s} GT/s x{capable_width}).",
            "Look at the link under load: lspci -vvv -s {pci} (LnkSta beside LnkCap), and at the "
            "slot named as the limit. Fewer lanes than the device has call for reseating or "
            "another "
            "slot; a lower speed on an idle GPU is power saving.",
            apart=("pci",),
            source=_SOURCE,
        ),
    )

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._up: dict[tuple[str | None, str], int] = {}

    def take(self, line: LogLine) -> bool:
        """Take a record; note where a link came up again."""
        found = _UP.search(line.text)
        if found is None:
            return super().take(line)
        if len(self._up) < MOST_EVENTS:
            self._up[line.host, found["slot"]] = line.number
        return True

    def finding(self, tally: Tally) -> Finding | None:
        """Judge a limited link by what sits on it; the rest says the same of every device."""
        gone = self.devices.kind(tally.values["pci"]) == "GPU"
        match tally.rule.id:
            case "bandwidth_limited":
                return self._limited(tally)
            case "dpc_containment":
                why = self._beside(tally, "dpc_reason")
                reason = why.values["reason"] if why else None
                extra = f"Reason: {reason}." if reason else ""
                return self.said(tally, extra=extra, data={"reason": reason} if reason else None)
            case "dpc_reason" if self._beside(tally, "dpc_containment"):
                return None
            case "power_state" | "not_ready" if gone:
                return self.said(tally, severity=Severity.CRITICAL, cause="gpu_off_bus")
            case "slot_link_down" if self._came_back(tally):
                return self.said(
                    tally, severity=Severity.MEDIUM, extra="A link came up there again later."
                )
            case _:
                return self.said(tally)

    def _limited(self, tally: Tally) -> Finding | None:
        kind = self.devices.kind(tally.values["pci"])
        narrow = int(tally.values["width"]) < int(tally.values["capable_width"])
        slow = float_of(tally.values["speed_gt_s"]) < float_of(tally.values["capable_speed_gt_s"])
        data = {
            name: float_of(tally.values[name])
            for name in ("available_gb_s", "capable_gb_s", "speed_gt_s", "capable_speed_gt_s")
        }
        if kind in {"GPU", "NIC", "NVIDIA device"} and narrow:
            return self.said(
                tally, severity=Severity.MEDIUM, cause="pcie_degraded",
                extra="It runs with fewer lanes than it has.", data=data,
            )  # fmt: skip
        if kind == "NIC" and slow:
            return self.said(
                tally, severity=Severity.MEDIUM, cause="pcie_degraded",
                extra="A network adapter does not lower its link speed to save power: this is the "
                "bandwidth it gets.", data=data,
            )  # fmt: skip
        first = tally.period.first
        starting = first is not None and first.boot_s is not None and first.boot_s < _START_S
        if kind in {"GPU", "NVIDIA device"} and not starting:
            return self.said(
                tally, severity=Severity.INFO, cause=None,
                extra="An idle GPU lowers its link speed to save power; only the speed under load "
                "counts.", data=data,
            )  # fmt: skip
        if kind is not None or starting:
            return None  # a drive or bridge in a slot that gives less: how the board is built
        return self.said(tally, severity=Severity.LOW if narrow else Severity.INFO, data=data)

    def _beside(self, tally: Tally, rule: str) -> Tally | None:
        """Return the tally of another rule about the same device."""
        return self.tallies.get((rule, tally.host, tally.values["pci"]))

    def _came_back(self, tally: Tally) -> bool:
        return self._up.get((tally.host, tally.values.get("slot", "")), 0) > tally.last_line


def float_of(text: str) -> float:
    """Return a number of digits and points, 0 if it is none."""
    try:
        return float(text)
    except ValueError:
        return 0.0
