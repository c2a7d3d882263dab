"""Reader of ROCm's runtime: what a program prints when the GPU stops it, or does not let it start.

Sources: ROCm/rocm-systems projects/rocr-runtime (runtime.cpp, hsa.cpp, hsa.h, hsa_ext_amd.h),
projects/rocminfo (rocminfo.cc), ROCm/clr (rocdevice.cpp, hipErrorNoBinaryForGpu).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, ClassVar

from engine.model import Entity, Finding, Kind, Severity
from engine.readers.amdgpu.rocr_words import NUMBERS, words
from engine.readers.base import Context, Result
from engine.readers.quantities import short

_RANK = re.compile(r"\[rank ?(\d{1,6})\]|\brank[ =:](\d{1,6})\b|^(?:\[)?(\d{1,6})[\]:]")
_FAULT = re.compile(
    r"Memory access fault by GPU node-(?P<node>\d{1,4})(?: \(Agent handle: 0x[0-9a-f]{1,16}\))?"
    r" on address (?P<address>0x[0-9a-fA-F]{1,16}|\(nil\))(?P<about>\(may not be exact address\))?"
    r"\.? Reason: (?P<reason>[^.]{1,80})"
)
_HANG = re.compile(
    r"HW Exception by GPU node-(?P<node>\d{1,4})(?: \(Agent handle: 0x[0-9a-f]{1,16}\))?"
    r" reason ?: ?(?P<reason>GPU Hang|ECC|[\w ]{1,40})"
)
_STATUS = re.compile(r"\b(?P<status>HSA_STATUS_ERROR(?:_[A-Z]{2,24}){0,4})\b")
_CALL = "hsa api call failure"
# In one line with the place of the call, or alone in the next.
_RETURNED = re.compile(rf"(?:{_CALL}\b.{{0,200}}|^\s{{0,8}})Call returned (?P<number>\d{{1,6}})\b")
_NO_BINARY = re.compile(r"hipErrorNoBinaryForGpu|HIP error: invalid device function")
# rocminfo; amd-smi and rocm-smi.
_NOT_LOADED = re.compile(
    r"(?P<tool>ROCk module is NOT loaded)|[Dd]river not initialized \(amdgpu not found in modules\)"
    r"|Unable to detect any GPU devices, check amdgpu version"
)
_KFD = re.compile(
    r"Unable to open /dev/kfd read-write: (?P<error>[\w ]{1,40})|"
    r"Failed to (?:open|get user name to check for).{0,40}/dev/kfd"
)

_SOURCE = "ROCm/rocm-systems projects/rocr-runtime (runtime.cpp, hsa.cpp)"


@dataclass(slots=True)
class _Seen:
    line: int
    count: int = 0
    values: dict[str, Any] = field(default_factory=dict)
    ranks: dict[int, None] = field(default_factory=dict)


class RocrReader:
    """Reads the last words of HIP and HSA programs."""

    triggers: ClassVar[tuple[bytes, ...]] = (
        b"by GPU node-",
        b"HSA_STATUS_ERROR",
        b"hsa api call failure",
        b"Call returned ",
        b"hipErrorNoBinaryForGpu",
        b"HIP error: invalid device function",
        b"ROCk module is NOT loaded",
        b"amdgpu not found in modules",
        b"Unable to detect any GPU devices",
        b"open /dev/kfd",
    )
    LIMIT = 1_024

    def __init__(self, context: Context) -> None:
        del context
        self.open = False
        self._seen: dict[tuple[str, str], _Seen] = {}
        self._overflow = 0

    def feed(self, number: int, text: str) -> bool:
        """Take one line."""
        found = _parse(text)
        if found is None:
            return _CALL in text
        what, place, values = found
        seen = self._seen.get((what, place))
        if seen is None:
            if len(self._seen) >= self.LIMIT:
                self._overflow += 1
                return True
            seen = self._seen[what, place] = _Seen(number, values=values)
        seen.count += 1
        rank = _RANK.search(text[:200])
        if rank and len(seen.ranks) < 64:
            seen.ranks.setdefault(int(rank[1] or rank[2] or rank[3]))
        return True

    def finish(self) -> Result:
        """Say what stopped the programs."""
        findings = [_finding(what, place, seen) for (what, place), seen in self._seen.items()]
        findings.sort(key=lambda f: (f.cause is None, list(Severity).index(f.severity)))
        result = Result(
            kinds=["rocr"] if findings else [],
            findings=findings,
            causes=list(dict.fromkeys(f.cause for f in findings if f.cause)),
        )
        if self._overflow:
            result.notes.append(f"{self._overflow} more runtime messages are counted here only.")
        return result


def _parse(text: str) -> tuple[str, str, dict[str, Any]] | None:
    if fault := _FAULT.search(text):
        values = {
            "node": int(fault["node"]),
            "address": fault["address"],
            "reason": short(fault["reason"], 80),
        }
        return "fault", fault["node"], values
    if hang := _HANG.search(text):
        reason = short(hang["reason"])
        what = "ecc" if reason == "ECC" else "hang"
        return what, hang["node"], {"node": int(hang["node"]), "reason": reason}
    if returned := _RETURNED.search(text):
        number = int(returned["number"])
        return "start", str(number), {"status_code": number, "status": NUMBERS.get(number)}
    if status := _STATUS.search(text):
        return "status", status["status"], {"status": status["status"]}
    if _NO_BINARY.search(text):
        return "binary", "", {}
    if loaded := _NOT_LOADED.search(text):
        return "module", "" if loaded["tool"] else "smi", {}
    if kfd := _KFD.search(text):
        return "device", "", {"error": short(kfd["error"])} if kfd["error"] else {}
    return None


def _finding(what: str, place: str, seen: _Seen) -> Finding:
    says, action, cause, severity = words(what, place, seen.values)
    ranks = sorted(seen.ranks)
    if ranks:
        says += f" Printed by rank {', '.join(map(str, ranks[:16]))}."
    data = {k: v for k, v in seen.values.items() if v is not None} | {"count": seen.count}
    if ranks:
        data["ranks"] = ranks
    node = seen.values.get("node")
    return Finding(
        kind="rocr",
        id=what
        if what != "status"
        else place.removeprefix("HSA_STATUS_ERROR").strip("_").lower() or "error",
        severity=severity,
        says=says,
        action=action,
        entity=None if node is None else Entity(Kind.GPU, f"GPU node-{node}"),
        line=seen.line,
        cause=cause,
        data=data,
        sources=(_SOURCE,),
    )
