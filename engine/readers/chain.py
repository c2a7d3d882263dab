"""Which kernel event explains the others: the root, and what follows from it.

Time order alone misleads: the removal of channels (Xid 45) can be printed before its reason. The
knowledge says which code follows from which; it is read backwards, from event to reason. Sources
of what is added here: NVIDIA Xid catalog and GPU memory error guide, NVIDIA open-gpu-kernel-
modules, the Delta study (arXiv 2503.11901) for 122 and 31, public logs for the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from engine.readers.bursts import Burst, SxidBurst, XidBurst
from engine.readers.period import apart

# Added to the knowledge's table (``xid_follow_on``): code, and what it may follow from on one GPU.
# 137 before 94: a refused peer access that is contained to the process. The others repeat, for
# narrower codes, what the table says of 48 and 149.
_MORE_REASONS: dict[int, tuple[int, ...]] = {
    43: (48, 94, 95, 137, 109),
    94: (171, 172, 144, 145, 146, 137),
    95: (171, 172, 144, 145, 146),
    145: (149,),
}
# Their reason is whatever else the GPU reports, the worst of it: no table is needed.
_FOLLOW_ANYTHING = frozenset({45, 154})
# Reasons of these may be printed before or after; whichever came first is the reason.
_EITHER_ORDER = frozenset({frozenset({119, 120})})
# Code: codes on another GPU of the machine that it follows from (a dead end of a link).
FAR_REASONS: dict[int, tuple[int, ...]] = {
    74: (79,),
    144: (149, 79),
    145: (149, 79),
    146: (149, 79),
    147: (149, 79),
    148: (149, 79),
    149: (79,),
}
# Never a fault of their own where anything else is there.
ECHOES = frozenset({43, 45, 154})
# Switch errors that say "the far end of the link is gone" when a GPU has died.
LINK_LOST_SXIDS = frozenset({19084, 20012, 20034, 22012, 24007})
# Xids of a GPU whose port reported a fatal switch error, or one that ends in torn-down channels.
_AFTER_SXID = frozenset({74, 45})
_SXID_TO_45 = frozenset({11004, 12028})

# What lies further apart than this does not follow from it (s).
_REACH_S = 3600.0

Weigh = Callable[[Burst], int]


def link(
    xids: Sequence[XidBurst],
    sxids: Sequence[SxidBurst],
    weigh: Weigh,
    reasons: Mapping[int, tuple[int, ...]],
) -> list[Burst]:
    """Set each burst's ``parent`` and return all bursts: each root before what follows from it.

    Args:
        xids: bursts of Xids.
        sxids: bursts of SXids.
        weigh: severity of a burst, 0 the worst.
        reasons: which Xids may have come before an Xid on the same GPU.
    """
    near: dict[tuple[object, int], XidBurst] = {}
    far: dict[tuple[object, int], list[XidBurst]] = {}
    for burst in xids:
        near.setdefault((burst.gpu, burst.code), burst)
        far.setdefault((burst.first.host, burst.code), []).append(burst)
    worst = _worst_of_each_gpu(xids, weigh)
    for burst in xids:
        _adopt(burst, _reason(burst, near, far, sxids, reasons) or _any_reason(burst, worst))
    for switch in sxids:
        if switch.code in LINK_LOST_SXIDS:
            lost = far.get((switch.first.host, 79), ())
            _adopt(switch, next((b for b in lost if _near(b, switch)), None))
    return _ordered([*xids, *sxids], weigh)


def root_of(burst: Burst) -> Burst:
    """Return the event at the start of a chain."""
    while burst.parent is not None:
        burst = burst.parent
    return burst


def _reason(
    burst: XidBurst,
    near: dict[tuple[object, int], XidBurst],
    far: dict[tuple[object, int], list[XidBurst]],
    sxids: Iterable[SxidBurst],
    reasons: Mapping[int, tuple[int, ...]],
) -> Burst | None:
    codes = [c for c in burst.caused_by if c != burst.code]
    if burst.code not in _FOLLOW_ANYTHING:
        codes += [*reasons.get(burst.code, ()), *_MORE_REASONS.get(burst.code, ())]
    for code in codes:
        found = near.get((burst.gpu, code))
        if found and not _wrong_order(found, burst) and _plausible(found, burst):
            return found
    for code in FAR_REASONS.get(burst.code, ()):
        others = far.get((burst.first.host, code), ())
        found = next((b for b in others if b.gpu != burst.gpu and _near(b, burst)), None)
        if found:
            return found
    if burst.code in _AFTER_SXID:
        for switch in sxids:
            ends_in_45 = burst.code == 45 and switch.code in _SXID_TO_45
            fatal = burst.code == 74 and switch.fatal and switch.parent is None
            here = switch.first.host == burst.first.host and _near(switch, burst)
            if here and (ends_in_45 or fatal):
                return switch
    return None


def _wrong_order(reason: XidBurst, burst: XidBurst) -> bool:
    pair = frozenset({reason.code, burst.code})
    return pair in _EITHER_ORDER and reason.line > burst.line


def _plausible(reason: XidBurst, burst: XidBurst) -> bool:
    """A refused peer access (137) explains a contained error on chip, not one in DRAM."""
    if not _near(reason, burst):
        return False
    unit = str(burst.detail.get("contained_unit", ""))
    return reason.code != 137 or not unit.startswith("FB")


def _near(one: Burst, other: Burst) -> bool:
    return not apart(one.period, other.period, _REACH_S)


def _worst_of_each_gpu(xids: Iterable[XidBurst], weigh: Weigh) -> dict[object, list[XidBurst]]:
    worst: dict[object, list[XidBurst]] = {}
    for burst in sorted(xids, key=lambda b: (weigh(b), b.line)):
        if burst.code not in ECHOES:
            worst.setdefault(burst.gpu, []).append(burst)
    return worst


def _any_reason(burst: XidBurst, worst: dict[object, list[XidBurst]]) -> XidBurst | None:
    """Removed channels and recovery actions follow from whatever else the GPU reports."""
    if burst.code not in _FOLLOW_ANYTHING:
        return None
    return next((b for b in worst.get(burst.gpu, ()) if _near(b, burst)), None)


def _adopt(burst: Burst, parent: Burst | None) -> None:
    """Hang a burst under its reason unless that would close a circle."""
    if parent is None or root_of(parent) is burst:
        return
    burst.parent = parent


def _ordered(bursts: list[Burst], weigh: Weigh) -> list[Burst]:
    def rank(root: Burst) -> tuple[bool, int, int]:
        echo = isinstance(root, XidBurst) and root.code in ECHOES
        return (echo, weigh(root), root.line)

    followers: dict[int, list[Burst]] = {}
    for burst in bursts:
        if burst.parent is not None:
            followers.setdefault(id(root_of(burst)), []).append(burst)
    ordered: list[Burst] = []
    for root in sorted((b for b in bursts if b.parent is None), key=rank):
        ordered.append(root)
        ordered.extend(sorted(followers.get(id(root), ()), key=lambda b: b.line))
    return ordered
