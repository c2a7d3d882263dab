"""What the message of an Xid holds beyond its code, as values with units in their names.

One small parser for each code whose message has a known layout. Source of the layouts: NVIDIA
open-gpu-kernel-modules 595.45.04 and the NVIDIA Xid catalog; older drivers print less, so every
part is optional.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

_GPC = re.compile(r"\(GPC (\d{1,4}), TPC (\d{1,4})(?:, SM (\d{1,4}))?\)(?:: (.{1,120}))?")
_MMU = re.compile(
    r"MMU Fault: ENGINE (?P<engine>\S{1,40})(?P<client>(?: \S{1,40}){0,3}) faulted @ "
    r"(?P<address>0x[0-9A-Fa-f_]{1,40})(?:\. Fault is of type (?P<fault>\w{1,40})"
    r"(?: (?:ACCESS_TYPE_)?(?P<access>\w{1,40}))?)?"
)
_PARTITION = re.compile(r"partition (\d{1,4})(?:, subpartition (\d{1,4}))?", re.IGNORECASE)
_PHYSICAL = re.compile(r"phys(?:ical )?addr(?:ess)?:? (0x[0-9A-Fa-f]{1,16})", re.IGNORECASE)
_ROW = re.compile(r"\((0x[0-9A-Fa-f]{1,16})\)")
_REMAP_ERROR = re.compile(r"Row Remapper Error: (?:\(0x[0-9A-Fa-f]{1,16}\) )?-? ?(.{1,120})")
_REGISTERS = re.compile(
    r"link (?P<link>\d{1,3}) ?\((?P<words>0x[0-9A-Fa-f]{1,8}(?:, ?0x[0-9A-Fa-f]{1,8}){0,9})\)"
)
_LINK = re.compile(r"\blink (\d{1,3})\b", re.IGNORECASE)
_CONTAINED = re.compile(
    r"(?P<kind>Contained|Uncontained): (?P<unit>[A-Za-z0-9 /_-]{1,60}?)"
    r"(?: \((?P<place>[^)]{1,60})\))?\."
)
_RST = re.compile(r"(?<![-\w])RST: ?(Yes|No)")
_DRAIN_RST = re.compile(r"D-RST: ?(Yes|No)")
_GSP = re.compile(
    r"Timeout after (?P<seconds>\d{1,6})s of waiting for RPC response from GPU(?P<gpu>\d{1,4}) GSP"
    r"(?:! Expected function (?P<function>\d{1,6}) \((?P<name>[^)]{1,80})\))?"
)
_RECOVERY = re.compile(
    r"recovery action changed from 0x(?P<old>[0-9A-Fa-f]{1,4}) \((?P<old_name>[^)]{0,60})\)"
    r" to 0x(?P<new>[0-9A-Fa-f]{1,4}) \((?P<new_name>[^)]{0,60})\)"
)
_DRAM = re.compile(
    r"\b(?P<memory>GDDR|HBM)\w*, .{0,60}?FBPA (?P<fbpa>\d{1,4})(?: subpartition (?P<sub>\d{1,4}))?"
)
_COUNTS = re.compile(r"\b(DRAM|LTC|MMU|PCIE): ?(-?\d{1,20})\b")
_CHANNEL = re.compile(r"\b(?:Ch|channel|Channel ID|Channel) (?:0x)?([0-9A-Fa-f]{8})\b")


def detail_of(xid: int, message: str) -> dict[str, Any]:
    """Return the decoded parts of an Xid message; empty where its layout is not known."""
    parse = _PARSERS.get(xid)
    detail = parse(message) if parse else {}
    channel = _CHANNEL.search(message)
    if channel:
        detail["channel"] = f"0x{channel[1].lower()}"
    return detail


def register_bits(word: str) -> list[int]:
    """Return the numbers of the bits set in a hexadecimal register word, lowest first."""
    value = int(word, 16)
    return [bit for bit in range(value.bit_length()) if value >> bit & 1]


def _exception(message: str) -> dict[str, Any]:
    match = _GPC.search(message)
    if not match:
        return {}
    gpc, tpc, sm, reason = match.groups()
    detail: dict[str, Any] = {"gpc": int(gpc), "tpc": int(tpc)}
    if sm is not None:
        detail["sm"] = int(sm)
    if reason:
        detail["exception"] = reason.strip()
    return detail


def _mmu_fault(message: str) -> dict[str, Any]:
    match = _MMU.search(message)
    if not match:
        return {}
    found = match.groupdict()
    found["client"] = found["client"].strip() or None
    return {key: value for key, value in found.items() if value is not None}


def _where_in_memory(message: str) -> dict[str, Any]:
    detail: dict[str, Any] = {}
    partition = _PARTITION.search(message)
    if partition:
        detail["partition"] = int(partition[1])
        if partition[2] is not None:
            detail["subpartition"] = int(partition[2])
    return detail | _physical(message)


def _physical(message: str) -> dict[str, Any]:
    match = _PHYSICAL.search(message)
    return {"address": match[1]} if match else {}


def _row(message: str) -> dict[str, Any]:
    detail: dict[str, Any] = {}
    row = _ROW.search(message)
    if row:
        detail["row"] = row[1]
    failure = _REMAP_ERROR.search(message)
    if failure:
        detail["remap_error"] = failure[1].strip(" .")
    return detail


def _nvlink4(message: str) -> dict[str, Any]:
    match = _REGISTERS.search(message)
    if not match:
        return _any_link(message)
    words = [word.strip() for word in match["words"].split(",")]
    detail: dict[str, Any] = {"link": int(match["link"]), "registers": words}
    for number, word in enumerate(words, start=1):
        if bits := register_bits(word):
            detail[f"register{number}_bits"] = bits
    return detail


def _any_link(message: str) -> dict[str, Any]:
    match = _LINK.search(message)
    return {"link": int(match[1])} if match else {}


def _containment(message: str) -> dict[str, Any]:
    detail: dict[str, Any] = {}
    match = _CONTAINED.search(message)
    if match:
        detail[f"{match['kind'].lower()}_unit"] = match["unit"]
        if match["place"]:
            detail["place"] = match["place"]
    for key, pattern in (("rst", _RST), ("drain_rst", _DRAIN_RST)):
        if flag := pattern.search(message):
            detail[key] = flag[1] == "Yes"
    return detail | _physical(message)


def _gsp_timeout(message: str) -> dict[str, Any]:
    match = _GSP.search(message)
    if not match:
        return {}
    detail: dict[str, Any] = {"timeout_s": int(match["seconds"]), "gpu": int(match["gpu"])}
    if match["function"]:
        detail["rpc_function"] = int(match["function"])
        detail["rpc_name"] = match["name"]
    return detail


def _recovery(message: str) -> dict[str, Any]:
    match = _RECOVERY.search(message)
    if not match:
        return {}
    return {
        "recovery_action": match["new_name"],
        "recovery_code": int(match["new"], 16),
        "recovery_action_before": match["old_name"],
    }


def _dram(message: str) -> dict[str, Any]:
    match = _DRAM.search(message)
    if not match:
        return _where_in_memory(message)
    detail: dict[str, Any] = {"memory": match["memory"], "fbpa": int(match["fbpa"])}
    if match["sub"] is not None:
        detail["subpartition"] = int(match["sub"])
    return detail | _physical(message)


def _error_counts(message: str) -> dict[str, Any]:
    """Read counts by unit; the driver prints them signed, so a huge one shows as negative."""
    counts = {unit.lower(): int(count) for unit, count in _COUNTS.findall(message)}
    return {"error_counts": counts} if counts else {}


_PARSERS: dict[int, Callable[[str], dict[str, Any]]] = {
    13: _exception,
    31: _mmu_fault,
    48: _where_in_memory,
    63: _row,
    64: _row,
    74: _nvlink4,
    94: _containment,
    95: _containment,
    108: _any_link,
    119: _gsp_timeout,
    136: _nvlink4,
    137: _any_link,
    140: _error_counts,
    154: _recovery,
    171: _dram,
    172: _where_in_memory,
}
