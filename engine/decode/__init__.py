"""Decoding one thing: a throttle mask, an Xid, a DCGM field, a metric, a name.

Public: `decode`. Needs the standard library only, and of the catalogue only the knowledge.
"""

from __future__ import annotations

from engine.decode.decode import decode

__all__ = ["decode"]
