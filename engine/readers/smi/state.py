"""What one run of ``nvidia-smi`` says about one GPU, whatever the form of its output."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Final

from engine.model import Entity, Kind
from engine.readers.throttle import Around

_PCI: Final = re.compile(r"^(?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]$")
_NUMBER: Final = re.compile(
    r"^(-?[0-9]{1,18}(?:\.[0-9]{1,6})?)"
    r" ?(C|W|mW|MHz|GHz|us|%|x|MiB|GiB|KiB|MB|GB|KB/s|MB/s|GB/s|mV|bank\(s\))?$"
)
_TO: Final = {"mW": 1e-3, "GHz": 1e3, "GiB": 1024.0, "KiB": 1 / 1024, "GB": 1024.0}
_WIDE: Final = 96
# What stands where the driver has no value; brackets around it in CSV.
NOTHING: Final = frozenset({"n/a", "not supported", "not available", "-", "", "unknown"})
DEPRECATED: Final = "requested functionality has been deprecated"
# What stands where the driver could not read a value: the words of `nvmlErrorString`.
_UNREADABLE: Final = {
    "err!": "ERR!",
    "gpu requires reset": "GPU requires reset",
    "gpu is lost": "GPU is lost",
    "unknown error": "Unknown Error",
    "insufficient permissions": "Insufficient Permissions",
    "timeout": "Timeout",
    "gpu access blocked by the operating system": "GPU access blocked by the operating system",
}
# Readings that every working GPU has; that the driver cannot read them is a fault of the GPU.
CORE: Final = frozenset(
    {"gpu_temp_c", "power_w", "pstate", "sm_clock_mhz", "gpu_util_percent", "fb_used_mib"}
)


@dataclass(slots=True)
class Process:
    """A process on a GPU; memory in MiB, ``kind`` C (compute), G (graphics), M+C (MPS)."""

    pid: int
    kind: str
    name: str
    memory_mib: float | None = None
    gi: str | None = None


@dataclass(slots=True)
class Run:
    """One run of the tool: driver version, GPUs that it says there are, GPUs that it lists."""

    driver: str | None = None
    attached: int | None = None
    listed: int = 0
    order: dict[int, GpuState] = field(default_factory=dict, repr=False, compare=False)

    def add(self, gpu: GpuState) -> None:
        """Take the next GPU of a listing: once all that are attached stand there, index them.

        The tool lists them in the order of their indices; of a part of them (``-i``, an excerpt)
        nothing tells the indices.
        """
        self.listed += 1
        if self.attached is None or len(self.order) >= self.attached:
            return
        self.order[id(gpu)] = gpu
        if len(self.order) == self.attached:
            for place, one in enumerate(self.order.values()):
                one.index = place if one.index is None else one.index


@dataclass(slots=True)
class GpuState:
    """Readings of one GPU.

    Attributes:
        numbers: by name, the unit at its end (``_c``, ``_w``, ``_mhz``, ``_mib``, ``_percent``).
        words: settings and states as printed.
        flags: clock event reasons, by id; ``mask`` their sum where it was printed as a number.
        counters_us: time under each reason since the driver was loaded (us).
        unreadable: names of readings to what stands in their place (``GPU requires reset``).
        processes: what runs on it; None where the output has no list of processes.
        run: the run of the tool that it was read in.
        place: where it stands in a list that names no GPU, from 0.
    """

    index: int | None = None
    pci: str | None = None
    uuid: str | None = None
    name: str | None = None
    host: str | None = None
    line: int | None = None
    flags_line: int | None = None
    numbers: dict[str, float] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)
    flags: dict[str, bool] = field(default_factory=dict)
    mask: int | None = None
    counters_us: dict[str, int] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)
    processes: list[Process] | None = None
    run: Run = field(default_factory=Run)
    place: int | None = None

    @property
    def label(self) -> str:
        """How to call the GPU in a sentence: by index, address and host, else its UUID."""
        if self.index is None:
            name = self.title
        else:
            address = f" ({short_pci(self.pci)})" if self.pci else ""
            name = f"GPU {self.index}{address}"
        return f"{name} of {self.host}" if self.host else name

    @property
    def title(self) -> str:
        """The GPU's name as an entity: its index, else its address, else its UUID."""
        if self.index is not None:
            return f"{self.host}:{self.index}" if self.host else f"GPU {self.index}"
        if self.pci:
            return f"GPU {self.pci}"
        if self.uuid is None and self.place is not None:
            return f"GPU {self.place} of the list"
        return self.uuid or "the GPU"

    @property
    def entity(self) -> Entity | None:
        """The GPU as an entity; None where nothing tells which one it is."""
        if self.index is None and self.pci is None and self.uuid is None:
            return None
        return Entity(
            Kind.GPU,
            self.title,
            host=self.host,
            gpu=self.index,
            uuid=self.uuid,
            pci=self.pci,
            model=self.name,
        )

    @property
    def handle(self) -> int | str | None:
        """What ``nvidia-smi -i`` takes for the GPU: its index, else its address, else its UUID."""
        return self.index if self.index is not None else self.pci or self.uuid

    @property
    def known(self) -> bool:
        """Whether anything at all was read."""
        there = self.numbers or self.words or self.flags or self.unreadable
        return bool(there) or self.mask is not None

    @property
    def busy(self) -> bool | None:
        """Whether work runs: utilisation above 0, or below it the idle reason; None if unknown."""
        util = self.numbers.get("gpu_util_percent")
        if util is not None:
            return util > 0
        idle = self.flags.get("gpu_idle")
        if idle is None and self.mask is not None:
            idle = bool(self.mask & 1)
        return None if idle is None else not idle

    def take(self, name: str, raw: str) -> bool:
        """Take one printed value under a known name; False where it is neither value nor error."""
        value = raw.strip().strip("[]").strip()
        low = value.lower()
        if low in NOTHING or low == DEPRECATED:
            return True
        if low in _UNREADABLE:
            self.unreadable[name] = _UNREADABLE[low]
            return True
        if name == "pstate":
            return self._pstate(value)
        if not name.endswith(NUMERIC):
            self.words[name] = shown(value)
            return True
        number = number_of(value)
        if number is None:
            return False
        self.numbers[name] = number
        return True

    def around(self) -> Around:
        """The readings beside a clock event mask."""
        around = Around(pstate=self.words.get("pstate"), counters_us=dict(self.counters_us))
        for name in Around.__slots__:
            if name in self.numbers and name != "pstate":
                setattr(around, name, self.numbers[name])
        around.power_limit_w = self.limit_w
        if around.power_w is None:
            around.power_w = self.numbers.get("power_instant_w")
        return around

    @property
    def limit_w(self) -> float | None:
        """The power limit that holds: the enforced one, else the one that was asked for (W)."""
        enforced = self.numbers.get("enforced_power_limit_w")
        return enforced if enforced is not None else self.numbers.get("power_limit_w")

    @property
    def lost(self) -> str | None:
        """What stands in place of the core readings, where that is so for two of them or more.

        One odd word alone is no fault: some drivers cannot read single sensors of some boards.
        """
        said = [why for name, why in self.unreadable.items() if name in CORE]
        for word in ("GPU requires reset", "GPU is lost"):
            if word in self.unreadable.values():
                return word
        bad = [w for w in said if w in ("ERR!", "Unknown Error", "Timeout")]
        return bad[0] if len(bad) > 1 else None

    def _pstate(self, value: str) -> bool:
        if not re.fullmatch(r"P[0-9]{1,2}", value):
            return False
        self.words["pstate"] = value
        self.numbers["pstate"] = float(value[1:])
        return True


NUMERIC: Final = (
    "_c",
    "_w",
    "_mhz",
    "_mib",
    "_percent",
    "_gen",
    "_width",
    "_max",
    "_count",
    "_kbs",
)


def number_of(text: str) -> float | None:
    """Return a printed number in the unit of its name (W, MHz, MiB, C …), None if it is none."""
    found = _NUMBER.match(text)
    if found is None:
        return None
    value = float(found[1]) * _TO.get(found[2] or "", 1.0)
    return value if math.isfinite(value) else None


def pci_of(text: str) -> str | None:
    """Return a PCI address in lower case, None if the text is none."""
    return text.lower() if _PCI.match(text) else None


def short_pci(pci: str) -> str:
    """Return an address without its domain where that is 0."""
    domain, _, rest = pci.partition(":")
    return pci if rest.count(":") != 1 or domain.strip("0") else rest


def shown(text: str) -> str:
    """Return untrusted text fit to be repeated: one short line of printable characters."""
    clean = "".join(c if c.isprintable() else " " for c in text[: 2 * _WIDE])
    clean = " ".join(clean.split())
    return clean if len(clean) <= _WIDE else clean[: _WIDE - 1] + "…"


def listed(items: list[str], limit: int = 12) -> str:
    """Return names as a list in words, the rest counted."""
    head = ", ".join(items[:limit])
    return head if len(items) <= limit else f"{head} and {len(items) - limit} more"


def ranges(numbers: list[int]) -> str:
    """Return whole numbers with runs written short: ``0-3, 6``."""
    out: list[str] = []
    ordered = sorted(set(numbers))
    start = 0
    for i in range(1, len(ordered) + 1):
        if i == len(ordered) or ordered[i] != ordered[i - 1] + 1:
            first, last = ordered[start], ordered[i - 1]
            out.append(str(first) if first == last else f"{first}-{last}")
            start = i
    return listed(out)
