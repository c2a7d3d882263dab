"""Kernels that crash: panics, oopses, and which driver's code they were in.

Lines: Linux kernel/panic.c, arch/x86/mm/fault.c, arch/x86/kernel/traps.c and dumpstack.c, and
arch/arm64/mm/fault.c.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from engine.model import Finding, Severity
from engine.readers.host.part import Rule, Tally
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
