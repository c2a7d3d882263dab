"""Reader of ``dcgmi nvlink --link-status`` and ``--errors``.

Source: NVIDIA/DCGM dcgmi/Nvlink.cpp 2.1 to 4.6.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

from engine.model import Finding, Severity
from engine.readers.base import Context, Result
from engine.readers.dcgmi.diag_result import entity_of
from engine.readers.listing import Kept, Listing, finding, result_of
from engine.readers.quantities import decimal, listed, short

_CELLS: Final = re.compile(r"^\s{0,8}\|(?P<left>[^|]{1,48})\|(?P<right>.{0,256}?)\|?\s*$")
_RULE: Final = re.compile(r"^\s{0,8}[+|][-=+]{3,}")
_TITLE: Final = re.compile(r"^[\s|]{0,12}(?:NvLink Link Status|NVLINK Error Counts)\b")
_WIDE: Final = re.compile(r"^\s{0,8}\|\s{0,8}(?P<text>[^|]{1,100}?)\s*\|?\s*$")
# Titles of dcgmi's other tables.
_OTHER: Final = re.compile(
    r"^Successfully |^[|+][- ]{0,8}(?:Execution Stats|Health Monitor|Policy|Statistics|Summary)"
)
MAX_GPUS: Final = 512


@dataclass(slots=True)
class Links:
    """The NVLinks of one GPU or switch: states by letter, or error counts by name and link."""

    line: int
    host: str | None
    kind: str
    id: int
    states: str = ""
    counts: dict[str, dict[str, int]] = field(default_factory=dict)


class NvlinkReader(Listing[Links]):
    """Reads ``dcgmi nvlink --link-status`` and ``--errors``."""

    triggers: ClassVar[tuple[bytes, ...]] = (b"NvLink Link Status", b"NVLINK Error Counts")
    # The first line of a table whose title was cut off.
    pattern: ClassVar[bytes] = rb"(?m)^[ \t]{0,16}gpuId {1,4}[0-9]{1,4}:[ \t\r]*$"
    PATIENCE: ClassVar[int] = 3
    _owner: ClassVar[re.Pattern[str]] = re.compile(
        r"^\s{0,16}(?P<kind>gpuId|physicalId)\s{1,4}(?P<id>\d{1,5}):?\s*$"
    )
    _letters: ClassVar[re.Pattern[str]] = re.compile(r"^\s{0,24}(?:[UDX_] ){0,255}[UDX_]\s*$")
    _gpu: ClassVar[re.Pattern[str]] = re.compile(r"^GPU (?:ID:? ?)?(?P<id>\d{1,5})\b")

    def __init__(
        self, context: Context, host: str | None = None, kept: Kept[Links] | None = None
    ) -> None:
        super().__init__(context, host, Kept(MAX_GPUS) if kept is None else kept)
        self._one: Links | None = None
        self._link = ""

    def take(self, number: int, text: str) -> bool:
        """Take a line of either table."""
        if _TITLE.match(text):
            self._one, self.inside = None, True
            return True
        if not self.inside:
            self.inside = "gpuId" in text and self._owner.match(text) is not None
        if not self.inside:
            return False
        stripped = text.strip()
        if _OTHER.search(text):
            self.inside = False
            return False
        if _RULE.match(text) or stripped in ("GPUs:", "NvSwitches:") or not stripped:
            return True
        if stripped.startswith(("Key: Up=U", "Link Entities:", "No GPUs", "No NvSwitches")):
            return True
        owner = self._owner.match(text)
        if owner is not None:
            kind = "GPU" if owner["kind"] == "gpuId" else "NVSwitch"
            self._begin(number, kind, int(owner["id"]))
            return True
        if self._letters.match(text) and self._one is not None:
            self._one.states += "".join(stripped.split())
            return True
        return self._count(number, text)

    def judge(self, records: Sequence[Links]) -> Result:
        """Say which links are down, and which count errors."""
        most = max((one.states.count("U") for one in records if one.kind == "GPU"), default=0)
        found = [f for one in records for f in (*_down(one), *_without(one, most), *_errors(one))]
        if not found:
            up = sum(one.states.count("U") for one in records)
            states = any(one.states for one in records)
            found = [
                finding(
                    "dcgmi_nvlink",
                    "links",
                    Severity.INFO,
                    f"{up} NVLink(s) of {len(records)} device(s) are up, none is down."
                    if states
                    else f"No NVLink error is counted on {len(records)} device(s).",
                    "Nothing. Width and speed are not in this table: nvidia-smi nvlink -s.",
                    line=records[0].line,
                    data={"up": up, "down": 0} if states else {"errors": 0},
                )
            ]
        return result_of(["dcgmi_nvlink"], found)

    def _begin(self, number: int, kind: str, id_: int) -> None:
        self._one = Links(number, self.host, kind, id_)
        if not self.kept.add(self._one):
            self._one = None
        self._link = ""

    def _count(self, number: int, text: str) -> bool:
        cells = _CELLS.match(text)
        wide = _WIDE.match(text) if cells is None else None
        name = (cells["left"] if cells else wide["text"] if wide else "").strip()
        gpu = self._gpu.match(name)
        if gpu is not None:
            self._begin(number, "GPU", int(gpu["id"]))
            return True
        if cells is None:
            return wide is not None
        value = decimal(cells["right"])
        if name.startswith("Link "):
            self._link = name.removeprefix("Link ")[:8]
        elif name.startswith("->") and value and self._one is not None:
            kind = short(name.removeprefix("->"), 32)
            counts = self._one.counts.setdefault(kind, {})
            if len(counts) < 64 and len(self._one.counts) <= 32:
                counts[self._link] = int(value)
        return True


def _down(one: Links) -> Iterator[Finding]:
    down = [i for i, state in enumerate(one.states) if state == "D"]
    if not down:
        return
    up = one.states.count("U")
    yield finding(
        "dcgmi_nvlink",
        "down",
        Severity.HIGH,
        f"{one.kind} {one.id}: NVLink {listed(down, 12)} down, {up} up of "
        f"{len(one.states) - one.states.count('_')}. Peer traffic over it is slower or fails.",
        "Read dmesg for Xid 74 or 144 to 150 and SXids; reset all GPUs of the fabric with jobs "
        "stopped. A link that stays down needs hardware service.",
        line=one.line,
        cause="nvlink_down",
        data={"links_down": down, "up": up, "gpu": one.id if one.kind == "GPU" else None},
        entity=entity_of(one.id, one.host) if one.kind == "GPU" else None,
    )


def _without(one: Links, most: int) -> Iterator[Finding]:
    """A GPU with disabled links, or with none at all, where its neighbours have theirs."""
    up, off = one.states.count("U"), one.states.count("X")
    if one.kind != "GPU" or not one.states or "D" in one.states or up >= most:
        return
    what = f"{off} NVLink(s) disabled" if off else "fewer NVLinks than its neighbours"
    yield finding(
        "dcgmi_nvlink",
        "missing",
        Severity.MEDIUM,
        f"GPU {one.id}: {what}: {up} up, where a neighbour has {most}. Peer traffic with it is "
        "slower, or goes over PCIe.",
        "nvidia-smi nvlink -s; nvidia-smi --query-gpu=index,mig.mode.current --format=csv (one in "
        "MIG mode has no NVLink); dmesg for Xid 74 and fabric manager's log. Reset all GPUs of the "
        "fabric with jobs stopped.",
        line=one.line,
        cause="nvlink_down",
        data={"gpu": one.id, "up": up, "disabled": off, "most_up": most},
        entity=entity_of(one.id, one.host),
    )


def _errors(one: Links) -> Iterator[Finding]:
    if not one.counts:
        return
    totals = {name: sum(counts.values()) for name, counts in one.counts.items()}
    links = sorted({link for counts in one.counts.values() for link in counts})
    grave = any(w in name for name in totals for w in ("Recovery", "Integrity", "Effective Error"))
    yield finding(
        "dcgmi_nvlink",
        "errors",
        Severity.MEDIUM if grave else Severity.LOW,
        f"{one.kind} {one.id}: NVLink errors on link {listed(links, 12)}: "
        + listed((f"{name} {count}" for name, count in totals.items()), 8)
        + ". They are totals since the driver was loaded"
        + (
            "; recoveries interrupt the link."
            if grave
            else ": a few replays or CRC errors are normal, a rising count is not."
        ),
        "Take the counts twice, some minutes apart, under load: dcgmi nvlink --errors -g "
        f"{one.id}. DCGM's own limit is 100 CRC errors per second.",
        line=one.line,
        cause="nvlink_errors" if grave else None,
        data={"links": links, "counts": totals, "gpu": one.id},
        entity=entity_of(one.id, one.host),
    )
