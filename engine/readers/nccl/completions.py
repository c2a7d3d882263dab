"""RDMA operations that failed: ``NET/IB : Got completion from peer … with status=12 …``.

Forms by version of NCCL (NVIDIA/nccl src/transport/net_ib*):

- 2.4 to 2.8 ``Got completion with error 12, opcode 1, len 0, vendor err 129``
- 2.10 to 2.19 ``Got completion from peer ADDRESS<port> with error 12, … (Recv) localGid …``
- 2.20 to 2.28 ``… with status=12 opcode=0 len=0 vendor err 129 (Send) localGid … hca mlx5_3``
- 2.29 and newer ``… with status=IBV_WC_RETRY_EXC_ERR(12) opcode=…(0) vendor_err=129 … hca mlx5_3``

A connection that fails flushes all its other requests: those completions only follow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from engine.catalogue.types import Catalogue
from engine.model import Finding, Severity
from engine.readers.nccl.lines import NcclLine, Places
from engine.readers.nccl.messages import entity
from engine.readers.nccl.remarks import Remarks
from engine.readers.nccl.told import ORDER, Told

_STATUS = re.compile(
    r"Got completion(?: from peer (?P<peer>[^\s<]{1,80})(?:<(?P<port>\d{1,5})>)?)? with "
    r"(?:error (?P<old>\d{1,3})"
    r"|status=(?:(?P<plain>\d{1,3})|(?P<symbol>IBV_WC_\w{1,40})\((?P<new>\d{1,3})\)))"
)
_VENDOR = re.compile(r"vendor[ _]err[ =](?P<vendor>-?\d{1,10})")
_SIDE = re.compile(
    r"\((?P<side>Send|Recv|Flush|IPut|IPutSignal|Unused|Unknown)\)"
    r"|req_type=(?P<type>\w{1,20})"
)
_LOCAL = re.compile(r"localGid ?(?P<gid>[0-9A-Fa-f:.]{3,45})")
_REMOTE = re.compile(r"remoteGids? ?(?P<gid>[0-9A-Fa-f:.]{3,45})")
_HCA = re.compile(r"\bhca (?P<hca>[\w.-]{1,40})")
_RETRY_EXCEEDED: Final = 12
_SOURCE: Final = "NVIDIA/nccl src/transport/net_ib"


@dataclass(frozen=True, slots=True)
class Completion:
    """A failed operation; addresses as printed, IPv4 in an IPv6 GID written as IPv4."""

    status: int
    vendor_err: int | None
    peer: str | None
    hca: str | None
    local_gid: str | None
    remote_gid: str | None
    side: str | None

    @property
    def pair(self) -> str:
        """The two ends in words; empty if the line names none."""
        if self.local_gid and self.remote_gid:
            return f"between {self.local_gid} and {self.remote_gid}"
        return f"with peer {self.peer}" if self.peer else ""


def completion(text: str) -> Completion | None:
    """Return the failed operation that a line reports, None for any other line."""
    found = _STATUS.search(text)
    if found is None:
        return None
    rest = text[found.end() : found.end() + 1_024]
    vendor, side, hca = _VENDOR.search(rest), _SIDE.search(rest), _HCA.search(rest)
    return Completion(
        status=int(found["old"] or found["plain"] or found["new"]),
        vendor_err=int(vendor["vendor"]) if vendor else None,
        peer=found["peer"],
        hca=hca["hca"] if hca else None,
        local_gid=_gid(_LOCAL.search(rest)),
        remote_gid=_gid(_REMOTE.search(rest)),
        side=(side["side"] or side["type"]) if side else None,
    )


class Completions:
    """Gathers failed operations by status and pair of ends, bounded."""

    LIMIT = 4_096

    def __init__(self, catalogue: Catalogue) -> None:
        self._statuses = catalogue.entries.get("verbs_status", {})
        self.seen: dict[Completion, Places] = {}
        self.overflow = 0

    def feed(self, line: NcclLine) -> bool:
        """Take a line; return whether it reports a failed operation."""
        one = completion(line.text)
        if one is None:
            return False
        places = self.seen.get(one)
        if places is None:
            if len(self.seen) >= self.LIMIT:
                self.overflow += 1
                return True
            places = self.seen[one] = Places(line.number)
        places.add(line)
        return True

    def tell(self, remarks: Remarks) -> Iterator[Told]:
        """Yield a finding for each status, those that others follow from first."""
        by_status: dict[int, dict[Completion, Places]] = {}
        for one, places in self.seen.items():
            by_status.setdefault(one.status, {})[one] = places
        order = sorted(by_status, key=lambda s: (self._effect(s), _first(by_status[s])))
        for status in order:
            finding = self._finding(status, by_status[status], order, remarks)
            role = ORDER["effect"] if self._effect(status) else ORDER["root"]
            yield Told(role, _first(by_status[status]), finding)

    @property
    def has_root(self) -> bool:
        """Whether an operation failed that others can follow from."""
        return any(not self._effect(one.status) for one in self.seen)

    def _effect(self, status: int) -> bool:
        return str(self._entry(status).get("role")) == "effect"

    def _entry(self, status: int) -> Mapping[str, Any]:
        return self._statuses.get(str(status), {})

    def _finding(
        self,
        status: int,
        seen: Mapping[Completion, Places],
        order: Sequence[int],
        remarks: Remarks,
    ) -> Finding:
        entry = self._entry(status)
        first = next(iter(seen))
        together = Places(_first(seen))
        for places in seen.values():
            together.count += places.count
            for host, devices in places.hosts.items():
                together.hosts.setdefault(host, set()).update(devices)
            together.labels.update(places.labels)
        effect = self._effect(status)
        cause = entry.get("cause")
        says = _says(entry, status, seen, together)
        action = str(entry.get("action") or _UNKNOWN_ACTION)
        if status == _RETRY_EXCEEDED:
            cause, note, action = _unreachable(cause, action, first, remarks)
            says += note
        if effect and len(order) > 1 and not self._effect(order[0]):
            says += f" It follows from status {order[0]} above: ignore these lines."
        data: dict[str, Any] = {
            "status": status,
            "status_name": entry.get("symbol", "unknown"),
            "vendor_err": first.vendor_err,
            "peer": first.peer,
            "hca": first.hca,
            "local_gid": first.local_gid,
            "remote_gid": first.remote_gid,
            "side": first.side,
            "count": together.count,
        }
        if len(order) > 1 and status == order[0]:
            data["primary_status"] = status
            data["secondary_status"] = order[1]
        return Finding(
            kind="nccl",
            id=f"completion_{status}",
            severity=Severity(entry.get("severity", "medium")),
            says=says,
            action=" ".join(action.split()),
            entity=entity(together),
            line=together.line,
            cause=cause,
            data={k: v for k, v in data.items() if v is not None},
            sources=tuple(entry.get("source", (_SOURCE,))),
        )


_UNKNOWN_ACTION = "Look the code up in rdma-core's libibverbs/verbs.h (enum ibv_wc_status)."


def _says(
    entry: Mapping[str, Any], status: int, seen: Mapping[Completion, Places], together: Places
) -> str:
    first = next(iter(seen))
    vendors = sorted({o.vendor_err for o in seen if o.vendor_err is not None})
    known = set(entry.get("mlx5_vendor_errors", ()))
    named = f"vendor error {', '.join(map(str, vendors[:4]))}" if vendors else ""
    if vendors and set(vendors) <= known:
        named += ", which mlx5 NICs report with it"
    meaning = " ".join(str(entry.get("meaning", "a status that is not in the verbs API")).split())
    says = (
        f"Completion status {status} ({entry.get('symbol', 'unknown')}"
        + (f"; {named}" if named else "")
        + f"): {meaning}."
    )
    pairs = list(dict.fromkeys(o.pair for o in seen if o.pair))
    if pairs:
        says += f" Seen {', '.join(pairs[:4])}"
        says += f" and {len(pairs) - 4} more pairs." if len(pairs) > 4 else "."
    hcas = sorted({o.hca for o in seen if o.hca})
    if hcas:
        all_lines = len({o.pair for o in seen}) > 1 and len(hcas) == 1
        says += f" Local device{'s' if len(hcas) > 1 else ''}: {', '.join(hcas[:8])}"
        says += " in every line: suspect that port." if all_lines else "."
    peers = {o.peer for o in seen if o.peer}
    if len(peers) == 1 and len(together.hosts) > 1 and first.peer:
        says += f" {len(together.hosts)} hosts name the same peer {first.peer}: suspect that one."
    where = together.words()
    if where:
        says += f" Printed {where}."
    if together.count > 1:
        says += f" {together.count} lines."
    return says


def _unreachable(
    cause: str | None, action: str, first: Completion, remarks: Remarks
) -> tuple[str | None, str, str]:
    """Sharpen status 12 by what else is known: at the start it is an address, later a link."""
    roce = remarks.roce or bool(first.local_gid)
    index = remarks.gid_index
    steps = [action]
    note = ""
    if remarks.at_start:
        cause = "rdma_unreachable"
        note = (
            " It fails right at the start: as a rule a wrong GID index, a VLAN or a filter in the"
            " switch, not a bad cable."
        )
    elif remarks.mid_run:
        note = " It came in mid-run, after the pair had worked: a link flap, drops or a dead peer."
    if index is not None:
        steps.insert(
            0,
            f"Set NCCL_IB_GID_INDEX={index} (the RoCE v2 entry with the IPv4 address; NCCL 2.21 and"
            " newer choose it by themselves when the variable is unset).",
        )
    elif roce or remarks.at_start:
        steps.append(
            "On RoCE check the GID index with show_gids: it must be the RoCE v2 entry with the IPv4"
            " address; NCCL 2.21 and newer choose it when NCCL_IB_GID_INDEX is unset."
        )
    if index is not None or roce:
        steps.append(
            "Test with the same GID: ib_write_bw -d HCA -x "
            + (str(index) if index else "GID_INDEX")
        )
    return cause, note, " ".join(steps)


def _first(seen: Mapping[Completion, Places]) -> int:
    return min(places.line for places in seen.values())


def _gid(found: re.Match[str] | None) -> str | None:
    if found is None:
        return None
    gid = found["gid"]
    mapped = gid.lower().removeprefix("::ffff:")
    return mapped if "." in mapped else gid
