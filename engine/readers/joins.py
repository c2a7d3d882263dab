"""What another part of the kernel log explains of an Xid: the parts read lines on their own.

Joined are: the OOM killer and the channels of its victim (Xid 45), an uncorrected PCIe error of a
GPU and the fault of a program right after it (NVIDIA/open-gpu-kernel-modules#1229), a GSP that
stopped answering and the context switches that time out then (#1080 there), and a link that went
down just before the GPU behind it was lost (Xid 79).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from engine.model import Finding, Severity
from engine.readers.base import Result
from engine.readers.stamp import Stamp, from_value

# A fault so much later than the host's event has a reason of its own (s).
_REACH_S = 600.0
# A GPU behind a dead link is missed at once, or with the next access to it (s).
_LINK_S = 30.0
# In the data of a lost GPU: the line of the link that failed just before.
LINK = "link_line"
# Pairs looked at; a log with more has no single reason.
_MOST = 4_096


@dataclass(frozen=True, slots=True)
class Join:
    """An event of the host and the Xids that it explains.

    Attributes:
        ids: of the host's findings; a prefix of the id is enough.
        xids: codes that it explains where ``same`` holds.
        same: whether a host's finding and an Xid are about the same process or GPU.
        says: a sentence for the Xid; ``{line}`` is the host's line.
        action: takes the place of the Xid's own action; empty keeps that.
        takes_over: whether the Xid itself is no fault then.
        proof: whether the host's event is proof of the Xid, and stands after it.
        reach_s: an Xid so much later has a reason of its own (s).
    """

    ids: tuple[str, ...]
    xids: frozenset[int]
    same: Callable[[Finding, Finding], bool]
    says: str
    action: str = ""
    takes_over: bool = False
    proof: bool = False
    reach_s: float = _REACH_S


def join(result: Result, others: Sequence[Finding]) -> list[Finding]:
    """Tie what the host's parts found to the Xids of ``result``, and put reasons first.

    Changes the findings and causes of ``result``.

    Args:
        result: the Xids and SXids, root first.
        others: findings of the other parts.

    Returns:
        the findings of ``others`` that explain no Xid.
    """
    left = list(others)
    looked = 0
    for rule in JOINS:
        for reason in [f for f in others if f.id.startswith(rule.ids)]:
            looked += len(result.findings)
            if looked > _MOST:
                return left
            explained = [
                i
                for i, xid in enumerate(result.findings)
                if xid.kind == "xid" and _explains(rule, reason, xid)
            ]
            if not explained:
                continue
            for i in explained:
                _tell(result, i, rule, reason)
            place = explained[0]
            if rule.proof:
                place += 1
                while place < len(result.findings) and result.findings[place].kind in _LINK_KINDS:
                    place += 1
            result.findings.insert(place, reason)
            left = [f for f in left if f is not reason]
    return left


def _explains(rule: Join, reason: Finding, xid: Finding) -> bool:
    code = xid.data.get("xid", xid.data.get("equivalent_xid"))
    if code not in rule.xids or xid.data.get("sympathetic"):
        return False
    if not rule.same(reason, xid):
        return False
    before, after = _stamp(reason), _stamp(xid)
    if before is None or after is None or before.form != after.form:
        return rule.takes_over or (reason.line or 0) <= (xid.line or 0)
    late = after.order - before.order
    return -1.0 <= late <= rule.reach_s or (rule.takes_over and abs(late) <= rule.reach_s)


def _tell(result: Result, at: int, rule: Join, reason: Finding) -> None:
    xid = result.findings[at]
    words = {"line": reason.line, "pci": reason.data.get("pci", "")}
    told = rule.says.format_map(words)
    again = rule.proof and told.partition(" (")[0] in xid.says  # another event of the same link
    said = xid.says if again else f"{xid.says} {told}"
    data = xid.data | ({"sympathetic": True} if rule.takes_over else {})
    if rule.proof:
        data.setdefault(LINK, reason.line)
    action = rule.action.format(line=reason.line) or xid.action
    cause = None if rule.takes_over else xid.cause
    severity = Severity.LOW if rule.takes_over else xid.severity
    result.findings[at] = replace(
        xid, says=said, action=action, data=data, cause=cause, severity=severity
    )
    causes = result.causes
    if reason.cause is None or xid.cause not in causes or reason.cause == xid.cause:
        return
    if reason.cause in causes:
        if (causes.index(reason.cause) < causes.index(xid.cause)) is not rule.proof:
            return
        causes.remove(reason.cause)
    causes.insert(causes.index(xid.cause) + rule.proof, reason.cause)


def _stamp(finding: Finding) -> Stamp | None:
    """Return when a finding began, as its data says it."""
    seconds = finding.data.get("first_boot_s")
    if seconds is not None:
        return Stamp(None, float(seconds), "boot", float(seconds))
    return from_value(finding.data.get("first_time"))


def _host(finding: Finding) -> str | None:
    return finding.entity.host if finding.entity else None


def _same_process(reason: Finding, xid: Finding) -> bool:
    pid = xid.data.get("pid")
    pids = reason.data.get("pids") or [reason.data.get("pid")]
    return pid is not None and pid in pids and _host(reason) == _host(xid)


def _same_gpu(reason: Finding, xid: Finding) -> bool:
    pci, place = str(xid.data.get("pci", "")), str(reason.data.get("pci", ""))
    severe = reason.cause == "pcie_errors" and reason.id != "aer_corrected"
    return severe and bool(pci) and place.partition(".")[0] == pci and _host(reason) == _host(xid)


def _same_machine(reason: Finding, xid: Finding) -> bool:
    return _host(reason) == _host(xid)


def _above(reason: Finding, xid: Finding) -> bool:
    """Return whether a dead link may be that of a lost GPU: its own, or of a port above it."""
    if reason.cause != "pcie_errors" or _host(reason) != _host(xid):
        return False
    gpu, place = (str(f.data.get("pci", "")).partition(".")[0].split(":") for f in (xid, reason))
    if len(gpu) != 3 or len(place) != 3:
        return False
    if gpu == place:
        return True
    # A log of a fault does not hold the tree: below a port are higher numbers of its domain.
    port = reason.kind == "pcie_link" or reason.data.get("device") == "PCIe port"
    return port and gpu[0] == place[0] and int(place[1], 16) < int(gpu[1], 16)


_LINK_KINDS = frozenset({"pcie_aer", "pcie_link"})

JOINS: tuple[Join, ...] = (
    Join(
        ("oom_cgroup", "oom_global", "oom_numa"),
        frozenset({45}),
        _same_process,
        "The OOM killer killed this process (line {line}): that is why its channels were removed, "
        "and nothing is wrong with the GPU.",
        "Act on the kill for lack of memory (line {line}); Xid 45 itself calls for nothing.",
        takes_over=True,
    ),
    Join(
        ("aer_",),
        frozenset({8, 13, 31, 32, 43, 45, 69, 80, 109}),
        _same_gpu,
        "An uncorrected PCIe error of this GPU came before it (line {line}): a transfer that was "
        "lost can end like this, so look at the link first, at the program after it.",
    ),
    Join(
        ("aer_fatal", "aer_nonfatal", "aer_uncorrected", "dpc_", "slot_power", "slot_link_down"),
        frozenset({79}),
        _above,
        "Just before it the link at {pci} failed (line {line}). lspci -tv shows whether that is "
        "the port above this GPU: then they are one story, and the link, slot, riser or its power "
        "comes before the GPU itself.",
        proof=True,
        reach_s=_LINK_S,
    ),
    Join(
        ("gsp_",),
        frozenset({8, 43, 45, 109}),
        _same_machine,
        "Before it a GSP, the processor on the GPU that runs its firmware, stopped answering "
        "(line {line}): work that is not scheduled any more times out, whatever the program does.",
    ),
)
