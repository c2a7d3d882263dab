"""The OOM killer: who was killed, for whose memory, in which cgroup.

Lines: Linux mm/oom_kill.c and mm/memcontrol.c. One kill prints up to four lines; they are put
together by machine and victim.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, ClassVar

from engine.model import Entity, Finding, Kind, Severity
from engine.readers.base import Result
from engine.readers.host.devices import Devices
from engine.readers.host.part import MOST_EVENTS
from engine.readers.logline import LogLine
from engine.readers.period import Boots, Period

_INVOKED = re.compile(r"(?:^|\] |: )(?P<by>[^\[\]]{1,24}?) invoked oom-killer: ")
_CONSTRAINT = re.compile(
    r"oom-kill:constraint=CONSTRAINT_(?P<constraint>NONE|MEMCG|CPUSET|MEMORY_POLICY)"
    r"(?:.{0,400}?(?:,oom_memcg=(?P<memcg>[^,]{1,400})))?"
    r"(?:.{0,400}?,task_memcg=(?P<task_memcg>[^,]{1,400}))?"
    r"(?:.{0,40}?,task=(?P<task>[^,]{1,32}),pid=(?P<pid>\d{1,10}))?"
)
_KILLED = re.compile(
    r"(?P<scope>Out of memory|Memory cgroup out of memory|Out of memory "
    r"\(oom_kill_allocating_task\)"
    r"|Memory cgroup out of memory \(oom_kill_allocating_task\))(?: in UB \d{1,9})?: "
    r"Kill(?:ed)? process (?P<pid>\d{1,10}),?(?: UID \d{1,10},)? \(?(?P<name>[^)\n]{0,32}?)\)?"
    r"(?: score (?P<score>\d{1,5})|,? (?:UID:? ?\d{1,10},? ?)?total-vm:(?P<vm>\d{1,15})kB|[.,]?$)"
)
_RSS = re.compile(r"anon-rss:(\d{1,15})kB(?:, file-rss:(\d{1,15})kB)?(?:, shmem-rss:(\d{1,15})kB)?")
_LIMIT = re.compile(r"memory: usage (?P<usage>\d{1,15})kB, limit (?P<limit>\d{1,15})kB")
_NOBODY = re.compile(r"Out of memory and no killable processes|System is deadlocked on memory")
_SYSTEMD = re.compile(
    r"systemd-oomd(?:\[\d{1,10}\])?: Killed (?P<cgroup>\S{1,300}) due to (?P<why>.{1,60})"
)
_SOURCE = "Linux mm/oom_kill.c"
_POD = re.compile(r"pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12})")
_SLURM = re.compile(r"job_(\d{1,12})")


@dataclass(slots=True)
class _Kill:
    """Everything that was killed for one reason on one machine."""

    line: int
    host: str | None
    scope: str
    cgroup: str | None
    victims: dict[str, None] = field(default_factory=dict)
    pids: dict[int, None] = field(default_factory=dict)
    biggest: dict[str, int] = field(default_factory=dict)
    period: Period = field(default_factory=Period)
    count: int = 0


class OomPart:
    """Reads the OOM killer's lines."""

    marks: ClassVar[tuple[str, ...]] = (
        "oom-kill",
        "ut of memory: Kill",
        "ut of memory (oom_kill_allocating_task)",
        "no killable processes",
        "oom_reaper: ",
        "memory: usage ",
        "systemd-oomd",
        "deadlocked on memory",
    )
    pattern: ClassVar[bytes] = b""

    def __init__(self, _devices: Devices, boots: Boots) -> None:
        self.open = False
        self._boots = boots
        self._kills: dict[tuple[str | None, str, str | None], _Kill] = {}
        self._told: dict[tuple[str | None, int], _Kill] = {}
        self._by: dict[str | None, str] = {}
        self._limit: dict[str | None, int] = {}

    def wants(self, text: str) -> bool:
        """Return whether a line may be the OOM killer's."""
        return any(mark in text for mark in self.marks)

    def take(self, line: LogLine) -> bool:
        """Take one record."""
        text = line.text
        if (found := _KILLED.search(text)) is not None:
            self._killed(line, found)
        elif (found := _CONSTRAINT.search(text)) is not None:
            self._constraint(line, found)
        elif (found := _INVOKED.search(text)) is not None:
            if len(self._by) < MOST_EVENTS:
                self._by[line.host] = found["by"]
        elif (found := _LIMIT.search(text)) is not None:
            if len(self._limit) < MOST_EVENTS:
                self._limit[line.host] = int(found["limit"])
        elif (found := _SYSTEMD.search(text)) is not None:
            kill = self._kill(line, "systemd-oomd", found["cgroup"])
            if kill is not None:
                kill.count += 1
                kill.period.add(line.stamp, self._boots.of(line.host, line.stamp))
        elif _NOBODY.search(text):
            self._kill(line, "deadlock", None)
        else:
            return "oom_reaper: " in text
        return True

    def finish(self) -> Result:
        """Return a finding for each cgroup, and one for the machine."""
        findings = [self._finding(kill) for kill in self._kills.values()]
        if not findings and self._by:
            findings = [self._invoked_only()]
        return Result(kinds=["oom"] if findings else [], findings=findings)

    def _kill(self, line: LogLine, scope: str, cgroup: str | None) -> _Kill | None:
        key = (line.host, scope, cgroup)
        kill = self._kills.get(key)
        if kill is None and len(self._kills) < MOST_EVENTS:
            kill = self._kills[key] = _Kill(line.number, line.host, scope, cgroup)
        return kill

    def _constraint(self, line: LogLine, found: re.Match[str]) -> None:
        scope = "cgroup" if found["constraint"] == "MEMCG" else "global"
        if found["constraint"] in {"CPUSET", "MEMORY_POLICY"}:
            scope = "numa"
        kill = self._kill(
            line, scope, (found["memcg"] or found["task_memcg"]) if scope == "cgroup" else None
        )
        if kill is not None and found["pid"] is not None and len(self._told) < 4 * MOST_EVENTS:
            self._told[line.host, int(found["pid"])] = kill
            self._count(kill, line, found["task"], int(found["pid"]))

    def _killed(self, line: LogLine, found: re.Match[str]) -> None:
        pid = int(found["pid"])
        kill = self._told.get((line.host, pid))
        if kill is None:
            scope = "cgroup" if found["scope"].startswith("Memory cgroup") else "global"
            kill = self._kill(line, scope, None)
            if kill is None:
                return
        self._count(kill, line, found["name"], pid)
        rss = _RSS.search(line.text)
        if rss:
            total = sum(int(part) for part in rss.groups() if part)
            kill.biggest["victim_rss_mib"] = max(
                kill.biggest.get("victim_rss_mib", 0), total // 1024
            )
        if found["vm"]:
            kill.biggest["victim_vm_mib"] = max(
                kill.biggest.get("victim_vm_mib", 0), int(found["vm"]) // 1024
            )

    def _count(self, kill: _Kill, line: LogLine, name: str | None, pid: int) -> None:
        if pid in kill.pids:
            return
        kill.count += 1
        kill.period.add(line.stamp, self._boots.of(line.host, line.stamp))
        if len(kill.pids) < 64:
            kill.pids[pid] = None
        if name and len(kill.victims) < 16:
            kill.victims[name.strip("() ")] = None

    def _finding(self, kill: _Kill) -> Finding:
        limit = self._limit.get(kill.host) if kill.scope == "cgroup" else None
        data: dict[str, Any] = {
            "scope": kill.scope,
            "process": next(iter(kill.victims), None),
            "processes": list(kill.victims) if len(kill.victims) > 1 else None,
            "pid": next(iter(kill.pids), None),
            "pids": list(kill.pids) if len(kill.pids) > 1 else None,
            "cgroup": kill.cgroup[:200] if kill.cgroup else None,
            "limit_mib": limit // 1024 if limit else None,
            "invoked_by": self._by.get(kill.host),
            "count": kill.count,
        } | kill.biggest
        pod, job = _POD.search(kill.cgroup or ""), _SLURM.search(kill.cgroup or "")
        data["pod_uid"] = pod[1].replace("_", "-") if pod else None
        data["job"] = job[1] if job else None
        return Finding(
            kind="oom",
            id=f"oom_{kill.scope}",
            severity=Severity.CRITICAL if kill.scope == "deadlock" else Severity.HIGH,
            says=self._says(kill, data),
            action=_ACTIONS[kill.scope],
            entity=Entity(Kind.NODE, kill.host, host=kill.host) if kill.host else None,
            line=kill.line,
            cause="host_memory_pressure",
            data={k: v for k, v in data.items() if v is not None} | kill.period.data(),
            sources=(_SOURCE,),
        )

    def _says(self, kill: _Kill, data: dict[str, Any]) -> str:
        on = f" on {kill.host}" if kill.host else ""
        names = ", ".join(kill.victims) or "a process"
        pids = f" (pid {', '.join(map(str, list(kill.pids)[:4]))})" if kill.pids else ""
        size = f", which held {data['victim_rss_mib']} MiB" if "victim_rss_mib" in data else ""
        whose = ""
        if data["job"]:
            whose = f" of Slurm job {data['job']}"
        elif data["pod_uid"]:
            whose = f" of pod UID {data['pod_uid']}"
        if kill.scope == "cgroup":
            limit = f" of {data['limit_mib']} MiB" if data["limit_mib"] else ""
            text = (
                f"Out of memory: the kernel's OOM killer killed {names}{pids}{size}{on}, since "
                f"its cgroup{whose} (job, container or pod) reached its memory limit{limit}. It is "
                "host memory, not the GPU's; the machine as a whole need not be short of it."
            )
        elif kill.scope == "numa":
            text = (
                f"Out of memory: the kernel's OOM killer killed {names}{pids}{size}{on}: the host "
                "memory of the NUMA nodes that it may use ran out, others may have room."
            )
        elif kill.scope == "systemd-oomd":
            text = f"systemd-oomd killed the cgroup {data['cgroup']}{on} for memory pressure."
        elif kill.scope == "deadlock":
            text = f"The kernel is out of memory{on} and found nothing to kill: the machine stands."
        else:
            text = (
                f"Out of memory: the kernel's OOM killer killed {names}{pids}{size}{on} because "
                "the whole machine ran out of host memory (system RAM, not the GPU's)."
            )
        if kill.count > 1:
            text += f" {kill.count} kills."
        text += " A killed rank leaves its peers waiting in collectives until they time out."
        times = kill.period.says(kill.count)
        return f"{text} {times}".rstrip()

    def _invoked_only(self) -> Finding:
        host, by = next(iter(self._by.items()))
        return Finding(
            kind="oom",
            id="oom_invoked",
            severity=Severity.MEDIUM,
            says=f"The OOM killer was called by {by}; whom it killed is not in this text.",
            action='Look for it: dmesg -T | grep -E "oom-kill|Killed process".',
            entity=Entity(Kind.NODE, host, host=host) if host else None,
            line=None,
            cause="host_memory_pressure",
            data={"invoked_by": by},
            sources=(_SOURCE,),
        )


_ACTIONS = {
    "cgroup": (
        "Give the job or pod a higher memory limit, or let it need less: fewer data-loader "
        "workers, "
        "less pinned memory, a smaller /dev/shm (it counts). Look at memory.events and memory.peak "
        "of the cgroup."
    ),
    "global": (
        "See who held the memory (the task table above the line, or ps aux --sort=-rss after it), "
        "limit what is not the job's, and put limits on jobs, so that one is killed and not its "
        "neighbours."
    ),
    "numa": "Widen the cpuset or memory policy (numactl -s, cpuset.mems of the cgroup).",
    "systemd-oomd": "Raise the limits of that slice or unit, or exempt it "
    "(ManagedOOMMemoryPressure=auto).",
    "deadlock": "Reset the machine; then find out what took the memory.",
}
