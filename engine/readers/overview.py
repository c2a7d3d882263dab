"""What several kernel events together say: root, consequences, actions, as data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.readers.bursts import Burst, SxidBurst, XidBurst
from engine.readers.chain import root_of
from engine.readers.xid_line import short


def overview(bursts: Sequence[Burst]) -> dict[str, Any]:
    """Return the data keys that describe all events, for the first finding.

    Keys, each only where it says something: xids (in printed order), primary_xid and
    secondary_xids (root and consequences), caused_by (PCI address to the Xid that the driver
    names), actions (PCI address to recovery action), switches.
    """
    xids = [b for b in bursts if isinstance(b, XidBurst)]
    printed = sorted((b for b in xids if b.first.source != "named"), key=lambda b: b.line)
    data: dict[str, Any] = {}
    if len({b.code for b in bursts}) > 1 and xids:
        data["xids"] = list(dict.fromkeys(b.code for b in printed))
        first = bursts[0]
        if isinstance(first, XidBurst):
            data["primary_xid"] = first.code
            # What another GPU reports belongs here only if it follows from the same root.
            others = (
                b.code
                for b in printed
                if b.code != first.code and (b.gpu == first.gpu or root_of(b) is first)
            )
            data["secondary_xids"] = list(dict.fromkeys(others))
    named = {short(b.first.pci): code for b in printed if b.first.pci for code in b.caused_by}
    if named:
        data["caused_by"] = named
    actions = {
        short(b.first.pci): b.detail["recovery_action"]
        for b in printed
        if b.first.pci and "recovery_action" in b.detail
    }
    if actions:
        data["actions"] = actions
    switches = {s: None for b in bursts if isinstance(b, SxidBurst) for s in b.switches}
    if len(switches) > 1:
        data["switches"] = sorted(switches)
    return data
