"""Reader of ``lfs df``, ``lfs df -h`` and ``lfs df -i`` (lustre-release lustre/utils/lfs.c)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from engine.model import Finding, Severity
from engine.readers.base import Result
from engine.readers.listing import Listing, filesystem, finding, result_of
from engine.readers.quantities import listed, plural, short, size_bytes
from engine.units import number

_HEADER: Final = re.compile(
    r"^\s{0,4}UUID\s{1,40}(bytes|1K-blocks|1M-blocks|Inodes)\s{1,20}I?Used\s{1,20}"
)
_ROW: Final = re.compile(
    r"^\s{0,4}(\S{1,64}?-(?:MDT|OST)[0-9a-f]{4}(?:_UUID)?|filesystem[ _]summary:)"
    r"\s{1,40}([0-9.]{1,20}[KMGTPE]?)\s{1,24}"
    r"([0-9.]{1,20}[KMGTPE]?)\s{1,24}([0-9.]{1,20}[KMGTPE]?)\s{1,12}([0-9]{1,3})%"
    r"\s{1,8}(\S{1,200}?)"
    r"(?:\[(MDT|OST):([0-9]{1,5})\])?\s{0,4}([DSIRNFfx]{1,6})?\s*$"
)
_MISSING: Final = re.compile(
    r"^\s{0,4}((?:\S{1,56}-)?(?:OST|MDT)[0-9a-f]{4}(?:_UUID)?)\s{0,24}: (inactive device|"
    r"[A-Z][A-Za-z ]{4,60})\s*$"
)
# Percent in use. knowledge/storage_checklist: act when a target is above 90 %, or alone far above
# the others; inodes from 80 %. The spread of 20 is a rule of thumb.
FULL, HARD_FULL, INODES, SPREAD = 90, 95, 80, 20


@dataclass(frozen=True, slots=True)
class Target:
    """One target, or the sum. ``state`` is set where no figures could be had."""

    line: int
    name: str
    mount: str
    inodes: bool
    percent: int
    free: float
    kind: str | None = None
    state: str | None = None

    @property
    def summary(self) -> bool:
        """Whether this is the line of the whole file system."""
        return self.name.startswith("filesystem")

    @property
    def label(self) -> str:
        """The target's name without its suffix."""
        return self.name.removesuffix("_UUID")


class LfsDfReader(Listing[Target]):
    """Reads rows of targets; the header says whether they are bytes or inodes."""

    triggers: ClassVar[tuple[bytes, ...]] = (
        b"filesystem_summary:",
        b"filesystem summary:",
        b": inactive device",
    )
    pattern: ClassVar[bytes] = rb"UUID +(?:bytes|1K-blocks|1M-blocks|Inodes) "
    PATIENCE = 2

    _inodes = False
    _scale = 1.0

    def take(self, number: int, text: str) -> bool:
        """Take a line of ``lfs df``."""
        header = _HEADER.match(text)
        if header:
            self._inodes = header[1] == "Inodes"
            self._scale = {"1K-blocks": 1024.0, "1M-blocks": 1_048_576.0}.get(header[1], 1.0)
            self.inside = True
            return True
        row = _ROW.match(text)
        if row and (self.inside or row[7]):
            free = size_bytes(row[4]) or 0.0
            scale = 1.0 if self._inodes or not row[4].isdigit() else self._scale
            self.kept.add(
                Target(
                    number,
                    short(row[1]),
                    short(row[6], 120),
                    self._inodes,
                    int(row[5]),
                    free * scale,
                    row[7],
                )
            )
            return True
        gone = _MISSING.match(text)
        if gone and (self.inside or "inactive" in gone[2]):
            self.kept.add(
                Target(number, short(gone[1]), "", self._inodes, 0, 0.0, None, short(gone[2], 60))
            )
            return True
        return False

    def judge(self, records: Sequence[Target]) -> Result:
        """Say which targets are full, uneven or gone."""
        rows = [t for t in records if t.state is None]
        mounts = dict.fromkeys((t.mount, t.inodes) for t in rows)
        found = [*_gone([t for t in records if t.state])]
        for mount, inodes in mounts:
            found += _mount(
                [t for t in rows if (t.mount, t.inodes) == (mount, inodes)], mount, inodes
            )
        return result_of(["lfs_df"], found)


def _gone(targets: Sequence[Target]) -> Iterable[Finding]:
    names = {
        state: list(dict.fromkeys(t.label for t in targets if t.state == state))
        for state in dict.fromkeys(t.state for t in targets)
    }
    for state, of_state in names.items():
        first = next(t for t in targets if t.state == state)
        inactive = state == "inactive device"
        yield finding(
            "lfs_df",
            "target_inactive" if inactive else "target_unavailable",
            Severity.MEDIUM if inactive else Severity.HIGH,
            f"{listed(of_state)} {'is' if len(of_state) == 1 else 'are'} "
            + (
                "inactive on this client: switched off by an administrator, or given up. Files "
                "with a part there cannot be read."
                if inactive
                else f"not answering ({state}): reads and writes of files with a part there wait."
            ),
            "lctl get_param osc.*.import on the client (state FULL?), lfs check osts, then the "
            "server of that target.",
            line=first.line,
            cause=None if inactive else "storage_slow",
            data={"targets": of_state, "state": state},
            sources=("lustre/lustre-release 2.17.57 (lfs-df, lfs-check)",),
        )


def _mount(rows: Sequence[Target], mount: str, inodes: bool) -> Iterable[Finding]:
    what = "inodes" if inodes else "space"
    parts = [t for t in rows if not t.summary]
    summary = next((t for t in rows if t.summary), None)
    limit = INODES if inodes else FULL
    full = sorted((t for t in parts if t.percent >= limit), key=lambda t: -t.percent)
    whole = summary.percent if summary else None
    percents = [t.percent for t in parts if t.kind != "MDT" or inodes]
    data = {
        "mount": mount,
        "targets": len(parts),
        "summary_percent": whole,
        "highest_percent": max(percents, default=None),
        "lowest_percent": min(percents, default=None),
    }
    if full or (whole is not None and whole >= limit):
        worst = max([*full, *([summary] if summary else [])], key=lambda t: t.percent)
        sure = worst.percent >= HARD_FULL or (not inodes and worst.percent >= FULL)
        yield finding(
            "lfs_df",
            "inodes_full" if inodes else "target_full" if full else "full",
            Severity.HIGH if worst.percent >= HARD_FULL else Severity.MEDIUM,
            (
                f"{mount}: {listed(f'{t.label} {t.percent} %' for t in full)} of {what} in use"
                if full
                else f"{mount}: {whole} % of {what} in use"
            )
            + (f", the whole file system {whole} %." if full and whole is not None else ".")
            + (
                " A full target stops writes to files striped over it though the rest has room."
                if full and not inodes and (whole or 0) < FULL
                else ""
            ),
            "Pack small files into shards and delete what is not needed (lfs find)."
            if inodes
            else "Move files off the full target (lfs find --ost ... | lfs_migrate), or delete; "
            "new files: lfs setstripe -c -1 for large ones.",
            line=worst.line,
            cause="storage_full" if sure else None,
            data=data
            | {
                "target": worst.label,
                "use_percent": worst.percent,
                "full_targets": [t.label for t in full[:64]],
            },
            entity=filesystem(mount),
            sources=("lustre/lustre-release 2.17.57 (lfs-df, lfs-find, lfs-migrate)",),
        )
        return
    spread = max(percents, default=0) - min(percents, default=0)
    uneven = not inodes and spread >= SPREAD and len(percents) > 2
    yield finding(
        "lfs_df",
        "uneven" if uneven else "room",
        Severity.LOW if uneven else Severity.INFO,
        f"{mount}: {plural(len(parts), 'target')}, {what} in use "
        f"{number(min(percents, default=0))} to {number(max(percents, default=0))} %"
        + (f", the whole {whole} %" if whole is not None else "")
        + (
            ": uneven, so the fuller ones will be full long before the rest."
            if uneven
            else ". Nothing is near full."
        ),
        "New files follow the free space by themselves; move large old ones with lfs_migrate."
        if uneven
        else "Nothing to do; speed is not in this listing (lctl get_param llite.*.stats).",
        line=rows[0].line,
        data=data,
        entity=filesystem(mount),
        sources=("lustre/lustre-release 2.17.57 (lfs-df)",),
    )
