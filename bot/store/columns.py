"""Column types that take whatever people send.

Text from outside may hold what a database cannot: NUL (PostgreSQL) and half surrogate pairs (any
UTF-8). In JSON both are written as escapes and come back unchanged; in plain text columns they
become U+FFFD, the replacement character.
"""

from __future__ import annotations

import json
import re
from functools import partial

from sqlalchemy import JSON, BigInteger, Dialect, Integer, Text
from sqlalchemy.types import TypeDecorator

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")

# Escaped to ASCII; NaN and infinities are refused, as PostgreSQL would.
to_json_text = partial(json.dumps, allow_nan=False, separators=(",", ":"))


class Words(TypeDecorator[str]):
    """Text in which what cannot be stored is replaced."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        """Return the text as it is stored."""
        return None if value is None else _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", value)


# SQLite counts up by itself only in a column declared INTEGER.
Serial = BigInteger().with_variant(Integer(), "sqlite")

# JSON and not JSONB: what was written is read back in the same order, escapes included.
Document = JSON(none_as_null=True)
