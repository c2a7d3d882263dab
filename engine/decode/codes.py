"""Xids and SXids: what NVIDIA's bucket names ask for, and which Xids follow."""

from __future__ import annotations

from typing import Any

from engine.catalogue.types import Catalogue
from engine.decode.entries import Entry

_BUCKET_KEYS = ("resolution", "investigate")


def with_context(kind: str, entry: Entry, catalogue: Catalogue) -> Entry:
    """Return an entry with what other tables say about it; entries of other kinds as they are.

    Added are ``resolution_asks`` and ``investigate_asks`` (what the bucket of that name asks for)
    and, for an Xid, ``followed_by``: the Xids that come after it, and why.
    """
    if kind not in {"xid", "sxid"}:
        return entry
    buckets = catalogue.entries.get("xid_buckets", {})
    added: dict[str, Any] = {
        f"{key}_asks": buckets[entry[key]]["meaning"]
        for key in _BUCKET_KEYS
        if entry.get(key) in buckets
    }
    if kind == "xid":
        chains = [
            {"xids": chain["then"], "why": chain.get("why")}
            for chain in catalogue.entries.get("xid_follow_on", {}).values()
            if chain["first"] == entry["id"]
        ]
        added |= {"followed_by": chains} if chains else {}
    return {**entry, **added}
