"""Lines of mlx5 adapters (ConnectX, BlueField): firmware, cables, heat, power, failed requests.

Lines: Linux drivers/net/ethernet/mellanox/mlx5/core (health.c, events.c, cmd.c, eq.c) and
drivers/infiniband/hw/mlx5/cq.c; the syndromes are those of include/linux/mlx5/device.h.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

from engine.model import Finding, Severity
from engine.readers.host.devices import ADDRESS
from engine.readers.host.part import Rule, RulePart, Tally
from engine.readers.logline import LogLine

_CORE = "Linux drivers/net/ethernet/mellanox/mlx5/core"
_MLX5 = (
    rf"(?:mlx5_core (?P<pci>{ADDRESS})(?: \w{{2,32}})?: "
    r"(?:\w{2,48}:\d{1,6}:\(pid \d{1,10}\): )?"
    # Copies of a line often lack the device.
    r"|mlx5_core: |mlx5_\w{2,40}:(?:\d{1,6}:\(pid \d{1,10}\):)? )"
)
_RESET = (
    "Note the firmware version (ethtool -i, or fw_ver in the lines), take a dump (mstdump or "
    "devlink health dump) and reset the adapter: devlink dev reload or mlxfwreset; a power cycle "
    "if "
    "that fails. Update firmware that is older than the driver's release notes ask for."
)
_SYNDROMES = {
    0x01: "local length error",
    0x02: "local QP operation error",
    0x04: "local protection error",
    0x05: "flushed: the QP was in error already",
    0x06: "memory window bind error",
    0x10: "bad response",
    0x11: "local access error",
    0x12: "remote invalid request",
    0x13: "remote access error",
    0x14: "remote operation error",
    0x15: "transport retries exceeded: the peer does not answer",
    0x16: "RNR retries exceeded: the peer has no receive buffer",
    0x22: "remote aborted",
}
_LAST_ROW = re.compile(
    r"00000030: (?:[0-9a-f]{2} ){6}(?P<vendor>[0-9a-f]{2}) (?P<syndrome>[0-9a-f]{2})(?: "
    r"[0-9a-f]{2}){8}"
)
_ROW = re.compile(r"000000[0-3]0: (?:[0-9a-f]{2} ){15}[0-9a-f]{2}")


class InfinibandPart(RulePart):
    """Reads what mlx5 adapters report of themselves."""

    kind: ClassVar[str] = "rdma_nic"
    marks: ClassVar[tuple[str, ...]] = ("mlx5_", "NETDEV WATCHDOG: ", "00000030: ")
    rules: ClassVar = (
        Rule(
            "nic_firmware",
            re.compile(
                _MLX5 + r"(?:Health issue observed, (?P<issue>[\w ()-]{4,60}?)(?:, "
                r"severity\((?P<severity_code>\d)\)"
                r"(?: (?P<severity_word>[A-Z]{4,10}))?|$|:)|print_health_info.{0,40}synd "
                r"(?P<syndrome>0x[0-9a-f]{1,4}))"
            ),
            Severity.HIGH,
            "{device}{of} reports a fault of its firmware or hardware: {issue}.",
            _RESET,
            "ib_link_down",
            apart=("pci",),
            source=_CORE,
        ),
        Rule(
            "nic_dead",
            re.compile(
                _MLX5 + r"(?P<what>device's health compromised|Fatal error \d{1,9} detected|"
                r"PCI slot is unavailable|health recovery flow aborted|Driver is in error state|"
                r"handling bad device|firmware pre init failed)"
            ),
            Severity.CRITICAL,
            "{device}{of} no longer works: {what}.",
            _RESET,
            "ib_link_down",
            apart=("pci",),
            source=_CORE,
        ),
        Rule(
            "nic_command_timeout",
            re.compile(
                _MLX5 + r".{0,24}?(?P<command>[A-Z][A-Z0-9_]{3,40})?"
                r"\(?(?P<opcode>0x[0-9a-f]{1,4})?\)?.{0,24}?"
                r"(?:timeout\. Will cause a leak of a command resource|No done completion|"
                r"failed to allocate command entry|Timed out waiting|Could not get a free)"
            ),
            Severity.HIGH,
            "The firmware of {device}{of} did not answer a command {command} in time.",
            _RESET,
            apart=("pci",),
            source=_CORE,
        ),
        Rule(
            "nic_temperature",
            re.compile(
                _MLX5 + r"High temperature on sensors with bit set (?P<sensors>[0-9a-f]{1,16} "
                r"[0-9a-f]{1,16})"
            ),
            Severity.MEDIUM,
            "{device}{of} warns of its temperature (sensors {sensors}).",
            "Check airflow and the transceiver: mget_temp -d DEVICE, mlxlink -d DEVICE -m. Hot "
            "adapters and optics drop links.",
            apart=("pci",),
            source=_CORE,
        ),
        Rule(
            "nic_slot_power",
            re.compile(
                _MLX5 + r"Detected insufficient power on the PCIe slot \((?P<slot_w>\d{1,4})W\)"
            ),
            Severity.LOW,
            "The PCIe slot of {device}{of} offers {slot_w} W, less than the adapter may want: with "
            "power-hungry optics a port can stay down.",
            "Only if a port of it does not come up: another slot, or the slot's power setting in "
            "the BIOS; see the adapter's data sheet.",
            apart=("pci",),
            source=_CORE,
        ),
        Rule(
            "cable_error",
            re.compile(
                _MLX5 + r"Port module event\[error\]: module (?P<module>\d{1,3}), Cable error, "
                r"(?P<error>[\w /()]{4,60})"
            ),
            Severity.HIGH,
            "Cable or transceiver in port module {module} of {device}{of}: {error}.",
            "Reseat or replace the cable or transceiver: mlxlink -d DEVICE -m.",
            "ib_link_degraded",
            apart=("pci", "module"),
            source=_CORE,
        ),
        Rule(
            "register_refused",
            re.compile(
                _MLX5
                + r"ACCESS_REG\((?P<opcode>0x[0-9a-f]{1,4})\) op_mod\(0x[0-9a-f]{1,4}\) failed"
                r"(?:, status (?P<status>[\w ]{3,40})\()?"
            ),
            Severity.LOW,
            "The firmware of {device}{of} refused to let a register be read ({opcode} {status}). "
            "As a rule a monitoring tool asked for what this port or firmware does not have: "
            "traffic is not touched.",
            "Nothing while links and traffic are sound; otherwise update driver and firmware.",
            apart=("pci",),
            source=_CORE,
        ),
        Rule("cable_event", re.compile(_MLX5 + r"Port module event: module \d{1,3}, Cable \w+")),
        Rule(
            "nic_queue_error",
            re.compile(
                _MLX5 + r".{0,40}?(?:CQ error on CQN (?P<cqn>0x[0-9a-f]{1,8})(?:, syndrome "
                r"(?P<cq_syndrome>0x[0-9a-f]{1,4}))?"
                r"|(?P<what>ERR CQE on \w{2,5}: \S{3,12}|TX timeout detected|Error cqe on cqn))"
            ),
            Severity.MEDIUM,
            "A queue of the {device}{of} failed ({what}{cqn}).",
            "Look for a lost peer or port at the same time; a queue that fails alone calls for a "
            "newer driver or firmware.",
            apart=("pci",),
            source=_CORE,
        ),
        Rule(
            "transmit_timeout",
            re.compile(
                r"NETDEV WATCHDOG: (?:CPU: \d{1,5}: )?(?P<interface>[\w.@-]{1,24}) "
                r"\((?P<driver>[\w-]{1,24})\): transmit queue (?P<queue>\d{1,5}) timed out"
            ),
            Severity.HIGH,
            "Interface {interface}{of} ({driver}) sent nothing for seconds: transmit queue {queue} "
            "stands still, and the driver resets it.",
            "Look for errors of its NIC and of PCIe just before (dmesg, ethtool -S); then firmware "
            "and driver. NCCL over that interface stalls or fails meanwhile.",
            apart=("interface",),
            source="Linux net/sched/sch_generic.c",
        ),
        Rule(
            "cqe_error",
            re.compile(
                r"(?P<device_name>mlx5_\w{1,12}).{0,40}?(?:dump_cqe.{0,40}?(?:dump error cqe|WC "
                r"error: (?P<wc>\d{1,3}),"
                r" Message: (?P<message>[\w ,-]{3,60})))"
            ),
            Severity.MEDIUM,
            "A work request on {device_name}{on} ended in an error.",
            "Mostly the other end is to blame: look for the peer that died or cannot be reached "
            "(NCCL's WARN lines name it), then at this port.",
            apart=("device_name",),
            source="Linux drivers/infiniband/hw/mlx5/cq.c",
        ),
    )

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._cqe: Tally | None = None
        self._left = 0
        self._syndromes: dict[int, dict[tuple[int, int], int]] = {}

    def take(self, line: LogLine) -> bool:
        """Take a record; the hex rows behind a failed completion too."""
        if self.open and _ROW.search(line.text):
            self._left -= 1
            self.open = self._left > 0
            self._row(line.text)
            return True
        taken = super().take(line) if "mlx5_" in line.text else False
        if taken and "dump error cqe" in line.text:
            self._cqe = max(self.tallies.values(), key=lambda t: t.last_line, default=None)
            self._left, self.open = 4, True
        elif taken:
            self.open = False
        elif self.open:
            self._left -= 1
            self.open = self._left > -8
        return taken or ("mlx5_core " in line.text and _BENIGN.search(line.text) is not None)

    def finding(self, tally: Tally) -> Finding | None:
        """Decode the syndromes of failed completions."""
        found = self._syndromes.get(id(tally))
        if not found:
            return self.said(tally)
        words = []
        for (syndrome, vendor), count in found.items():
            meaning = _SYNDROMES.get(syndrome, "unknown")
            times = f", {count} times" if count > 1 else ""
            words.append(
                f"syndrome 0x{syndrome:02x} ({meaning}), vendor error 0x{vendor:02x}{times}"
            )
        (syndrome, vendor), *_ = found
        data = {"syndrome": f"0x{syndrome:02x}", "vendor_error": f"0x{vendor:02x}"}
        return self.said(tally, extra=f"{'; '.join(words)}.".capitalize(), data=data)

    def _row(self, text: str) -> None:
        last = _LAST_ROW.search(text)
        if last is None or self._cqe is None:
            return
        kept = self._syndromes.setdefault(id(self._cqe), {})
        key = (int(last["syndrome"], 16), int(last["vendor"], 16))
        if key in kept or len(kept) < 8:
            kept[key] = kept.get(key, 0) + 1


_BENIGN = re.compile(
    r"firmware version:|PCIe slot advertised sufficient power|available PCIe bandwidth|Rate limit:|"
    r"E-Switch:|MLX5E: StrdRq|Supported tc|mlx5e:|Flow counters|Port module event: |is not a slave"
)
