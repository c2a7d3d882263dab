"""An Xid that somebody typed, where no line of a log stands: what it is, and where to look."""

from __future__ import annotations

import re
from typing import Final

from engine.catalogue.types import Catalogue

# So short a text is what somebody typed; more is a document.
SHORT: Final = 2_048
_XID: Final = re.compile(
    rb"\bxid(?:s|[ -]?error)?[ \t]{0,3}[:=#]?[ \t]{0,3}#?([0-9]{1,4})\b", re.IGNORECASE
)
_MOST: Final = 3


def mentioned(text: bytes, catalogue: Catalogue) -> list[str]:
    """Return a remark for each documented Xid that a short text names without a log line."""
    if len(text) > SHORT:
        return []
    entries = catalogue.entries.get("xid", {})
    codes = dict.fromkeys(int(code) for code in _XID.findall(text))
    known = [code for code in codes if str(code) in entries][:_MOST]
    return [
        f"Xid {code} is named here ({entries[str(code)]['title']}), but no line of a log shows it, "
        f"so nothing is claimed of a GPU. What it means: gpuwhy decode xid {code}. Whether it "
        "happened: dmesg -T | grep -E 'Xid|SXid' on the node; give those lines."
        for code in known
    ]
