"""Sentences about what the message of an Xid holds beyond its code, one small writer a layout."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from engine.readers.bursts import XidBurst
from engine.readers.facts import Facts
from engine.readers.nvlink5 import XIDS
from engine.readers.xid_detail import register_bits
from engine.readers.xid_names import where

# Units named in contained and uncontained memory errors (NVIDIA kern_gpu_error_cont_ga100.c).
_UNITS = {
    "SM": "a streaming multiprocessor",
    "LTC TAG": "tags of the L2 cache",
    "LTC DATA": "data of the L2 cache",
    "LTC": "the L2 cache",
    "CBC": "the compression-bit cache beside L2",
    "FB DED": "a double-bit error in DRAM",
    "DRAM": "DRAM",
    "FBHUB": "the framebuffer hub",
    "CE USER CHANNEL": "a copy engine, user channel",
    "CE KERNEL CHANNEL": "a copy engine, kernel channel",
    "MMU": "the memory management unit",
    "GCC": "the constant cache of a GPC",
    "CTXSW": "the context switch unit",
    "PCIE": "the PCIe egress",
}
# Counters of errors that end a GPU are small numbers.
_MOST_ERRORS = 1_000_000
_EXPECT = {
    "xid_48": "Xid 48",
    "poison_or_xid_94": "poison or Xid 94",
    "poison_or_xid_94_95": "poison, Xid 94 or Xid 95",
    "app_killed_xid_45": "the application killed (Xid 45)",
    "packet_loss": "lost packets",
    "packet_loss_maybe": "perhaps lost packets",
    "packet_loss_late": "lost packets some time later",
    "gpu_fatal": "every link of the GPU down and its channels killed",
    "far_end_is_source": "the source of the fault itself",
    "not in production code": "nothing in production drivers",
}


def message_says(burst: XidBurst, facts: Facts) -> list[str]:
    """Return the sentences about an Xid's message; none where its layout is not known."""
    if burst.code in XIDS:
        return _nvlink5(burst, facts)
    write = _WRITERS.get(burst.code)
    return write(burst, facts) if write else []


def in_memory(burst: XidBurst) -> bool:
    """Return whether a contained error lies in DRAM, as opposed to a unit on the chip."""
    return str(burst.detail.get("contained_unit", "")).upper().startswith(("FB", "DRAM"))


def _exception(burst: XidBurst, _facts: Facts) -> list[str]:
    parts: list[str] = []
    if reason := burst.detail.get("exception"):
        parts.append(f"The exception: {reason}.")
    places = list(burst.places)
    units = {place[:2] for place in places}
    if len(units) > 1:
        parts.append(
            f"It is spread over {len(places)} different GPC/TPC/SM units, so not a single bad SM: "
            "the signature of a bug in the kernel that ran."
        )
    elif units:
        gpc, tpc = units.pop()
        sms = sorted({p[2] for p in places if p[2] is not None})
        sm = f", SM {', '.join(map(str, sms))}" if sms else ""
        total = sum(burst.places.values())
        parts.append(f"Place: GPC {gpc}, TPC {tpc}{sm}.")
        if total > 1:
            parts.append(
                f"All {total} lines name the same GPC and TPC; if that repeats with known-good "
                "code, this SM's hardware is suspect."
            )
    return parts


def _mmu_fault(burst: XidBurst, _facts: Facts) -> list[str]:
    d = burst.detail
    if "engine" not in d:
        return []
    access = str(d.get("access", "")).lower().replace("_", " ")
    kinds = {"FAULT_PDE": "no page directory entry", "FAULT_PTE": "no page table entry"}
    fault = str(d.get("fault", ""))
    what = f"{access} " if access else ""
    why = f", {fault} ({kinds[fault]})" if fault in kinds else f", {fault}" if fault else ""
    client = f", client {d['client']}" if d.get("client") else ""
    return [f"Page fault: {what}at {d['address']} by engine {d['engine']}{client}{why}."]


def _double_bit(burst: XidBurst, _facts: Facts) -> list[str]:
    d = burst.detail
    if "partition" not in d:
        return []
    sub = f", subpartition {d['subpartition']}" if "subpartition" in d else ""
    return [f"Place: framebuffer partition {d['partition']}{sub}."]


def _row(burst: XidBurst, _facts: Facts) -> list[str]:
    parts: list[str] = []
    if row := burst.detail.get("row"):
        parts.append(f"Row {row}.")
    if why := burst.detail.get("remap_error"):
        parts.append(f"The remap failed: {why}.")
    return parts


def _nvlink4(burst: XidBurst, facts: Facts) -> list[str]:
    d = burst.detail
    parts = [f"Link {d['link']}."] if "link" in d else []
    words = d.get("registers", [])
    set_words = [n for n, word in enumerate(words, start=1) if int(word, 16)]
    for number in set_words:
        bits = register_bits(words[number - 1])
        only = "Only register" if len(set_words) == 1 else "Register"
        bit = ", ".join(map(str, bits))
        parts.append(f"{only} {number} is set: {words[number - 1]}, bit {bit}.")
        readings = facts.register_readings(number, bits)
        if readings:
            parts.append(f"NVIDIA's reading of {'; '.join(readings)}.")
    return parts


def _containment(burst: XidBurst, _facts: Facts) -> list[str]:
    d = burst.detail
    parts: list[str] = []
    for kind in ("contained", "uncontained"):
        unit = d.get(f"{kind}_unit")
        if unit is None:
            continue
        known = _UNITS.get(unit.upper())
        parts.append(f"{kind.capitalize()} error in unit {unit}{f', {known}' if known else ''}.")
        if kind == "contained" and not in_memory(burst):
            parts.append(
                "Without a rising ECC or row-remap count this is no evidence of bad memory."
            )
    if burst.code == 95:
        parts.append("Every process on the GPU may be affected.")
    if "rst" in d:
        flags = f"RST: {_yes(d['rst'])}"
        if "drain_rst" in d:
            flags += f", D-RST: {_yes(d['drain_rst'])}"
        if d["rst"]:
            parts.append(f"{flags}: the driver asks for a GPU reset.")
        elif d.get("drain_rst"):
            parts.append(f"{flags}: the driver asks to drain the GPU and reset it then.")
        else:
            parts.append(f"{flags}: the driver asks for no GPU reset.")
    return parts


def _yes(flag: bool) -> str:
    return "Yes" if flag else "No"


def _gsp(burst: XidBurst, _facts: Facts) -> list[str]:
    d = burst.detail
    if "timeout_s" not in d:
        return []
    call = f" to call {d['rpc_function']} ({d['rpc_name']})" if "rpc_name" in d else ""
    return [f"The GSP of GPU{d['gpu']} gave no answer{call} for {d['timeout_s']} s."]


def _recovery(burst: XidBurst, _facts: Facts) -> list[str]:
    d = burst.detail
    if "recovery_action" not in d:
        return []
    if d["recovery_code"] == 0:
        before = d["recovery_action_before"]
        return [f"The driver withdrew its request (before: {before}): a recovery, not a fault."]
    change = f"{d['recovery_action']} (before: {d['recovery_action_before']})"
    parts = [f"{where(burst)} now asks for {change}."]
    if d["recovery_code"] in (1, 4):
        parts.append(
            "The codes are no ranking: 0x1 (GPU reset) is stronger than 0x4 (drain first)."
        )
    parts.append(
        "Xid 154 reports the action that other errors call for; it is not the fault itself."
    )
    if burst.parent is None:
        parts.append("Look for the Xid printed before it on this GPU.")
    return parts


def _dram(burst: XidBurst, _facts: Facts) -> list[str]:
    d = burst.detail
    if "fbpa" not in d:
        return []
    sub = f", subpartition {d['subpartition']}" if "subpartition" in d else ""
    address = f", physical address {d['address']}" if "address" in d else ""
    return [f"Place: {d['memory']}, FBPA {d['fbpa']}{sub}{address}."]


def _error_counts(burst: XidBurst, _facts: Facts) -> list[str]:
    counts: dict[str, int] = burst.detail.get("error_counts", {})
    named = [f"{unit.upper()} {count}" for unit, count in counts.items() if count]
    if not named:
        return ["All counts in the line are 0."] if counts else []
    parts = [f"Uncorrectable errors by unit: {', '.join(named)}."]
    if any(not 0 <= count < _MOST_ERRORS for count in counts.values()):
        parts.append("A count that is negative or that large is no count: only the unit is sure.")
    return parts


def _micro_controller(_burst: XidBurst, _facts: Facts) -> list[str]:
    return ["Nothing in the line says that temperature is involved."]


def _link(burst: XidBurst, _facts: Facts) -> list[str]:
    return [f"Link {burst.detail['link']}."] if "link" in burst.detail else []


def _nvlink5(burst: XidBurst, facts: Facts) -> list[str]:
    d = burst.detail
    if "unit" not in d:
        return []
    link = "no link" if d["link"] < 0 else f"link {d['link']}"
    parts = [f"NVLink unit {d['unit']}, {link}, printed {d['severity']}."]
    if d["injected"]:
        parts.append("The error was injected by a test.")
    if "intrinfo" not in d:
        parts.append(
            "The hexadecimal words (IntrInfo and error status) are missing from the line, so the "
            "table row cannot be told: get the full line and the Xid 154 printed next to it."
        )
        return parts
    if d["reason"]:
        means = facts.nvlink5_reason(d["reason"])
        parts.append(f"Reason {d['reason']}{f': {means}' if means else ' (not in the table)'}.")
    codes = f"IntrInfo {d['intrinfo']}"
    if "subcode" in d:
        codes += f" is sub-code {d['subcode']}"
    if "error_status" in d:
        codes += f", error status {d['error_status']}"
    parts.append(f"{codes}.")
    row = d.get("table_row")
    if row is None:
        parts.append("No published row fits these words; go by the Xid 154 printed next to it.")
        return parts
    for side, device in (("local", "this GPU"), ("remote", "the GPU at the far end")):
        expected = [_EXPECT.get(t, str(t).replace("_", " ")) for t in row.get(side, ())]
        if expected:
            parts.append(f"Expect on {device}: {', '.join(expected)}.")
    return parts


Writer = Callable[[XidBurst, Facts], list[str]]
_WRITERS: Mapping[int, Writer] = {
    13: _exception,
    31: _mmu_fault,
    48: _double_bit,
    61: _micro_controller,
    62: _micro_controller,
    63: _row,
    64: _row,
    74: _nvlink4,
    94: _containment,
    95: _containment,
    108: _link,
    119: _gsp,
    136: _nvlink4,
    137: _link,
    140: _error_counts,
    154: _recovery,
    171: _dram,
}
