"""Where an error came up inside NCCL: ``transport/nvls.cc:394 -> 1``, and what the number means.

One such line is printed at level INFO for every caller; the WARN line above says what went wrong.
Source: ncclResult_t in NVIDIA/nccl src/nccl.h.in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from engine.model import Finding, Severity
from engine.readers.nccl.lines import NcclLine
from engine.readers.nccl.messages import Messages
from engine.readers.nccl.told import ORDER, Told

_CALLER = re.compile(
    r"^(?P<place>[\w./-]{1,120}\.(?:cc|h|cu|cpp)):(?P<line>\d{1,6}) -> (?P<result>[1-8])\b"
)
# Name, what it means, and where to look.
_RESULTS: Final = {
    1: ("ncclUnhandledCudaError", "a CUDA call failed", "the WARN line; dmesg | grep -i xid"),
    2: (
        "ncclSystemError",
        "a system call, socket or verbs call failed",
        "the WARN line: /dev/shm, interfaces, memlock, a peer that is not there",
    ),
    3: ("ncclInternalError", "an internal check failed", "the WARN line; the release notes"),
    4: ("ncclInvalidArgument", "an argument is not allowed", "the WARN line; the calling code"),
    5: (
        "ncclInvalidUsage",
        "NCCL is used in a way that is not allowed, as a rule two ranks on one GPU",
        "how ranks are mapped to devices (LOCAL_RANK, CUDA_VISIBLE_DEVICES)",
    ),
    6: (
        "ncclRemoteError",
        "a peer ended or the network to it failed",
        "the rank that ended first",
    ),
    7: ("ncclInProgress", "the call had not ended yet", "nothing"),
}  # fmt: skip
_IN_PROGRESS: Final = 7
_SOURCE: Final = "NVIDIA/nccl v2.30.7 src/nccl.h.in"


class Callers:
    """The places through which errors came up, by result, bounded."""

    def __init__(self) -> None:
        self._results: dict[int, tuple[int, str, int]] = {}

    def info(self, host: str | None, text: str, number: int, messages: Messages) -> bool:
        """Take a set-up line; return whether it is one of a chain of callers."""
        found = _CALLER.match(text)
        if found is None:
            return False
        result = int(found["result"])
        place = f"{found['place']}:{found['line']}"
        messages.feed(NcclLine(number, f"-> {result}", "INFO", host, place=place))
        first, where, count = self._results.get(result, (number, place, 0))
        self._results[result] = (first, where, count + 1)
        return True

    def tell(self, *, explained: bool) -> Iterator[Told]:
        """Yield what the results mean, if no other line says what went wrong."""
        if explained:
            return
        for result, (number, place, count) in sorted(self._results.items()):
            if result == _IN_PROGRESS:
                continue
            name, meaning, look = _RESULTS.get(result, ("unknown", "an error", "the WARN line"))
            yield Told(
                ORDER["symptom"],
                number,
                Finding(
                    kind="nccl",
                    id="result",
                    severity=Severity.MEDIUM,
                    says=(
                        f"A call inside NCCL returned {result} ({name}): {meaning}. It came up"
                        f" first in {place}. The WARN line that says what went wrong is not here."
                    ),
                    action=f"Set NCCL_DEBUG=INFO, repeat it, and look at {look}.",
                    entity=None,
                    line=number,
                    cause="launch_misconfigured" if result == 5 else None,
                    data={"nccl_error": result, "place": place, "count": count},
                    sources=(_SOURCE,),
                ),
            )
