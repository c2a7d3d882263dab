"""Reader of ``lfs quota`` and ``quota -s``: what a user, group or project may still write.

Sources: lustre/lustre-release lustre/utils/lfs.c (a mark ``*`` stands behind what is over its
soft limit); quota-tools quota(1).
"""

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
    r"^\s{0,8}Filesystem\s{1,24}(kbytes|used|space|blocks)\s{1,12}b?quota\s{1,12}b?limit\s{1,12}"
    r"b?grace\s{1,12}files\s"
)
_TITLE: Final = re.compile(r"^\s{0,4}Disk quotas for (usr|user|grp|group|prj|project) \S{1,64} \(")
_CELL: Final = r"\s{1,24}(\[?[0-9.]{1,20}[kKMGTPE]?i?B?\]?\*?)"
_GRACE: Final = r"(?:\s{1,24}(-|none|expired|[0-9][0-9a-z:]{1,16}))?"
_ROW: Final = re.compile(
    r"^\s{0,20}(\S{1,200})" + _CELL * 3 + _GRACE + _CELL * 3 + _GRACE + r"\s{0,12}$"
)
_NOTE: Final = re.compile(r"^\s{0,4}[ugp]id \S{1,32} is using default \w{4,6} quota setting")
# Part of a hard limit in use from which it is said: as for a file system.
NEAR, FULL = 0.9, 0.98


@dataclass(frozen=True, slots=True)
class Quota:
    """A row; ``space`` and ``files`` are (used, soft limit, hard limit), 0 for no limit."""

    line: int
    host: str | None
    mount: str
    space: tuple[float, float, float]
    files: tuple[float, float, float]
    marked: bool


class QuotaReader(Listing[Quota]):
    """Reads rows under their header; the name of the user is not kept."""

    triggers: ClassVar[tuple[bytes, ...]] = (b"Disk quotas for ",)
    pattern: ClassVar[bytes] = rb"Filesystem +(?:kbytes|used|space|blocks) +b?quota "

    _scale = 1.0

    def take(self, number: int, text: str) -> bool:
        """Take a line of a listing of quotas."""
        header = _HEADER.match(text)
        if header or _TITLE.match(text):
            self._scale = 1024.0 if header and header[1] in ("kbytes", "blocks") else 1.0
            self.inside = True
            return True
        row = _ROW.match(text) if self.inside else None
        if row is None or row[1].endswith(":"):
            return self.inside and bool(_NOTE.match(text))
        cells = [row[i] for i in (2, 3, 4, 6, 7, 8)]
        values = [self._value(cell, bytes_=n < 3) for n, cell in enumerate(cells)]
        self.kept.add(
            Quota(
                number,
                self.host,
                short(row[1], 120),
                (values[0], values[1], values[2]),
                (values[3], values[4], values[5]),
                "*" in cells[0] or "*" in cells[3],
            )
        )
        return True

    def _value(self, cell: str, *, bytes_: bool) -> float:
        bare = cell.strip("[]*")
        value = size_bytes(bare) or 0.0
        return value * self._scale if bytes_ and bare[-1:].isdigit() else value

    def judge(self, records: Sequence[Quota]) -> Result:
        """Say whose limits are reached."""
        return result_of(["quota"], [f for one in records for f in _judged(one)])


def _judged(one: Quota) -> Iterable[Finding]:
    parts = {}
    for what, (used, _, hard) in (("space", one.space), ("files", one.files)):
        if hard > 0:
            parts[what] = used / hard
    worst = max(parts, key=lambda w: parts[w], default=None)
    share = parts[worst] if worst else 0.0
    over = one.marked or share >= FULL
    near = share >= NEAR
    data = {
        "mount": one.mount,
        "used_gb": round(one.space[0] / 1e9, 3),
        "limit_gb": round(one.space[2] / 1e9, 3) if one.space[2] else None,
        "files": int(one.files[0]),
        "files_limit": int(one.files[2]) or None,
        "use_percent": round(100 * share, 1) if worst else None,
        "over_soft_limit": one.marked or None,
    }
    figures = listed(f"{number(round(100 * v, 1))} % of the limit on {w}" for w, v in parts.items())
    yield finding(
        "quota",
        "quota_reached" if over else "quota_near" if near else "quota",
        Severity.HIGH if share >= FULL else Severity.MEDIUM if over else Severity.INFO,
        f"{at(one.host)}Quota on {one.mount}: {figures or 'no hard limit'}"
        + (
            ", over a soft limit: writes fail when its grace time is over."
            if one.marked and share < FULL
            else ": writes fail with EDQUOT, though df shows room."
            if over
            else "."
        ),
        "Delete or move old checkpoints, or ask for a larger quota."
        if over or near
        else "Nothing to do.",
        line=one.line,
        cause="storage_full" if over else None,
        data=data,
        entity=filesystem(one.mount, one.host),
        sources=("lustre/lustre-release 2.17.57 (lfs-quota)", "quota-tools quota(1)"),
    )
