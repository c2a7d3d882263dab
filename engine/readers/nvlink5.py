"""The words of an NVLink 5 Xid (144 to 150) and the row of NVIDIA's table that they select.

``UNIT  Fatal|Nonfatal  XC0 i0 Link 09 (W0 W1 …)``: W0 is IntrInfo, W1 the error status. IntrInfo
has two layouts. Drivers before R575: sub-code in bits 9:5. R575 on: bits 6:0. In both, bits 25:20
hold the reason of a link-down event. The layout is told by the sub-code that fits the printed unit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

XIDS = frozenset(range(144, 151))
LINK_EVENTS = frozenset({"NETIR_LINK_EVT", "NETIR_LINK_DOWN"})

_LINE = re.compile(
    r"(?P<unit>\S[\w /.-]{0,60}?)\s{1,20}(?P<severity>Fatal|Nonfatal|Non-fatal|Link Fatal)"
    r"\s{1,20}XC(?P<xc>[01])\s{1,20}i(?P<injected>[01])\s{1,20}Link\s{1,20}(?P<link>-?\d{1,3})"
    r"(?P<words>\s{0,20}\(?(?:\s{0,4}0x[0-9A-Fa-f]{1,8}){1,12})?"
)
_WORD = re.compile(r"0x[0-9A-Fa-f]{1,8}")
# From harmless to worst: which row decides when several status bits are set.
_WEIGHT = {"IGNORE": 0, "XID_154_EVAL": 1, "RESET_GPU": 2}


def parse(message: str, rows: Sequence[Mapping[str, Any]], xid: int) -> dict[str, Any]:
    """Return the decoded words of an NVLink 5 message, with the table's row where one matches.

    Keys: unit, severity (as printed), link (-1: none), cross_contained, injected, and with the
    hexadecimal words intrinfo, error_status, subcode, reason, layout; ``table_row`` is the table's
    entry. Without the words the sub-code is given only where the unit alone decides it.
    """
    match = _LINE.search(message)
    if not match:
        return {}
    detail: dict[str, Any] = {
        "unit": match["unit"],
        "severity": match["severity"],
        "link": int(match["link"]),
        "cross_contained": match["xc"] == "1",
        "injected": match["injected"] == "1",
    }
    words = _WORD.findall(match["words"] or "")
    of_unit = [r for r in rows if r["xid"] == xid and match["unit"] in _unit_names(r)]
    if not words:
        codes = {r[key] for r in of_unit for key in ("subcode_v1", "subcode_v2")}
        if len(codes) == 1 and None not in codes:
            detail["subcode"] = codes.pop()
        return detail
    info = int(words[0], 16)
    detail["intrinfo"] = words[0]
    detail["reason"] = info >> 20 & 0x3F
    layout, subcode = _layout(info, of_unit)
    if subcode is not None:
        detail |= {"subcode": subcode, "intrinfo_layout": layout}
    if len(words) > 1:
        detail["error_status"] = words[1]
        row = _row(of_unit, info, subcode, int(words[1], 16), layout)
        if row is not None:
            detail["table_row"] = row
    return detail


def _unit_names(row: Mapping[str, Any]) -> list[str]:
    names = [str(name) for name in row["unit"]]
    return [*names, "/".join(names)]


def _layout(info: int, rows: Iterable[Mapping[str, Any]]) -> tuple[str | None, int | None]:
    """Return the layout whose sub-code belongs to the printed unit; the older one on a tie."""
    codes = {"before R575": info >> 5 & 0x1F, "R575 on": info & 0x7F}
    for key, (name, code) in zip(("subcode_v1", "subcode_v2"), codes.items(), strict=True):
        if any(r[key] == code for r in rows):
            return name, code
    return None, None


def _row(
    rows: Sequence[Mapping[str, Any]],
    info: int,
    subcode: int | None,
    status: int,
    layout: str | None,
) -> dict[str, Any] | None:
    key = "subcode_v1" if layout == "before R575" else "subcode_v2"
    reason = info >> 20 & 0x3F
    fitting = [r for r in rows if r[key] == subcode and r["reason"] in (reason, 0)]
    exact = [r for r in fitting if r["reason"] == reason and _status_is(r, status)]
    if not exact and fitting and fitting[0]["unit"][0].startswith("NETIR"):
        return None  # reason and status are numbers there, not bits
    if not exact:
        exact = [r for r in fitting if _status_has(r, status)]
    if not exact:
        return None
    return max((_with_extra_bit(r, info, layout) for r in exact), key=_weight)


def _status_is(row: Mapping[str, Any], status: int) -> bool:
    written = str(row["error_status"])
    return written == "any" or status in {int(w, 16) for w in _WORD.findall(written)}


def _status_has(row: Mapping[str, Any], status: int) -> bool:
    return any(int(w, 16) & status for w in _WORD.findall(str(row["error_status"])))


def _with_extra_bit(row: Mapping[str, Any], info: int, layout: str | None) -> dict[str, Any]:
    """Apply the rows that turn fatal when the bit above the sub-code is set."""
    extra = row.get("if_extra_bit_set")
    plain = {k: v for k, v in row.items() if k != "if_extra_bit_set"}
    if extra and info >> int(extra["bit_v1" if layout == "before R575" else "bit_v2"]) & 1:
        plain["resolution"] = extra["resolution"]
    return plain


def _weight(row: Mapping[str, Any]) -> int:
    return _WEIGHT.get(str(row["resolution"]), 1)
