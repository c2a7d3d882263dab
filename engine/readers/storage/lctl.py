"""Readers of ``lctl get_param`` and ``lctl dl`` on Lustre clients (and servers' stats).

A parameter is printed as ``osc.scratch-OST0000-osc-ffff….NAME=VALUE``, or with its lines under it.
Source: Lustre Operations Manual, "Lustre Parameters"; lustre-release lustre/utils/lustre_param.c.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar, Final

from engine.model import Severity
from engine.readers.base import Result
from engine.readers.listing import Listing, finding, result_of
from engine.readers.quantities import listed, plural, short
from engine.readers.storage.lctl_parameter import Parameter
from engine.readers.storage.lctl_verdict import judge_parameters

_PARAM: Final = re.compile(
    r"^\s{0,4}(osc|mdc|mgc|llite|lov|lmv|ldlm|obdfilter|ofd|osd-\w{3,12}|mdt|mds|ost|osp|"
    r"health_check)"
    r"(?:\.([\w*@.:-]{1,120}?))?(?:\.(\w{2,40}))?=(.{0,200})$"
)
# Lines under a parameter: indented pairs and flags, histograms, counters.
_KNOWN_LINE: Final = re.compile(
    r"^(?:\s{4,24}[\w %./()-]{1,40}:(?:\s|$)|\s{4,24}[a-z_, ]{1,200}\]?\s*$|\s{0,16}\]\s*$|"
    r"(?:snapshot|start|elapsed)_time:?\s|import:|\s{0,4}[\w.]{2,40}\s{1,40}[0-9]{1,20} samples |"
    r"(?:(?:read|write|modify)[ _]RPCs[ _]in[ _]flight|pending (?:read|write) pages): |"
    r"\s{0,4}- \[ ?[0-9]{1,12}, [A-Z]|\s{0,4}[0-9]{1,12}[KM]?:\s{1,24}[0-9]|"
    r"\s{8,60}read\s{2,60}write\s*$|"
    r"(?:pages per rpc|rpcs in flight|offset|RPC latency|extents)\s{2,60}[a-z]|"
    r"device \S{1,64} reported unhealthy|(?:NOT )?(?:healthy|HEALTHY)\s*$)"
)


class LctlReader(Listing[Parameter]):
    """Reads parameters with their values; several of one name are compared."""

    triggers: ClassVar[tuple[bytes, ...]] = (b"health_check=",)
    pattern: ClassVar[bytes] = (
        rb"\b(?:osc|mdc|mgc|llite|lov|lmv|ldlm|obdfilter|ofd|osd-\w+|mdt|mds|ost|osp)"
        rb"\.[\w*@.:-]+="
    )
    PATIENCE = 3

    _parameter: Parameter | None = None

    def take(self, number: int, text: str) -> bool:
        """Take a line of ``lctl get_param``."""
        start = _PARAM.match(text)
        if start and (start[3] or start[1] == "health_check"):
            value = start[4].strip()
            self._parameter = Parameter(
                number,
                self.host,
                start[1],
                short(start[2] or "", 96),
                start[3] or "health_check",
                value,
            )
            self.kept.add(self._parameter)
            self.inside = not value
            return True
        if not self.inside or self._parameter is None:
            return False
        if not _KNOWN_LINE.match(text.expandtabs()):
            # A line at the margin that is not known is another tool's.
            self.inside = text.startswith((" ", "\t"))
            return False
        self._parameter.add(text)
        return True

    def judge(self, records: Sequence[Parameter]) -> Result:
        """Say what the parameters show."""
        return result_of(["lctl"], judge_parameters(records))


_DEVICE: Final = re.compile(
    r"^\s{0,6}([0-9]{1,5}) (UP|IN|ST|AT|DN|"
    r"--) (\w{3,12}) ([\w.@:-]{1,80}) [\w.@:-]{1,64} ([0-9]{1,6})\s*$"
)


class LctlDlReader(Listing[tuple[int, str, str, str]]):
    """Reads ``lctl dl``: one line a device, with its state."""

    pattern: ClassVar[bytes] = rb"[0-9] (?:UP|IN|ST|AT|DN|--) [a-z]{2,12} \S+ \S+ [0-9]+"

    def take(self, number: int, text: str) -> bool:
        """Take a line of ``lctl dl``."""
        found = _DEVICE.match(text)
        if found is None:
            return False
        self.kept.add((number, found[2], found[3], short(found[4])))
        return True

    def judge(self, records: Sequence[tuple[int, str, str, str]]) -> Result:
        """Say which devices are not up."""
        off = [r for r in records if r[1] != "UP"]
        names = listed(r[3].partition("-osc-")[0] for r in off)
        return result_of(
            ["lctl_dl"],
            [
                finding(
                    "lctl_dl",
                    "device_not_up" if off else "devices",
                    Severity.MEDIUM if off else Severity.INFO,
                    f"{plural(len(off), 'Lustre device')} of {len(records)} not up: {names} "
                    f"({off[0][1]}: {'inactive' if off[0][1] == 'IN' else 'not set up'}). Files "
                    "with a part there cannot be read."
                    if off
                    else f"All {plural(len(records), 'Lustre device')} are up. That is their "
                    "set-up, not whether the servers answer.",
                    "lctl get_param osc.*.import shows the state of the connection; lctl --device "
                    "NAME activate if it was switched off by hand."
                    if off
                    else "lctl get_param osc.*.import, or lfs check all, shows the connections.",
                    line=off[0][0] if off else records[0][0],
                    data={"devices": len(records), "not_up": [r[3] for r in off[:64]] or None},
                    sources=("Lustre Operations Manual, lctl",),
                )
            ],
        )
