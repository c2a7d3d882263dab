"""Tell an event from a line that says that there was none, or from a command that writes one.

``no NVRM: Xid (PCI:0000:3b:00): 79 was found`` and ``echo "NVRM: Xid …" > /dev/kmsg`` hold the
words of the driver, and nothing happened. Only words right before or after them count: what
somebody complains of in the same breath (``it does not start NVRM: Xid …``) is an event.
"""

from __future__ import annotations

import re

_COMMAND = re.compile(
    r"\b(?:echo|printf|logger|[ef]?grep|rg|awk|sed)[ \t]+"
    r"(?:-{1,2}[\w=.-]{1,24}[ \t]+(?:[\w.]{1,24}[ \t]+)?){0,4}"
    r"(?:\"[^\"]{0,200}|'[^']{0,200}|\\?[\"'])?(?:<[0-9]{1,3}> ?)?"
    r"(?:\[ {0,12}[0-9]{1,9}\.[0-9]{1,9}\] )?(?:kernel: )?$"
)
_INJECTED = re.compile(r">{1,2} ?/dev/kmsg\b|\|[ \t]?(?:sudo )?tee (?:-a )?/dev/kmsg\b")
_SEEN = r"(?:find|found|see|seen|saw|have|had|show|shown|log(?:ged)?|print(?:ed)?|report(?:ed)?)"
_NONE_BEFORE = re.compile(
    r"(?:\b(?:no|without|never|neither)|\b(?:not|n't|never|without|cannot) (?:[a-z]{2,12} ){0,1}"
    rf"{_SEEN}(?:ing)?)(?: (?:any|an?|the|such|new|more|single|other|line|message|event)){{0,3}} "
    r"[\"'`]?$",
    re.IGNORECASE,
)
_NONE_AFTER = re.compile(
    r"[\"'`]?,? ?(?:(?:was|were|is|are|has|have|had|did|does|could)(?: not|n't| never)|not|never)"
    rf"(?: be(?:en)?)? (?:{_SEEN}|there|present|occur|happen|appear)",
    re.IGNORECASE,
)
_TAG = "NVRM: "
# What stands before the words is looked at no further back.
_BEFORE = 320


def denied(text: str, start: int, end: int) -> bool:
    """Return whether a line denies the event at ``text[start:end]``, or is the command for it."""
    before = text[max(0, start - _BEFORE) : start].removesuffix(_TAG)
    return bool(
        _COMMAND.search(before)
        or _NONE_BEFORE.search(before)
        or _NONE_AFTER.match(text, end)
        or ("/dev/kmsg" in text and _INJECTED.search(text, end))
    )
