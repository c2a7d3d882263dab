"""Reader of ``df``, ``df -h``, ``df -T`` and ``df -i`` (GNU coreutils)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from engine.model import Finding, Severity
from engine.readers.base import Result
from engine.readers.listing import Listing, at, filesystem, finding, result_of
from engine.readers.quantities import listed, short, size_bytes
from engine.units import number

_HEADER: Final = re.compile(
    r"^\s{0,4}Filesystem\s{1,60}(Type\s{1,12})?(Size|1K-blocks|1M-blocks|1024-blocks|Inodes)"
    r"\s{1,16}I?Used\s"
)
_ROW: Final = re.compile(
    r"^\s{0,4}(\S{1,200})\s{1,60}(?:([a-z][\w.]{1,24})\s{1,12})?([0-9.]{1,20}[KMGTPE]?|-)"
    r"\s{1,16}([0-9.]{1,20}[KMGTPE]?|-)\s{1,16}"
    r"(-?[0-9.]{1,20}[KMGTPE]?|-)\s{1,16}([0-9]{1,3})%\s{1,8}(/.{0,200})$"
)
# Images that are full by nature, and kernel tables.
_NEVER: Final = re.compile(
    r"^(?:/dev/loop|overlay|squashfs|udev|devtmpfs|efivarfs|tmpfs|none|shm|/dev/sr)"
)
_BOOT: Final = re.compile(r"^/(?:boot|snap|run|sys|proc|dev(?!/shm))(?:/|$)")
# Percent in use; ours, as common alerts have it.
FULL, NEAR = 95, 90
# Docker gives /dev/shm 64 MB where nothing else is said.
_DOCKER_SHM: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Filesystem:
    """One row; ``size`` and ``free`` in bytes, or a number of inodes."""

    line: int
    host: str | None
    device: str
    mount: str
    inodes: bool
    size: float
    free: float
    percent: int


class DfReader(Listing[Filesystem]):
    """Reads the table; the header says whether it is space or inodes."""

    triggers: ClassVar[tuple[bytes, ...]] = (b"Filesystem  ",)

    _inodes = False
    _typed = False
    _scale = 1.0

    def take(self, number: int, text: str) -> bool:
        """Take a line of ``df``."""
        header = _HEADER.match(text)
        if header:
            self._inodes, self._typed = header[2] == "Inodes", bool(header[1])
            self._scale = {"Size": 1.0, "1M-blocks": 1_048_576.0}.get(header[2], 1024.0)
            self.inside = True
            return True
        row = _ROW.match(text) if self.inside else None
        if row is None or bool(row[2]) != self._typed:
            return False
        bare = 1.0 if self._inodes else self._scale
        sizes = [size_bytes(row[i]) or 0.0 for i in (3, 5)]
        size, free = (
            s * bare if row[i][-1:].isdigit() else s for s, i in zip(sizes, (3, 5), strict=True)
        )
        self.kept.add(
            Filesystem(
                number,
                self.host,
                short(row[1], 120),
                short(row[7], 120),
                self._inodes,
                size,
                free,
                int(row[6]),
            )
        )
        return True

    def judge(self, records: Sequence[Filesystem]) -> Result:
        """Say what is full, and whether shared memory is small."""
        return result_of(["df"], _judged(records))


def _judged(rows: Sequence[Filesystem]) -> Iterable[Finding]:
    shm = [r for r in rows if r.mount == "/dev/shm" and not r.inodes]  # noqa: S108 - a mount's name
    yield from _shared_memory(shm)
    real = [r for r in rows if not _NEVER.match(r.device) and not _BOOT.match(r.mount)]
    real += [r for r in rows if r.mount == "/" and r not in real]
    full = sorted((r for r in real if r.percent >= NEAR), key=lambda r: -r.percent)
    for one in full[:16]:
        hard = one.percent >= FULL
        what = "inodes" if one.inodes else "space"
        yield finding(
            "df",
            "inodes_full" if one.inodes else "full",
            Severity.HIGH if one.percent >= 98 else Severity.MEDIUM if hard else Severity.LOW,
            f"{at(one.host)}{one.mount}: {one.percent} % of {what} in use"
            + ("." if one.inodes else f", {number(round(one.free / 1e9, 1))} GB left.")
            + (
                " Writes will fail with ENOSPC though df -h shows room."
                if one.inodes and hard
                else ""
            ),
            "Many small files: find the directory (du --inodes -x), pack or delete them."
            if one.inodes
            else "du -xh --max-depth=1 shows where it is; old checkpoints, caches and logs first.",
            line=one.line,
            cause="storage_full" if hard else None,
            data={
                "mount": one.mount,
                "use_percent": one.percent,
                "inodes": one.inodes or None,
                "free_gb": None if one.inodes else round(one.free / 1e9, 3),
            },
            entity=filesystem(one.mount, one.host),
            sources=("GNU coreutils df(1)",),
        )
    if real and not full:
        worst = max(real, key=lambda r: r.percent)
        yield finding(
            "df",
            "room",
            Severity.INFO,
            f"{at(worst.host)}No file system of {listed(dict.fromkeys(r.mount for r in real), 4)} "
            f"is near full: highest {worst.mount} with {worst.percent} %"
            + (" of its inodes." if worst.inodes else "."),
            "df -i shows inodes as well; a full Lustre OST does not show here (lfs df)."
            if not worst.inodes
            else "df -h shows space as well.",
            line=worst.line,
            data={"mount": worst.mount, "use_percent": worst.percent},
            sources=("GNU coreutils df(1)",),
        )


def _shared_memory(rows: Sequence[Filesystem]) -> Iterable[Finding]:
    for one in rows[:4]:
        small = 0 < one.size <= _DOCKER_SHM
        if not small and one.percent < NEAR:
            continue
        yield finding(
            "df",
            "shared_memory",
            Severity.MEDIUM,
            f"{at(one.host)}{one.mount} has {number(round(one.size / 1e6))} MB, {one.percent} % "
            "in use: "
            + ("that is what Docker gives by default, " if small else "nearly full, ")
            + "and data loader workers and NCCL need it.",
            "docker run --shm-size=32g (or --ipc=host); in Kubernetes an emptyDir with medium: "
            "Memory at /dev/shm.",
            line=one.line,
            cause="launch_misconfigured",
            data={
                "mount": one.mount,
                "size_mb": round(one.size / 1e6, 1),
                "use_percent": one.percent,
            },
            sources=(
                "Docker documentation, docker run --shm-size",
                "NVIDIA/nccl docs, troubleshooting",
            ),
        )
