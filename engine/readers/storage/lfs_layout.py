"""Readers of ``lfs getstripe`` and ``lfs check`` (lustre-release lustre/utils/lfs.c)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

from engine.model import Severity
from engine.readers.base import Result
from engine.readers.listing import Listing, finding, result_of
from engine.readers.quantities import integer, listed, plural, short

SOURCES: Final = ("lustre/lustre-release 2.17.57 (lfs-getstripe, lfs-check)",)
_VALUE: Final = re.compile(
    r"(?:^|\s)(?:lmm_)?(stripe_count|stripe_size|stripe_offset|pattern|pool):"
    r"\s{1,12}(-?[\w,.]{1,40})"
)
_OBJECT: Final = re.compile(
    r"^\s{1,12}([0-9]{1,5})\s{1,20}[0-9]{1,20}\s{1,20}0x[0-9a-f]{1,16}\s{1,20}"
    r"(?:0x)?[0-9a-f]{1,16}\s*$"
)
_COMPONENT: Final = re.compile(r"lcme_extent\.e_end:\s{1,8}(EOF|[0-9]{1,20})")


@dataclass(slots=True)
class Layout:
    """Stripes of a file or a component of it; ``default`` marks what new files would get."""

    line: int
    values: dict[str, str] = field(default_factory=dict)
    objects: list[int] = field(default_factory=list)
    end: str | None = None


class GetstripeReader(Listing[Layout]):
    """Reads ``stripe_count`` and kin of files, components and directories."""

    triggers: ClassVar[tuple[bytes, ...]] = (b"stripe_count:", b"lcme_extent")
    PATIENCE = 4

    _layout: Layout | None = None

    def take(self, number: int, text: str) -> bool:
        """Take a line of ``lfs getstripe``."""
        pairs = _VALUE.findall(text)
        component = _COMPONENT.search(text)
        if component or any(key == "stripe_count" for key, _ in pairs):
            layout = self._layout
            if layout is None or "stripe_count" in layout.values or (component and layout.end):
                layout = self._layout = Layout(number)
                self.kept.add(layout)
            layout.end = component[1] if component else layout.end
            self.inside = True
        if self._layout is None or not self.inside:
            return False
        self._layout.values.update(pairs)
        stripe = _OBJECT.match(text)
        if stripe and len(self._layout.objects) < 4_096:
            self._layout.objects.append(int(stripe[1]))
        known = ("lmm_", "lcm_", "lcme_", "obdidx", "l_ost_idx", "mirror")
        return bool(pairs or component or stripe) or any(word in text for word in known)

    def end(self) -> None:
        """Start afresh with the next listing."""
        self._layout = None

    def judge(self, records: Sequence[Layout]) -> Result:
        """Say over how many targets files are spread."""
        counts = [
            c for x in records if (c := integer(x.values.get("stripe_count", ""))) is not None
        ]
        if not counts:
            return Result(kinds=["lfs_getstripe"])
        size = integer(records[0].values.get("stripe_size", ""))
        single = all(c == 1 for c in counts) and not any(x.end for x in records)
        osts = sorted({o for x in records for o in x.objects})
        return result_of(
            ["lfs_getstripe"],
            [
                finding(
                    "lfs_getstripe",
                    "one_stripe" if single else "stripes",
                    Severity.LOW if single else Severity.INFO,
                    (
                        "Each file here has one stripe: all of it lies on one OST, whose speed is "
                        "then the file's. Right for small files, slow for large checkpoints."
                        if single
                        else f"Stripe counts {listed(dict.fromkeys(counts))} "
                        f"({'-1 is all OSTs; ' if -1 in counts else ''}"
                        f"{plural(len(records), 'layout')})."
                    )
                    + (f" Stripe size {size // 1024:,} KiB." if size and size >= 1024 else ""),
                    "For large files written by many ranks: lfs setstripe -c 8 -S 4M DIR (or -1 "
                    "for all OSTs) before they are written; existing ones: lfs migrate -c 8 FILE."
                    if single
                    else "Layouts hold for new files only; existing ones keep theirs.",
                    line=records[0].line,
                    data={
                        "stripe_count": counts[0],
                        "stripe_size_bytes": size,
                        "layouts": len(records),
                        "osts": osts[:64] or None,
                    },
                    sources=SOURCES,
                )
            ],
        )


_CHECK: Final = re.compile(
    r"^\s{0,4}([\w.-]{1,64}-(?:OST|MDT)[0-9a-f]{4}-\w{3}-[\w]{4,20}|MGC[\w.:@]{2,48}) (active|"
    r"inactive)\.\s*$"
)
_FAILED: Final = re.compile(
    r"^\s{0,4}(?:lfs check: )?error: check '?([\w.@:-]{1,80}?)'?:? ([A-Z][A-Za-z ]{3,60})"
    r"(?: \([0-9]{1,3}\))?\s*$"
)


@dataclass(frozen=True, slots=True)
class Checked:
    """One line of ``lfs check``."""

    line: int
    name: str
    state: str


class LfsCheckReader(Listing[Checked]):
    """Reads the state of the connections to servers."""

    triggers: ClassVar[tuple[bytes, ...]] = (b"error: check ",)
    pattern: ClassVar[bytes] = rb"(?:-(?:mdc|osc)-|MGC)\S+ (?:in)?active\."

    def take(self, number: int, text: str) -> bool:
        """Take a line of ``lfs check``."""
        found = _CHECK.match(text) or _FAILED.match(text)
        if found is None:
            return False
        self.kept.add(Checked(number, short(found[1]), found[2]))
        return True

    def judge(self, records: Sequence[Checked]) -> Result:
        """Say which servers do not answer."""
        bad = [c for c in records if c.state != "active"]
        if not bad:
            says = f"All {plural(len(records), 'connection')} to Lustre servers are active."
            return result_of(
                ["lfs_check"],
                [
                    finding(
                        "lfs_check",
                        "active",
                        Severity.INFO,
                        says,
                        "Nothing to do here; that says nothing on their speed.",
                        line=records[0].line,
                        data={"active": len(records)},
                        sources=SOURCES,
                    )
                ],
            )
        return result_of(
            ["lfs_check"],
            [
                finding(
                    "lfs_check",
                    "not_active",
                    Severity.HIGH,
                    f"{plural(len(bad), 'connection')} of {len(records)} to Lustre servers not "
                    f"active: {listed(f'{c.name} ({c.state})' for c in bad)}. I/O to them waits or "
                    "fails.",
                    "lctl get_param osc.*.import (state, connection), lctl ping NID of that "
                    "server, dmesg on client and server.",
                    line=bad[0].line,
                    cause="storage_slow",
                    data={
                        "targets": [c.name for c in bad[:64]],
                        "state": bad[0].state,
                        "active": len(records) - len(bad),
                    },
                    sources=SOURCES,
                )
            ],
        )
