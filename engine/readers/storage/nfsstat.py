"""Reader of ``nfsstat -c``: RPC calls of the client and how many were sent again (nfs-utils)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from engine.model import Severity
from engine.readers.base import Result
from engine.readers.listing import Listing, at, finding, node, result_of

_HEAD: Final = re.compile(r"^\s{0,4}Client rpc(?: stats)?:\s*$")
_NAMES: Final = re.compile(r"^\s{0,4}calls\s{1,12}retrans\s{1,12}authrefrsh\s*$")
_VALUES: Final = re.compile(r"^\s{0,4}([0-9]{1,20})\s{1,12}([0-9]{1,20})\s{1,12}[0-9]{1,20}\s*$")
_WORD: Final = r"[a-z][a-z_0-9]{2,15}"
_OPS: Final = re.compile(
    rf"^\s{{0,4}}(?:Client nfs v[0-9]|{_WORD}(?:\s{{1,20}}{_WORD}){{0,5}}\s*$|"
    r"[0-9]{1,20}\s{1,16}[0-9]{1,3}%)"
)
# Part of the calls sent again since boot that is worth a word: ours.
_SHARE: Final = 1e-4


@dataclass(frozen=True, slots=True)
class Calls:
    """Totals since boot (or the last ``nfsstat -z``)."""

    line: int
    host: str | None
    calls: int
    retrans: int


class NfsstatReader(Listing[Calls]):
    """Reads the client's RPC counters; two listings are compared."""

    triggers: ClassVar[tuple[bytes, ...]] = (b"Client rpc",)

    _names = False

    def take(self, number: int, text: str) -> bool:
        """Take a line of ``nfsstat -c``."""
        if _HEAD.match(text):
            self.inside, self._names = True, False
            return True
        if not self.inside:
            return False
        if _NAMES.match(text):
            self._names = True
            return True
        values = _VALUES.match(text) if self._names else None
        if values:
            self.kept.add(Calls(number, self.host, int(values[1]), int(values[2])))
            self._names = False
            return True
        return bool(_OPS.match(text))

    def judge(self, records: Sequence[Calls]) -> Result:
        """Say which part of the calls was sent again."""
        hosts: dict[str | None, list[Calls]] = {}
        for one in records:
            hosts.setdefault(one.host, []).append(one)
        found = []
        for host, takes in hosts.items():
            first, last = takes[0], takes[-1]
            compared = len(takes) > 1 and last.calls > first.calls and last.retrans >= first.retrans
            calls = last.calls - (first.calls if compared else 0)
            again = last.retrans - (first.retrans if compared else 0)
            share = again / calls if calls else 0.0
            bad = compared and again > 0
            when = "between the two listings" if compared else "since boot"
            found.append(
                finding(
                    "nfsstat",
                    "retransmissions",
                    Severity.MEDIUM if bad else Severity.LOW if share >= _SHARE else Severity.INFO,
                    f"{at(host)}NFS client: {again:,} of {calls:,} calls were sent again {when}."
                    + (
                        " Over TCP that happens after 60 s without an answer: server or network "
                        "were away."
                        if again
                        else ""
                    )
                    + ("" if compared else " A total is no rate."),
                    "mountstats or nfsiostat 1 shows which mount; dmesg -T | grep 'not "
                    "responding' when."
                    if again
                    else "Nothing to do; take it again while the job is slow to compare.",
                    line=last.line,
                    cause="storage_slow" if bad else None,
                    data={"calls": calls, "retransmissions": again, "compared": compared},
                    entity=node(host),
                    sources=("nfs-utils 2.6.2 nfsstat(8), nfs(5)",),
                )
            )
        return result_of(["nfsstat"], found)
