"""Storage as the kernel tells of it: NFS, Lustre, GPFS, Ceph, and the drives of the machine.

Lines: Linux net/sunrpc/clnt.c, fs/ceph; Lustre lustre/ptlrpc (import.c, client.c); IBM Storage
Scale's mmfs log, which goes to syslog.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

from engine.model import Entity, Finding, Kind, Severity
from engine.readers.host.drives import DRIVE_MARKS, DRIVE_RULES
from engine.readers.host.part import Rule, RulePart, Tally
from engine.readers.logline import LogLine

_LUSTRE = "Lustre lustre/ptlrpc"
_GPFS = "IBM Storage Scale messages (6027-…)"
_TARGET = r"(?P<target>[\w.-]{1,64}?-(?:OST|MDT)[0-9a-fA-F]{4}|MGS)"
_SERVER_LOOK = (
    "Check the path and the server: nfsstat -c (retrans), nfsiostat 1, ping the server, the "
    "server's own load. Tasks that wait on a hard mount stand in state D until it answers."
)
_LUSTRE_LOOK = (
    "lfs check all, lctl get_param osc.*.import (state FULL?), and the network to that server: "
    "lctl ping NID. If many clients say the same, it is the server."
)


class StoragePart(RulePart):
    """Reads file systems and drives that do not answer."""

    kind: ClassVar[str] = "storage_log"
    marks: ClassVar[tuple[str, ...]] = (
        "nfs: server ",
        "nfs4: server ",
        "NFS: server ",
        "nfs4_reclaim_open_state: ",
        "LustreError: ",
        "Lustre: ",
        "LNetError: ",
        "LNet: ",
        "mmfs: ",
        "GPFS: ",
        "ceph: m",
        "libceph: osd",
        *DRIVE_MARKS,
    )
    rules: ClassVar = (
        Rule(
            "nfs_not_responding",
            re.compile(
                r"nfs4?: server (?P<server>[\w.:%-]{1,253}) (?P<what>not responding, still trying|"
                r"not responding, timed out|not responding)",
                re.IGNORECASE,
            ),
            Severity.HIGH,
            "The NFS server {server} does not answer{on} ({what}): whoever reads or writes there "
            "waits.",
            _SERVER_LOOK,
            "storage_slow",
            apart=("server",),
            source="Linux net/sunrpc/clnt.c",
        ),
        Rule(
            "nfs_lock_lost",
            re.compile(r"nfs4_reclaim_open_state: (?:unhandled error|Lock reclaim failed)"),
            Severity.HIGH,
            "An NFS client{on} lost file locks when its server came back: what held them may read "
            "or write with an error, or lose data.",
            _SERVER_LOOK,
            "storage_slow",
            source="Linux fs/nfs/nfs4state.c",
        ),
        Rule("nfs_ok", re.compile(r"nfs4?: server (?P<server>[\w.:%-]{1,253}) OK", re.IGNORECASE)),
        Rule(
            "lustre_evicted",
            re.compile(r"This client was evicted by " + _TARGET),
            Severity.HIGH,
            "Lustre{on}: this client was evicted by {target}. Reads and writes under way fail with "
            "an input/output error, and locks are lost.",
            _LUSTRE_LOOK,
            "storage_slow",
            apart=("target",),
            source=_LUSTRE,
        ),
        Rule(
            "lustre_lost",
            re.compile(
                r"Connection to " + _TARGET + r" \(at (?P<server>[\w.:@%-]{1,120})\) was lost"
            ),
            Severity.HIGH,
            "Lustre{on}: the connection to {target} at {server} was lost; what uses it waits for "
            "recovery.",
            _LUSTRE_LOOK,
            "storage_slow",
            apart=("target",),
            source=_LUSTRE,
        ),
        Rule(
            "lustre_restored",
            re.compile(
                r"(?:(?P<target>[\w.-]{1,64}?-(?:OST|MDT)[0-9a-fA-F]{4})\S{0,80}: )?"
                r"Connection restored to (?:service )?(?P<to>[\w.@:-]{1,120})"
            ),
        ),
        Rule(
            "lustre_slow_reply",
            re.compile(
                r"Request sent has (?P<what>timed out for slow reply|timed out for sent delay|"
                r"failed due to network error)"
                r".{0,200}?(?:->|@)?" + _TARGET
            ),
            Severity.MEDIUM,
            "Lustre{on}: a request to {target} {what}.",
            _LUSTRE_LOOK,
            "storage_slow",
            apart=("target", "what"),
            source=_LUSTRE,
        ),
        Rule(
            "lustre_failed",
            re.compile(
                _TARGET + r"\S{0,80}: operation (?P<operation>\w{3,32}) to node "
                r"(?P<server>[\w.:@%-]{1,120}) "
                r"failed: rc = (?P<rc>-\d{1,4})"
            ),
            Severity.MEDIUM,
            "Lustre{on}: {operation} to {target} at {server} failed with {rc}.",
            _LUSTRE_LOOK + " Codes are those of errno: -28 is a full target, -107 and -108 a lost "
            "connection, -110 a time-out.",
            apart=("target", "rc"),
            source=_LUSTRE,
        ),
        Rule(
            "lustre_client_dead",
            re.compile(
                r"(?P<target>[\w.-]{1,64}): haven't heard from client (?P<client>[\w.-]{1,80}) "
                r"\(at "
                r"(?P<node>[\w.:@%-]{1,120})\) in (?P<silent_s>\d{1,7}) seconds"
            ),
            Severity.MEDIUM,
            "Lustre server{of}: {target} has not heard from the client at {node} for {silent_s} s "
            "and evicts it.",
            "Look at that client first: is it down, or its network port?",
            apart=("target",),
            source=_LUSTRE,
        ),
        Rule(
            "lustre_lock_timeout",
            re.compile(
                r"lock callback timer expired after (?P<waited_s>\d{1,7})s: evicting client at "
                r"(?P<node>[\w.:@%-]{1,120})"
            ),
            Severity.MEDIUM,
            "Lustre server{of}: the client at {node} did not give a lock back within {waited_s} s "
            "and is evicted.",
            "Look at that client: a node that hangs, or its network.",
            apart=("node",),
            source=_LUSTRE,
        ),
        Rule(
            "lnet_error",
            re.compile(
                r"LNetError: .{0,120}?(?P<what>Timed out tx|timeout|no route|Error -\d{1,4} )"
                r".{0,60}?(?P<peer>\d[\d.]{6,15}@\w{2,8})?"
            ),
            Severity.MEDIUM,
            "Lustre's network{on} reports: {what} {peer}.",
            "lctl ping NID, lnetctl net show -v 3, and the port's own state (ibstat).",
            apart=("what",),
            source="Lustre lnet",
        ),
        Rule(
            "gpfs_down",
            re.compile(
                r"(?:mmfs|GPFS): .{0,60}?(?P<what>daemon is shutting down|[Tt]he local node has "
                r"been expelled|"
                r"[Ee]xpelled from cluster|Lost membership in cluster|Lease overdue|"
                r"Unable to contact (?:any )?quorum|[Pp]anic|force unmount|Unmounted due to)"
            ),
            Severity.HIGH,
            "Storage Scale (GPFS){on}: {what}. Its file systems are not to be had on this node "
            "until "
            "it is back.",
            "mmgetstate -a, mmhealth node show, mmdiag --waiters; then mmfs.log.latest, and the "
            "network to the cluster manager.",
            "storage_slow",
            apart=("what",),
            source=_GPFS,
        ),
        Rule(
            "ceph_hung",
            re.compile(
                r"(?:lib)?ceph: (?P<server>(?:mds|mon|osd)\d{1,6})\b.{0,80}?(?P<what>hung|down|"
                r"connect(?:ion)? (?:error|timed out)|reconnect denied|rejected session)"
            ),
            Severity.HIGH,
            "Ceph{on}: {server} {what}; what reads or writes there waits.",
            "ceph -s and ceph health detail on the cluster; then the network from this machine to "
            "it.",
            "storage_slow",
            apart=("server", "what"),
            source="Linux net/ceph, fs/ceph",
        ),
        *DRIVE_RULES,
    )

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._back: dict[tuple[str | None, str], int] = {}

    def take(self, line: LogLine) -> bool:
        """Take a record; note who answers again."""
        for id_ in ("nfs_ok", "lustre_restored"):
            found = _BACK[id_].search(line.text)
            if found is not None:
                name = next(g for g in found.groups() if g)
                if len(self._back) < 4_096:
                    self._back[line.host, _target(name)] = line.number
                return True
        return super().take(line)

    def finding(self, tally: Tally) -> Finding | None:
        """Say whether it came back."""
        name = tally.values.get("server" if tally.rule.id.startswith("nfs") else "target", "")
        back = self._back.get((tally.host, _target(name)), 0)
        if tally.rule.id in {"nfs_not_responding", "lustre_lost", "lustre_evicted"}:
            if back > tally.last_line:
                return self.said(
                    tally,
                    severity=Severity.MEDIUM,
                    extra=f"It answered again later (line {back}).",
                    data={"recovered": True},
                )
            return self.said(tally, extra="Nothing later says that it came back.")
        return self.said(tally)

    def entity(self, tally: Tally) -> Entity | None:
        """Return the file system or server that does not answer, on the machine that says so."""
        name = tally.values.get("server") if tally.rule.id.startswith("nfs") else None
        name = name or (_filesystem(tally.values["target"]) if "target" in tally.values else None)
        if name:
            return Entity(Kind.FILESYSTEM, name, host=tally.host)
        return super().entity(tally)


_BACK = {rule.id: rule.pattern for rule in StoragePart.rules if rule.severity is None}


def _target(name: str) -> str:
    """Return the target of a Lustre import: ``fs-OST0003`` of ``fs-OST0003-osc-ffff…``."""
    found = re.match(r"[\w.-]{1,64}?-(?:OST|MDT)[0-9a-fA-F]{4}", name)
    return found[0] if found else name.rstrip(":")


def _filesystem(target: str) -> str | None:
    name, dash, _ = target.rpartition("-")
    return name if dash else None
