"""What one AMD GPU showed, under one set of names whatever tool and form it came from."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.model import Entity, Kind

_MAX_MISSING = 128


@dataclass(slots=True)
class AmdGpu:
    """Values of one GPU, or of one partition of it.

    Attributes:
        numbers: readings; names end in their unit (``_c``, ``_w``, ``_mhz``, ``_percent``,
            ``_mb``, ``_gts``, ``_count``).
        words: texts such as ``perf_level`` or ``throttle_status``.
        ecc: block: correctable, uncorrectable and deferred errors.
        active: violations that are active now.
        links_down: ports of XGMI that are down.
        pages: bad memory pages by state: retired, pending, un_res (not reservable).
        missing: names of readings that the tool printed without a value.
    """

    line: int
    index: int | None = None
    host: str | None = None
    pci: str | None = None
    model: str | None = None
    partition: int | None = None
    numbers: dict[str, float] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)
    ecc: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    active: list[str] = field(default_factory=list)
    links_down: list[int] = field(default_factory=list)
    pages: dict[str, int] = field(default_factory=dict)
    missing: dict[str, None] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """What to call it: ``GPU 3``, with its host where that is known."""
        name = f"GPU {self.index}" if self.index is not None else f"GPU {self.pci or '?'}"
        return f"{self.host}: {name}" if self.host else name

    @property
    def entity(self) -> Entity:
        """The GPU as an entity."""
        if self.index is not None:
            name = f"{self.host}:{self.index}" if self.host else f"GPU {self.index}"
        else:
            name = f"GPU {self.pci}" if self.pci else "the GPU"
        return Entity(
            Kind.GPU, name, host=self.host, gpu=self.index, pci=self.pci, model=self.model
        )

    @property
    def whole(self) -> bool:
        """Whether sensors are its own: only the first partition of a board has them."""
        return not self.partition

    def get(self, name: str) -> float | None:
        """Return a reading."""
        return self.numbers.get(name)

    def activate(self, violation: str) -> None:
        """Take note of a violation that is active now."""
        if violation not in self.active:
            self.active.append(violation)

    def lacks(self, name: str) -> None:
        """Take note of a reading that was printed without a value."""
        if name not in self.numbers and len(self.missing) < _MAX_MISSING:
            self.missing[name] = None

    def merge(self, other: AmdGpu) -> None:
        """Take over what another listing says of the same GPU."""
        self.numbers |= other.numbers
        self.words |= other.words
        self.ecc |= other.ecc
        self.active += [a for a in other.active if a not in self.active]
        self.links_down += [p for p in other.links_down if p not in self.links_down]
        for kind, count in other.pages.items():
            self.pages[kind] = max(count, self.pages.get(kind, 0))
        self.missing |= other.missing
        self.pci = self.pci or other.pci
        self.model = self.model or other.model
        self.partition = other.partition if self.partition is None else self.partition


@dataclass(slots=True)
class Version:
    """What ``amd-smi version`` prints: ``tool``, ``library``, ``rocm`` and ``driver``."""

    line: int
    host: str | None
    parts: dict[str, str | None]


@dataclass(slots=True)
class LowPower:
    """The warning of ``rocm-smi`` that some device is in a low-power state."""

    line: int
    host: str | None


@dataclass(slots=True)
class Groups:
    """The warning of ``amd-smi`` that the user is not in groups that own the devices."""

    line: int
    host: str | None
    names: str


class Gpus:
    """The GPUs of a text, in order, merged by host and index; bounded."""

    LIMIT = 1_024

    def __init__(self) -> None:
        self._known: dict[tuple[str | None, object], AmdGpu] = {}
        self.overflow = 0

    def add(self, gpu: AmdGpu) -> None:
        """Add a GPU, or what another listing says of it."""
        key = (gpu.host, gpu.index if gpu.index is not None else gpu.pci)
        before = self._known.get(key)
        if before is not None:
            before.merge(gpu)
        elif len(self._known) < self.LIMIT:
            self._known[key] = gpu
        else:
            self.overflow += 1

    def all(self) -> list[AmdGpu]:
        """Return them."""
        return list(self._known.values())
