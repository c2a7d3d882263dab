"""Tasks and processors that stand still: hung tasks, soft and hard lockups, RCU stalls.

Lines: Linux kernel/hung_task.c, kernel/watchdog.c, kernel/rcu/tree_stall.h. Behind a hung task the
kernel prints its stack: what it waits in tells storage from driver.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar

from engine.model import Finding, Severity
from engine.readers.host.part import Rule, RulePart, Tally
from engine.readers.logline import LogLine

# A stack has at most some thirty frames; other lines may come between.
_STACK_LINES = 45
_FRAME = re.compile(
    r"(?:\] |: |^|\s|RIP: \w{4}:)\??\s{0,2}(?P<name>[A-Za-z_][\w.]{2,60})\+0x[0-9a-f]{1,6}/0x"
)
_WAITS: tuple[tuple[str, str, str | None], ...] = (
    (r"^(?:nfs4?_|rpc_wait|rpc_run|xprt_|nfs_wait)", "NFS", "storage_slow"),
    (r"^(?:ll_|cl_|osc_|mdc_|ptlrpc|ldlm_|lov_|vvp_|obd_)", "Lustre", "storage_slow"),
    (r"^(?:cxi|gpfs|mmfs|kxSendFlock|_Z\w*gpfs|KSFull|cxiWaitEventWait)", "GPFS", "storage_slow"),
    (r"^(?:ceph_|fuse_|wekafs|beegfs|FhgfsOps|cifs_|smb2_)", "a network or FUSE file system",
     "storage_slow"),
    (r"^(?:xfs_|ext4_|jbd2_|btrfs_|blk_mq|submit_bio|nvme_|io_schedule|wait_on_page|folio_wait)",
     "local storage", None),
    (r"^(?:nv_|nvidia_|os_acquire|rm_|uvm_|_nv\d|nvUvm|down_write_killable_nv)",
     "the NVIDIA driver", None),
    (r"^(?:amdgpu_|kfd_|amdkfd)", "the AMD GPU driver", None),
    (r"^(?:mlx5_|ib_|rdma_|ucma_|uverbs_)", "the RDMA stack", None),
)  # fmt: skip
_COMPILED = tuple((re.compile(pattern), what, cause) for pattern, what, cause in _WAITS)
_HUNG = "hung_task"


class StallPart(RulePart):
    """Reads hung tasks, lockups and RCU stalls."""

    kind: ClassVar[str] = "stall"
    marks: ClassVar[tuple[str, ...]] = (
        " blocked for more than ",
        "soft lockup",
        "hard LOCKUP",
        "self-detected stall",
        "detected stalls on",
        "detected expedited stalls",
        "hung_task_timeout_secs",
    )
    rules: ClassVar[Sequence[Rule]] = (
        Rule(
            _HUNG,
            re.compile(
                r"task (?P<task>\S{1,40}?):(?P<pid>\d{1,10}) (?:blocked|is blocked) for more than "
                r"(?P<blocked_s>\d{1,7}) seconds"
            ),
            Severity.MEDIUM,
            "Task {task} (pid {pid}){on} stood in uninterruptible sleep for more "
            "than {blocked_s} s.",
            "See what it waits for: cat /proc/PID/stack, and echo w > /proc/sysrq-trigger for all "
            "such tasks. In a job it is this rank that the others wait for.",
            apart=("task",),
            source="Linux kernel/hung_task.c",
        ),
        Rule(
            "soft_lockup",
            re.compile(
                r"soft lockup - CPU#(?P<cpu>\d{1,5}) stuck for (?P<stuck_s>\d{1,7})s!"
                r"(?: \[(?P<task>[^\]]{1,40}):(?P<pid>\d{1,10})\])?"
            ),
            Severity.HIGH,
            "Soft lockup{on}: CPU {cpu} ran kernel code for {stuck_s} s without a break, in task "
            "{task}. Whatever needs that CPU stands still meanwhile, GPU work included.",
            "Read the stack below the line: it names the driver or file system. In a virtual "
            "machine, look for an overcommitted or paused host first.",
            apart=("task",),
            source="Linux kernel/watchdog.c",
        ),
        Rule(
            "hard_lockup",
            re.compile(
                r"(?:Watchdog detected hard LOCKUP on cpu|hard LOCKUP on cpu) ?(?P<cpu>\d{1,5})"
            ),
            Severity.CRITICAL,
            "Hard lockup{on}: CPU {cpu} takes no interrupts any more.",
            "Reset the machine, keep the log; suspect firmware, hardware or a driver in the stack.",
            source="Linux kernel/watchdog.c",
        ),
        Rule(
            "rcu_stall",
            re.compile(
                r"(?P<flavour>rcu_\w{3,10}|rcu(?=: INFO: self| INFO: self))"
                r".{0,40}?(?:self-detected stall on CPU"
                r"|detected (?:expedited )?stalls on CPUs)"
            ),
            Severity.HIGH,
            "RCU stall{on}: a CPU did not let go of the kernel for some tens of seconds.",
            "Read the stack below the line. In a virtual machine it usually means that the host "
            "did not run it; on bare metal a driver that holds a CPU.",
            apart=("flavour",),
            source="Linux kernel/rcu/tree_stall.h",
        ),
    )

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._stack_of: Tally | None = None
        self._left = 0
        self._waits: dict[int, tuple[str, str | None, str]] = {}

    def take(self, line: LogLine) -> bool:
        """Take a record; behind a stalled task, the frames of its stack too."""
        before = sum(t.count for t in self.tallies.values()) if self._marked(line.text) else -1
        if before >= 0 and super().take(line):
            newest = max(self.tallies.values(), key=lambda t: t.last_line, default=None)
            self._stack_of, self._left = newest, _STACK_LINES
            self.open = newest is not None
            return True
        if "hung_task_timeout_secs" in line.text:
            return True
        return self._frame(line.text) if self.open else False

    def finding(self, tally: Tally) -> Finding | None:
        """Add what the task waits in; that is the cause where it is storage."""
        waits = self.stack_of(tally)
        if waits is None:
            return self.said(tally)
        what, cause, frame = waits
        extra = f"Its stack waits in {what} ({frame})."
        severity = Severity.HIGH if cause else None
        return self.said(
            tally, severity=severity, cause=cause, extra=extra, data={"waits_in": what}
        )

    def stack_of(self, tally: Tally) -> tuple[str, str | None, str] | None:
        """Return whose code a stack leads into, the cause that this is, and the frame."""
        return self._waits.get(id(tally))

    def _marked(self, text: str) -> bool:
        return any(mark in text for mark in self.marks)

    def _frame(self, text: str) -> bool:
        self._left -= 1
        self.open = self._left > 0
        found = _FRAME.search(text)
        if found is None or self._stack_of is None:
            return "Call Trace:" in text
        if id(self._stack_of) not in self._waits:
            for pattern, what, cause in _COMPILED:
                if pattern.match(found["name"]):
                    self._waits[id(self._stack_of)] = (what, cause, found["name"])
                    break
        return True
