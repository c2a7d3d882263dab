"""Every reading of a number: mask, Xid, SXid, DCGM field, DCGM blank, most likely first."""

from __future__ import annotations

from bisect import bisect_left

from engine.catalogue.types import Catalogue
from engine.decode.codes import with_context
from engine.decode.entries import candidate
from engine.decode.request import Number
from engine.model import Candidate, Item

MASK_TABLE = "throttle_reasons"
CODE_TABLES = {"xid": "xid", "sxid": "sxid", "dcgm_field": "dcgm_fields"}
_NAMES = {"xid": "Xid", "sxid": "SXid", "dcgm_field": "DCGM field"}

# What DCGM writes where it has no reading: NVIDIA/DCGM dcgmlib/dcgm_structs.h 4.6.0. A 64-bit
# marker that went through a float comes back rounded to 2^63.
_BLANK_BASES = {"INT32": 0x7FFFFFF0, "INT64": 0x7FFFFFFFFFFFFFF0, "FP64": 2**47}
_BLANK_SUFFIXES = ("BLANK", "NOT_FOUND", "NOT_SUPPORTED", "NOT_PERMISSIONED")
_BLANK_SOURCE = "NVIDIA/DCGM dcgmlib/dcgm_structs.h 4.6.0"


def readings(number: Number, catalogue: Catalogue) -> tuple[Candidate, ...]:
    """Return every way to read a bare number, most likely first.

    The order is fixed by what a number is mostly met as:

    0. a DCGM blank is nothing else;
    1. a throttle mask, if it is written in hexadecimal;
    2. a throttle mask as GPUs show them: one reason alone, or hardware slowdown with the companion
       that says why (72 = 0x48, 136 = 0x88). Not where the number is an Xid of critical severity
       (64, 140): to miss such an Xid costs more;
    3. an Xid or SXid that current GPUs and switches report (79, 12028);
    4. a DCGM field (1003);
    5. any other sum of known reasons;
    6. an Xid of old GPUs only;
    7. a mask with bits that nobody has named.
    """
    blank = _blank(number.value)
    if blank:
        return (blank,)
    ranked = [(_mask_rank(number, catalogue), mask(number.value, catalogue))]
    for kind, table in CODE_TABLES.items():
        entry = catalogue.entries.get(table, {}).get(str(number.value))
        if entry is not None:
            rank = 4 if kind == "dcgm_field" else 6 if entry.get("legacy") else 3
            found = candidate(kind, number.value, [with_context(kind, entry, catalogue)])
            ranked.append((rank, found))
    return tuple(found for _, found in sorted(ranked, key=lambda pair: pair[0]))


def mask(value: int, catalogue: Catalogue) -> Candidate:
    """Read a number as a throttle mask: one item a bit that is set, lowest first."""
    table = catalogue.entries.get(MASK_TABLE, {})
    entries = sorted(table.values(), key=lambda entry: int(entry["bit"]))
    found = [entry for entry in entries if entry["bit"] & value]
    unknown = value
    for entry in found:
        unknown &= ~entry["bit"]
    return candidate("throttle", value, found, unknown_bits=unknown)


def code(kind: str, value: int, catalogue: Catalogue) -> tuple[Candidate, tuple[str, ...]]:
    """Read a number as a code of one kind; also return names of neighbours if it is unknown."""
    table = catalogue.entries.get(CODE_TABLES[kind], {})
    entry = table.get(str(value))
    if entry is not None:
        return candidate(kind, value, [with_context(kind, entry, catalogue)]), ()
    numbers = sorted(int(key) for key in table)
    name = _NAMES[kind]
    span = f" Known numbers run from {numbers[0]} to {numbers[-1]}." if numbers else ""
    meaning = f"gpuwhy knows no public document that says what {name} {value} means.{span}"
    item = Item(id=str(value), name="not documented", meaning=meaning)
    position = bisect_left(numbers, value)
    around = numbers[max(0, position - 1) : position + 1]
    word = "field" if kind == "dcgm_field" else kind
    return Candidate(kind, value, (item,)), tuple(f"{word} {other}" for other in around)


def _mask_rank(number: Number, catalogue: Catalogue) -> int:
    if number.hexadecimal:
        return 1
    bits = {
        str(entry["id"]): int(entry["bit"])
        for entry in catalogue.entries.get(MASK_TABLE, {}).values()
    }
    value = number.value
    if value & ~sum(bits.values()):
        return 7
    xid = catalogue.entries.get("xid", {}).get(str(value), {})
    usual = _is_usual(value, bits) and xid.get("severity") != "critical"
    return 2 if usual else 5


def _is_usual(value: int, bits: dict[str, int]) -> bool:
    if value & (value - 1) == 0:
        return True
    why = bits.get("hw_thermal", 0) | bits.get("hw_power_brake", 0)
    beside = bits.get("sw_thermal", 0) | bits.get("sw_power_cap", 0)
    umbrella = bits.get("hw_slowdown", 0)
    return bool(value & umbrella and value & why and not value & ~(umbrella | why | beside))


def _blank(value: int) -> Candidate | None:
    for kind, base in _BLANK_BASES.items():
        offset = value - base
        if 0 <= offset < len(_BLANK_SUFFIXES) or (kind == "INT64" and value == 2**63):
            rounded = value == 2**63
            suffix = "BLANK" if rounded else _BLANK_SUFFIXES[offset]
            why = "one of DCGM's 64-bit blanks, rounded by a float" if rounded else _WHY[suffix]
            item = Item(
                id=f"DCGM_{kind}_{suffix}",
                name="no reading",
                meaning=f"DCGM's marker for a missing value: {why}. Do not reckon with it.",
                action="Treat the series as missing; find out why DCGM cannot read the field.",
            )
            return Candidate("dcgm_blank", value, (item,), sources=(_BLANK_SOURCE,))
    return None


_WHY = {
    "BLANK": "nothing was read yet",
    "NOT_FOUND": "the thing asked about was not found",
    "NOT_SUPPORTED": "this GPU, driver or setting does not support the field",
    "NOT_PERMISSIONED": "DCGM may not read the field",
}
