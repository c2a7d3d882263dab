"""Processes that crashed inside the library: the kernel's line about a segmentation fault.

``pt_main_thread[2536443]: segfault at 7f79… ip … error 4 in libnccl.so.2[…]`` (Linux
arch/x86/mm/fault.c, show_signal_msg) and ``traps: python3[42] general protection fault …``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from engine.model import Entity, Finding, Kind, Severity
from engine.readers.nccl.told import ORDER, Told

_CRASH = re.compile(
    r"(?P<process>[\w.:+-]{1,32})\[(?P<pid>\d{1,10})\]:? (?:segfault at |general protection|trap )"
    r".{0,200} in (?P<library>lib(?:nccl|rccl)[\w.+-]{0,40})(?:\[|\s|$)"
)
_MOST: Final = 256
_SOURCE: Final = "Linux arch/x86/mm/fault.c, arch/x86/kernel/traps.c"


class Crashes:
    """Gathers them by library, bounded."""

    def __init__(self) -> None:
        self._seen: dict[str, list[tuple[int, str, int]]] = {}

    def feed(self, number: int, text: str) -> bool:
        """Take a line; return whether it is such a crash."""
        found = _CRASH.search(text[:4_096])
        if found is None:
            return False
        if found["library"] in self._seen or len(self._seen) < 16:
            seen = self._seen.setdefault(found["library"], [])
            if len(seen) < _MOST:
                seen.append((number, found["process"], int(found["pid"])))
        return True

    def tell(self, version: str | None) -> Iterator[Told]:
        """Yield one finding for each library; ``version`` as the log names it."""
        for library, seen in self._seen.items():
            number, process, pid = seen[0]
            plugin = "-net" in library or "-profiler" in library or "-tuner" in library
            others = f", and {len(seen) - 1} more processes" if len(seen) > 1 else ""
            yield Told(
                ORDER["root"],
                number,
                Finding(
                    kind="nccl",
                    id="library_crash",
                    severity=Severity.HIGH,
                    says=(
                        f"The process {process} (pid {pid}{others}) crashed inside {library}"
                        + (", a plugin of NCCL" if plugin else "")
                        + " (segmentation fault in user space). This is not an Xid and says nothing"
                        " against a GPU: memory that was freed or overwritten, a bug of this"
                        " version, or the end of a job that another rank broke off."
                    ),
                    action=(
                        "Look for an earlier failure of any rank first. Then look the NCCL version"
                        " up among known issues and try a newer one"
                        + (f" (this log: {version})" if version else "")
                        + "; a core dump with gdb (bt) names the function."
                    ),
                    entity=Entity(Kind.JOB, process),
                    line=number,
                    cause=None,
                    data={"process": process, "pid": pid, "library": library, "count": len(seen)},
                    sources=(_SOURCE,),
                ),
            )
