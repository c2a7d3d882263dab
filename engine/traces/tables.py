"""Tables of an nsys export, whatever they lie in: the port, and SQLite.

The database is untrusted: it is opened read-only and immutable, its schema may call no functions
that have effects, long texts are refused, and a statement that takes far more steps than the file
has bytes is stopped.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

import numpy as np

from engine.errors import InputError
from engine.traces.intervals import Ints

MISSING = -1
MAX_TEXT = 2_000
BATCH = 8_192
_LONGEST = 16 << 20
# Virtual machine steps: a scan takes some 20 for a row of 50 bytes and more.
_STEPS_AT_LEAST, _STEPS_PER_BYTE, _STEPS_BETWEEN = 200_000_000, 30, 1_000_000
_SUMS = "count(*), sum(end - start), max(end - start)"
_SANE = "WHERE start >= 0 AND end >= start"
_MAGIC = b"SQLite format 3\x00"


@dataclass(frozen=True, slots=True)
class Keep:
    """Rows to take: those whose column has one of the values; any one condition will do.

    Attributes:
        among: column and values.
        sample: column, and how many of the 1009 remainders of it are taken.
    """

    among: tuple[tuple[str, frozenset[int]], ...] = ()
    sample: tuple[str, int] | None = None


# A prime, so that what repeats every second or tenth row is sampled alike.
SAMPLE = 1_009


@dataclass(frozen=True, slots=True)
class Total:
    """Rows of one name: how many, and how long in all and at most (ns)."""

    count: int
    total: int
    longest: int


class Tables(Protocol):
    """What is asked of an export. Tables and columns differ by version: look before asking."""

    source: str

    def columns(self, table: str) -> frozenset[str]:
        """Return the columns of a table; empty if there is no such table."""

    def rows(
        self, table: str, columns: Sequence[str], keep: Keep | None = None
    ) -> Iterator[list[Ints]]:
        """Yield batches of int64 columns, in any order; what is missing is `MISSING`."""

    def totals(self, table: str, key: str) -> dict[int, Total]:
        """Return what rows with ``start >= 0`` and ``end >= start`` take, by an integer column."""

    def texts(self, numbers: Iterable[int]) -> dict[int, str]:
        """Return entries of StringIds, cut to `MAX_TEXT`."""

    def named_totals(self, table: str, column: str) -> dict[str, Total]:
        """Return the same as `totals` by a text column, operators of PyTorch left out."""

    def named_rows(
        self, table: str, column: str, names: Iterable[str], numbers: Sequence[str]
    ) -> Iterator[tuple[str, list[int]]]:
        """Yield rows of some names: the name, and integer columns."""

    def values(self, table: str, names: Iterable[str]) -> dict[str, str]:
        """Return entries of a table of names and values."""

    def records(self, table: str, columns: Sequence[str], limit: int) -> list[tuple[object, ...]]:
        """Return the first rows of a small table, as they stand."""


class SqliteTables:
    """An export to SQLite."""

    source = "nsys"

    def __init__(self, path: Path) -> None:
        """Open a database.

        Raises:
            InputError: it is no SQLite database, or a damaged one.
        """
        self._path = path
        try:
            with path.open("rb") as file:
                if file.read(16) != _MAGIC:
                    raise InputError(f"{path.name} is no SQLite database")
            size = path.stat().st_size
            self._db = sqlite3.connect(
                f"file:{quote(str(path.resolve()))}?mode=ro&immutable=1",
                uri=True,
                isolation_level=None,
                check_same_thread=False,
            )
        except (OSError, sqlite3.Error) as error:
            raise InputError(f"cannot open {path.name}: {error}") from error
        self._db.text_factory = lambda raw: raw.decode("utf-8", "replace")
        self._db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
        self._steps = 0
        self._most = max(_STEPS_AT_LEAST, _STEPS_PER_BYTE * size)
        self._db.set_progress_handler(self._count, _STEPS_BETWEEN)
        try:
            self._tables = self._ordinary_tables()
        except InputError:
            self._db.close()
            raise
        self._columns: dict[str, frozenset[str]] = {}

    def close(self) -> None:
        """Close the database."""
        self._db.close()

    @property
    def tables(self) -> frozenset[str]:
        """The names of all tables."""
        return frozenset(self._tables)

    def columns(self, table: str) -> frozenset[str]:
        """Return the columns of a table; empty if there is no such table."""
        if table not in self._tables:
            return frozenset()
        found = self._columns.get(table)
        if found is None:
            with self._errors():
                rows = self._ask(f"PRAGMA table_info({_quoted(table)})").fetchall()
            found = self._columns[table] = frozenset(str(row[1]) for row in rows)
        return found

    def rows(
        self, table: str, columns: Sequence[str], keep: Keep | None = None
    ) -> Iterator[list[Ints]]:
        """Yield batches of int64 columns."""
        known = self.columns(table)
        if not {"start", "end"} <= known:
            return
        chosen = ", ".join(
            f"ifnull({_quoted(c)}, {MISSING})" if c in known else str(MISSING) for c in columns
        )
        where, values = _where(keep, known)
        with self._errors():
            cursor = self._ask(f"SELECT {chosen} FROM {_quoted(table)}{where}", values)  # noqa: S608 - quoted names of the schema
            while rows := cursor.fetchmany(BATCH):
                yield _arrays(rows, len(columns))

    def totals(self, table: str, key: str) -> dict[int, Total]:
        """Return what rows take, by an integer column."""
        if not {"start", "end", key} <= self.columns(table):
            return {}
        with self._errors():
            rows = self._ask(
                f"SELECT {_quoted(key)}, {_SUMS} FROM {_quoted(table)} {_SANE} GROUP BY 1"  # noqa: S608 - quoted
            ).fetchmany(65_536)
        return {
            number: Total(count, total, longest)
            for number, count, total, longest in rows
            if isinstance(number, int) and isinstance(total, int) and isinstance(longest, int)
        }

    def texts(self, numbers: Iterable[int]) -> dict[int, str]:
        """Return entries of StringIds."""
        if not {"id", "value"} <= self.columns("StringIds"):
            return {}
        out: dict[int, str] = {}
        sql = f"SELECT substr(value, 1, {MAX_TEXT}) FROM StringIds WHERE id = ?"  # noqa: S608
        with self._errors():
            for number in numbers:
                row = self._ask(sql, (number,)).fetchone()
                if row is not None and isinstance(row[0], str):
                    out[number] = row[0]
        return out

    def named_totals(self, table: str, column: str) -> dict[str, Total]:
        """Return what rows take, by a text column."""
        if not {"start", "end", column} <= self.columns(table):
            return {}
        name = f"substr({_quoted(column)}, 1, {MAX_TEXT})"
        with self._errors():
            rows = self._ask(
                f"SELECT {name}, {_SUMS} FROM {_quoted(table)} {_SANE} "  # noqa: S608 - quoted names
                f"AND {_quoted(column)} NOT GLOB '*::*, op_id = *' GROUP BY 1"
            )
            return {
                text: Total(count, total, longest)
                for text, count, total, longest in rows.fetchmany(65_536)
                if isinstance(text, str) and isinstance(total, int) and isinstance(longest, int)
            }

    def named_rows(
        self, table: str, column: str, names: Iterable[str], numbers: Sequence[str]
    ) -> Iterator[tuple[str, list[int]]]:
        """Yield rows of some names."""
        known = self.columns(table)
        if not {"start", "end", column} <= known:
            return
        chosen = ", ".join(_quoted(c) if c in known else str(MISSING) for c in numbers)
        wanted = json.dumps(list(names))
        name = f"substr({_quoted(column)}, 1, {MAX_TEXT})"
        with self._errors():
            cursor = self._ask(
                f"SELECT {name}, {chosen} FROM {_quoted(table)} "  # noqa: S608 - quoted names of the schema
                f"WHERE {name} IN (SELECT value FROM json_each(?))",
                (wanted,),
            )
            for row in cursor:
                cells = [c if isinstance(c, int) else MISSING for c in row[1:]]
                yield str(row[0]), cells

    def values(self, table: str, names: Iterable[str]) -> dict[str, str]:
        """Return entries of a table of names and values."""
        if not {"name", "value"} <= self.columns(table):
            return {}
        out: dict[str, str] = {}
        sql = f"SELECT substr(value, 1, 200) FROM {_quoted(table)} WHERE name = ?"  # noqa: S608 - quoted
        with self._errors():
            for name in names:
                row = self._ask(sql, (name,)).fetchone()
                if row is not None and isinstance(row[0], str | int):
                    out[name] = str(row[0])
        return out

    def records(self, table: str, columns: Sequence[str], limit: int) -> list[tuple[object, ...]]:
        """Return the first rows of a small table."""
        known = self.columns(table)
        if not known:
            return []
        chosen = ", ".join(_quoted(c) if c in known else "NULL" for c in columns)
        with self._errors():
            return self._ask(f"SELECT {chosen} FROM {_quoted(table)} LIMIT {limit}").fetchall()  # noqa: S608 - quoted names of the schema

    def _ordinary_tables(self) -> set[str]:
        """Make the database harmless; return its tables: nsys writes no views or virtual tables."""
        with self._errors():
            for pragma in ("trusted_schema = OFF", "query_only = ON", "cell_size_check = ON"):
                self._db.execute(f"PRAGMA {pragma}")
            rows = self._db.execute(
                "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND length(name) < 100"
            ).fetchmany(4_096)
        return {
            str(name)
            for name, sql in rows
            if isinstance(sql, str) and sql.lstrip()[:13].upper().startswith("CREATE TABLE")
        }

    def _ask(self, sql: str, values: tuple[object, ...] = ()) -> sqlite3.Cursor:
        self._steps = 0
        return self._db.execute(sql, values)

    def _count(self) -> int:
        self._steps += _STEPS_BETWEEN
        return self._steps > self._most

    def _errors(self) -> _Errors:
        return _Errors(self._path.name)


class _Errors:
    """Turns what SQLite raises into an error that names the file."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, sqlite3.Error | OverflowError | UnicodeError):
            what = str(error) or type(error).__name__
            if "interrupted" in what:
                what = "a query takes far longer than the size of the file explains"
            raise InputError(
                f"{self._name} cannot be read: {what}",
                hint="export it again: nsys export --type sqlite --force-overwrite=true REPORT",
            ) from error


def _where(keep: Keep | None, known: frozenset[str]) -> tuple[str, tuple[object, ...]]:
    if keep is None:
        return "", ()
    parts: list[str] = []
    values: list[object] = []
    for column, wanted in keep.among:
        if column in known and wanted:
            parts.append(f"{_quoted(column)} IN (SELECT value FROM json_each(?))")  # noqa: S608 - quoted names of the schema
            values.append(json.dumps(sorted(wanted)))
    if keep.sample is not None and keep.sample[0] in known:
        column, remainders = keep.sample
        parts.append(f"{_quoted(column)} % {SAMPLE} < {int(remainders)}")
    return f" WHERE {' OR '.join(parts) or '0'}", tuple(values)


def _arrays(rows: list[tuple[object, ...]], width: int) -> list[Ints]:
    """Return rows as columns; rows with anything but integers are left out."""
    try:
        flat = np.fromiter(
            chain.from_iterable(rows),
            dtype=np.int64,
            count=len(rows) * width,
        )
    except (TypeError, ValueError, OverflowError):
        sane = [row for row in rows if all(type(cell) is int for cell in row)]
        flat = np.array(sane, dtype=np.int64).reshape(-1)
    table = flat.reshape(-1, width)
    return [np.ascontiguousarray(table[:, k]) for k in range(width)]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
