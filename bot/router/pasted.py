"""Pasted output in a message: logs, metrics, what tools print.

A cheap test for lines that the readers (`engine.readers`) take; it never explains anything. One
line must bear the mark of a program; of several, it is enough that the readers know some of them.
"""

from __future__ import annotations

import re

from bot.router.slacktext import Message
from engine.readers.scan import lines_known

# Standing anywhere in a line, each is written by a program only.
_MARKS = re.compile(
    r"NVRM: |\bS?Xid \((?:PCI:)?[0-9A-Fa-f]{4}|\bXid=\d+ on Device="
    r"|nvidia-nvswitch\d?: |detected NVSwitch"
    r"|=NVSMI LOG=|\| NVIDIA-SMI \d|\bNCCL (?:INFO|WARN|TRACE) "
    r"|nvidia[-_]peermem|nv_peer_mem"
    r"|clocks_(?:throttle|event)_reasons\.(?:active|supported)"
    r"|\bProcessGroupNCCL\.cpp:\d|\bWatchdog caught collective|\bOutOfMemoryError: (?:CUDA|HIP)"
    r"|\bamdgpu [0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:|\bmlx5_core [0-9A-Fa-f]{4}:"
    r"|\bPCIe Bus Error: severity=|\bOut of memory: Kill|\bAvg bus bandwidth\b"
    r"|\b[HS]W [A-Z][A-Za-z ]{3,30} : (?:Not )?Active"
)
_SAMPLE = re.compile(
    r"\s*[A-Za-z_:][\w:]*\{[A-Za-z_]\w*=\"[^\n]*\}[ \t]+"
    r"[-+]?(?:\d[\d.]*(?:[eE][-+]?\d+)?|NaN|Inf)(?:[ \t]+\d{9,13}(?:\.\d+)?)?[ \t]*$",
    re.ASCII,
)
_META = re.compile(r"^\s*# (?:TYPE|HELP) [A-Za-z_:][\w:]* ", re.ASCII)
# The listing of `nvidia-smi -q` pads its keys, so a space stands before the colon.
_LISTED = re.compile(r"^\s*[A-Z][A-Za-z0-9 ./()-]{1,50}[A-Za-z0-9)] {2,}: \S")
_LISTED_LINES = 3
# Line feeds from which a message may be a paste without a mark.
_SEVERAL = 2
_KNOWN = 2


_ASKS = re.compile(
    r"\b(?:read|look|check|explain|decode|analy[sz]e|interpret|what|mean|why|help|see)\b",
    re.IGNORECASE,
)


def pasted_text(message: Message) -> str | None:
    """Return the pasted output that a message brings, or None.

    That is its fences, its quotation or all of it, wherever a tool's line stands; and a fence of
    several lines that somebody asks about.
    """
    if any(is_pasted(fence) for fence in message.fences):
        return "\n".join(message.fences)
    if is_pasted(message.quoted):
        return message.quoted
    if is_pasted(message.prose):
        return message.raw
    blocks = [fence for fence in message.fences if "\n" in fence]
    return "\n".join(blocks) if blocks and _ASKS.search(message.prose) else None


def is_pasted(text: str) -> bool:
    """Return whether some line of a text was written by a tool that the readers know."""
    if _MARKS.search(text):
        return True
    listed = 0
    for line in text.splitlines():
        if ('="' in line and _SAMPLE.match(line)) or ("# " in line and _META.match(line)):
            return True
        listed += " : " in line and bool(_LISTED.match(line))
        if listed >= _LISTED_LINES:
            return True
    several = text.count("\n") >= _SEVERAL
    return several and lines_known(text.encode("utf-8", "replace")) >= _KNOWN
