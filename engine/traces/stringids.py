"""Entries of StringIds of an nsys export to SQLite, by their number.

nsys makes ``id`` the key, so that an entry is found at once. Where nothing leads from a number to
its row, every lookup would go through the whole table: then it is gone through once.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

import numpy as np

from engine.traces.intervals import Ints

MAX_TEXT = 2_000
_BATCH = 8_192
# 16 bytes each.
_MOST = 2_000_000
_ROWID = ("rowid", "oid", "_rowid_")

Ask = Callable[..., sqlite3.Cursor]


class StringIds:
    """Looks entries up."""

    def __init__(self, ask: Ask) -> None:
        """Look how the table is built; ``ask`` runs a statement."""
        self._ask = ask
        text = f"iif(typeof(value) = 'text', substr(value, 1, {MAX_TEXT}), NULL)"
        by_id = f"SELECT {text} FROM StringIds WHERE id = ? LIMIT 1"  # noqa: S608 - no outside text
        plan = ask(f"EXPLAIN QUERY PLAN {by_id}", (1,)).fetchall()
        self._sql = by_id
        self._numbers: Ints | None = None
        if not any(str(row[-1]).startswith("SEARCH") for row in plan):
            row_id = self._index()
            self._sql = f"SELECT {text} FROM StringIds WHERE {row_id} = ?"  # noqa: S608 - one of three

    def text(self, number: int) -> str | None:
        """Return an entry, cut; None if there is none."""
        key = number
        if self._numbers is not None:
            at = int(np.searchsorted(self._numbers, number))
            if at >= self._numbers.size or int(self._numbers[at]) != number:
                return None
            key = int(self._rows[at])
        row = self._ask(self._sql, (key,)).fetchone()
        return row[0] if row is not None and isinstance(row[0], str) else None

    def _index(self) -> str:
        """Read the number of every row; return what the row's own number is called."""
        columns = {str(row[1]).lower() for row in self._ask("PRAGMA table_xinfo(StringIds)")}
        row_id = next((name for name in _ROWID if name not in columns), None)
        parts = []
        left = _MOST
        if row_id is not None:
            sql = f"SELECT id, {row_id} FROM StringIds WHERE typeof(id) = 'integer'"  # noqa: S608 - as above
            try:
                cursor = self._ask(sql)
            except sqlite3.OperationalError:  # a table without numbers of rows
                cursor = None
            while cursor is not None and left > 0 and (rows := cursor.fetchmany(_BATCH)):
                parts.append(np.array(rows, dtype=np.int64))
                left -= len(rows)
        table = np.concatenate(parts) if parts else np.empty((0, 2), dtype=np.int64)
        table = table[np.argsort(table[:, 0], kind="stable")]
        self._numbers, self._rows = table[:, 0], table[:, 1]
        return row_id or "id"
