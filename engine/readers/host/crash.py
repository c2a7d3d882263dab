"""Crashes: of the kernel, and in which driver's code; of a process, and in which library.

Lines: Linux kernel/panic.c, arch/x86/mm/fault.c, arch/x86/kernel/traps.c and dumpstack.c, and
arch/arm64/mm/fault.c.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from engine.model import Finding, Severity
from engine.readers.host.part import Rule, RulePart, Tally
from engine.readers.host.stalls import StallPart

_NVIDIA = "the NVIDIA driver"


class CrashPart(StallPart):
    """Reads crashes of the kernel itself; the stack below names the driver."""

    kind: ClassVar[str] = "kernel_crash"
    marks: ClassVar[tuple[str, ...]] = (
        "Kernel panic - not syncing",
        "BUG: unable to handle ",
        "BUG: kernel NULL pointer dereference",
        "Unable to handle kernel ",
        "general protection fault, ",
    )
    rules: ClassVar[Sequence[Rule]] = (
        Rule(
            "kernel_panic",
            re.compile(r"Kernel panic - not syncing: (?P<reason>[^\[\]{}!]{1,80})"),
            Severity.CRITICAL,
            "The kernel stopped{on}: {reason}. Everything on the machine ended there.",
            "Read the lines before it: machine checks, PCIe errors or a driver's crash are the "
            "reason. Keep the log (pstore, kdump, the BMC's console) before it is overwritten.",
            apart=("reason",),
            source="Linux kernel/panic.c",
        ),
        Rule(
            "kernel_oops",
            re.compile(
                r"(?P<what>BUG: unable to handle (?:kernel )?(?:page fault|paging request|NULL "
                r"pointer dereference)|BUG: kernel NULL pointer dereference|Unable to handle "
                r"kernel (?:paging request|NULL pointer dereference|access)|general protection "
                r"fault)"
            ),
            Severity.HIGH,
            "The kernel crashed in its own code{on} ({what}): the task in it was killed, and locks "
            "that it held stay taken.",
            "Reboot the machine before it works again; report the crash with its stack to whose "
            "code it was in.",
            source="Linux arch/x86/mm/fault.c",
        ),
    )

    def finding(self, tally: Tally) -> Finding | None:
        """Name the driver whose code stands first in the stack."""
        where = self.stack_of(tally)
        if where is None:
            return self.said(tally)
        what, _, frame = where
        cause = "driver_or_firmware_xid" if what == _NVIDIA else None
        extra = f"The stack leads into {what} ({frame})."
        return self.said(tally, cause=cause, extra=extra, data={"stack_in": what})


# Libraries whose crashes touch GPU work; those of NCCL and RCCL have a reader of their own.
_GPU_LIBRARY = re.compile(
    r"lib(?:cu|nv|torch|c10|tensorrt|triton|xla|hip|hsa|roc|amdhip|mlx5|ib|ucp|uct|nixl|gdr)"
)


class ProcessCrashPart(RulePart):
    """Reads the kernel's lines about processes that crashed in user space."""

    kind: ClassVar[str] = "process_crash"
    marks: ClassVar[tuple[str, ...]] = (": segfault at ", "] general protection fault ip:")
    rules: ClassVar[Sequence[Rule]] = (
        Rule(
            "segfault",
            re.compile(
                r"(?P<process>[\w.:/+-]{1,32})\[(?P<pid>\d{1,10})\]:? "
                r"(?:segfault at |general protection fault ip:)(?!.{0,200} in lib(?:nccl|rccl))"
                r"(?:[^\[\]]{0,120}? in (?P<library>[\w.+-]{1,60})\[)?"
            ),
            Severity.MEDIUM,
            "The process {process} (pid {pid}){on} crashed in user space (segmentation fault): it "
            "touched memory that is not its own. This is not an Xid and says nothing against a "
            "GPU.",
            "Look for the program's own last words and for an Xid at the same time; a core dump "
            "(coredumpctl gdb {pid}, then bt) names the function. Host memory with errors (EDAC, "
            "MCE lines) is the reason only if different programs crash.",
            apart=("process", "library"),
            source="Linux arch/x86/mm/fault.c, arch/x86/kernel/traps.c",
        ),
    )

    def finding(self, tally: Tally) -> Finding | None:
        """Name the library; a crash that has nothing to do with GPU work says nothing here."""
        library = tally.values.get("library", "")
        if not _GPU_LIBRARY.match(library):
            return None
        return self.said(tally, extra=f"It was in {library}.")
