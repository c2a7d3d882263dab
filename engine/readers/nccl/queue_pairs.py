"""Queue pairs that cannot be connected: ``Call to ibv_modify_qp failed with 110 …``.

Since 2.24 the line names device, state and GIDs (NVIDIA/nccl src/misc/ibvwrap.cc); before that only
the error: ``… failed with error Invalid argument``, ``… errno 22``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from engine.model import Finding, Severity
from engine.readers.nccl.lines import NcclLine, Places
from engine.readers.nccl.messages import entity, printable
from engine.readers.nccl.remarks import Remarks
from engine.readers.nccl.told import ORDER, Told

_HEAD = re.compile(
    r"ibv_modify_qp\S{0,3} failed with (?:(?P<number>\d{1,3}) (?P<text>[A-Z][^,]{2,60})"
    r"|error (?P<old>[A-Z][A-Za-z ,.'-]{2,60}?)(?: errno (?P<errno>\d{1,3}))?(?:$|,|\.))"
)
_DEVICE = re.compile(r"on dev (?P<hca>[\w.-]{1,40}):(?P<port>\d{1,3})")
_STATES = re.compile(r"curr state (?P<now>[A-Z]{3,5}), next state (?P<next>[A-Z]{3,5})")
_GID = re.compile(r"local GID index (?P<index>\d{1,5})")
_ENDS = re.compile(
    r"local GID (?!index)(?P<local>[0-9A-Fa-f:.]{3,45}), remote GID (?P<remote>[0-9A-Fa-f:.]{3,45})"
)
# strerror() of Linux, for lines without a number.
_ERRNO: Final = {
    "Connection timed out": 110,
    "Invalid argument": 22,
    "No route to host": 113,
    "Network is unreachable": 101,
    "Input/output error": 5,
    "No such device": 19,
    "Cannot allocate memory": 12,
    "Operation not permitted": 1,
    "Operation not supported": 95,
    "No data available": 61,
    "Protocol not supported": 93,
}
_UNREACHABLE: Final = (110, 113, 101, 61)
_INVALID: Final = 22
_SOURCES: Final = (
    "NVIDIA/nccl v2.30.7 src/misc/ibvwrap.cc",
    "NVIDIA/nccl#2013",
    "NVIDIA/nccl v2.30.7 docs/userguide/source/env.rst (NCCL_CROSS_NIC, NCCL_IB_GID_INDEX)",
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """One refused transition of a queue pair."""

    errno: int | None
    text: str
    hca: str | None
    port: int | None
    transition: str | None
    gid_index: int | None
    local: str | None
    remote: str | None


def refusal(text: str) -> Refusal | None:
    """Return what a line says about a queue pair that was refused, None for any other line."""
    head = _HEAD.search(text)
    if head is None:
        return None
    rest = text[head.start() : head.start() + 1_024]
    device, states, gid, ends = (p.search(rest) for p in (_DEVICE, _STATES, _GID, _ENDS))
    said = (head["text"] or head["old"]).strip()
    number = head["number"] or head["errno"]
    return Refusal(
        errno=int(number) if number else _ERRNO.get(said),
        text=printable(said, 60),
        hca=device["hca"] if device else None,
        port=int(device["port"]) if device else None,
        transition=f"{states['now']} to {states['next']}" if states else None,
        gid_index=int(gid["index"]) if gid else None,
        local=_address(ends["local"]) if ends else None,
        remote=_address(ends["remote"]) if ends else None,
    )


class QueuePairs:
    """Gathers refusals, one record for each pair of ends and error, bounded."""

    LIMIT = 1_024

    def __init__(self) -> None:
        self.seen: dict[Refusal, Places] = {}
        self.overflow = 0

    def feed(self, line: NcclLine) -> bool:
        """Take a line; retries at level INFO count as recognised only."""
        one = refusal(line.text)
        if one is None:
            return False
        if ", retrying" in line.text and line.level == "INFO":
            return True
        places = self.seen.get(one)
        if places is None:
            if len(self.seen) >= self.LIMIT:
                self.overflow += 1
                return True
            places = self.seen[one] = Places(line.number)
        places.add(line)
        return True

    def tell(self, remarks: Remarks) -> Iterator[Told]:
        """Yield a finding for each error number."""
        by_error: dict[tuple[int | None, str], dict[Refusal, Places]] = {}
        for one, places in self.seen.items():
            by_error.setdefault((one.errno, one.text), {})[one] = places
        for seen in by_error.values():
            finding = _finding(seen, remarks)
            yield Told(ORDER["root"], finding.line or 0, finding)


def _finding(seen: dict[Refusal, Places], remarks: Remarks) -> Finding:
    first, places = next(iter(seen.items()))
    code = f"errno {first.errno}, {first.text}" if first.errno is not None else first.text
    step = f" going from {first.transition}" if first.transition else ""
    device = f" on {first.hca}" if first.hca else ""
    ends = f" between {first.local} and {first.remote}" if first.local and first.remote else ""
    says = f"A queue pair{device} could not be connected ({code}){step}{ends}"
    cause: str | None = "rdma_unreachable"
    if first.errno in _UNREACHABLE:
        says += (
            ": there was no reply from the peer's address. NICs on different rails that cannot"
            " reach each other (a rail-only network), a VLAN or a filter do that"
        )
        if remarks.rails or _different_networks(first):
            says += "; these two ends are on different rails or subnets"
        action = (
            "Set NCCL_CROSS_NIC=0, so that NICs talk only within their rail, or route between the"
            " rails. Check with ping -I INTERFACE and ib_write_bw -d HCA between the two addresses."
        )
    elif first.errno == _INVALID:
        says += (
            ": the address (GID) is not valid for this device: a wrong or stale GID index on"
            " RoCE, a GID type that differs between the ends, or a link-local address"
        )
        action = (
            "Unset NCCL_IB_GID_INDEX with NCCL 2.21 or newer (-1, automatic); with older ones set"
            " it to the RoCE v2 IPv4 entry of show_gids. Check that both ends have the same MTU"
            " and VLAN."
        )
    else:
        says += ": the NIC or its driver refused the connection"
        cause = None
        action = "ibstat and dmesg | grep mlx5 on this host; the same test with ib_write_bw -d HCA."
    says += "."
    if first.gid_index is not None:
        says += f" The local GID index is {first.gid_index}."
    if len(seen) > 1:
        says += f" {len(seen)} pairs of ends fail the same way."
    where = places.words()
    says += f" Printed {where}." if where else ""
    data: dict[str, Any] = {
        "errno": first.errno,
        "hca": first.hca,
        "port": first.port,
        "transition": first.transition,
        "gid_index": first.gid_index,
        "local_gid": first.local,
        "remote_gid": first.remote,
        "peer": first.remote,
        "count": sum(p.count for p in seen.values()),
    }
    return Finding(
        kind="nccl",
        id="queue_pair",
        severity=Severity.HIGH,
        says=says,
        action=action,
        entity=entity(places),
        line=places.line,
        cause=cause,
        data={k: v for k, v in data.items() if v is not None},
        sources=_SOURCES,
    )


def _address(gid: str) -> str:
    mapped = gid.lower().removeprefix("::ffff:")
    return mapped if "." in mapped else gid


def _different_networks(one: Refusal) -> bool:
    """Whether two IPv4 ends differ in the first three parts, which rails usually do."""
    local, remote = (one.local or "").split("."), (one.remote or "").split(".")
    return len(local) == len(remote) == 4 and local[:3] != remote[:3]
