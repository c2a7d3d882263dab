"""Tables of an nsys export, whatever they lie in: the port, and SQLite.

The database is untrusted: it is opened read-only and immutable, its schema may call no functions
that have effects, texts are cut before they are taken, longer ones refused, and reading stops where
it takes far more steps than the file has bytes.
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
import numpy.typing as npt

from engine.errors import InputError
from engine.traces.intervals import Ints
from engine.traces.stringids import StringIds

MISSING = -1
MAX_TEXT = 2_000
BATCH = 8_192
TEXTS = 1_024
# Times since the capture began, or since 1970: later than 2043 (2^61 ns), or longer than 13 days
# (2^50 ns), is damage.
LATEST, LONGEST = 1 << 61, 1 << 50
_MOST_GROUPS = 65_536
_LONGEST = 16 << 20
# Virtual machine steps of everything that is asked: real exports take one for each byte, for they
# are scanned up to three times.
_STEPS_AT_LEAST, _STEPS_PER_BYTE, _STEPS_BETWEEN = 200_000_000, 10, 1_000_000
# total() adds as floating point: exact up to 104 days, and without the overflow of sum().
_SUMS = (
    "count(*), CAST(min(total(end - start), 1e18) AS INTEGER), CAST(max(end - start) AS INTEGER)"
)
# A text is greater than every number.
_SANE = f"start >= 0 AND end >= start AND end < {LATEST} AND end - start < {LONGEST}"
_CACHE_KIB = 4_096
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


def sane(starts: Ints, ends: Ints) -> npt.NDArray[np.bool_]:
    """Return which rows have times (ns) within a capture that make sense."""
    found: npt.NDArray[np.bool_] = (starts >= 0) & (ends >= starts) & (ends < LATEST)
    return found & (ends - starts < LONGEST)


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
        """Return what rows with sensible times take, by an integer column."""

    def odd(self, table: str) -> int:
        """Return how many rows begin within the capture and have no sensible end."""

    def texts(self, numbers: Iterable[int]) -> dict[int, str]:
        """Return entries of StringIds, cut to `MAX_TEXT`."""

    def named_rows(
        self, table: str, column: str, numbers: Sequence[str]
    ) -> Iterator[tuple[list[str], list[Ints]]]:
        """Yield batches of a text column, cut to `MAX_TEXT`, and of integer columns.

        Rows without sensible times, without a text, and operators of PyTorch are left out.
        """

    def values(self, table: str, names: Iterable[str]) -> dict[str, str]:
        """Return entries of a table of names and values."""

    def records(self, table: str, columns: Sequence[str], limit: int) -> list[tuple[object, ...]]:
        """Return the first rows of a small table: integers, and texts cut to `MAX_TEXT`."""


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
        self._strings: StringIds | None = None

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
        # Rows with a text or a blob, which may be long, are left where they are.
        cells = ", ".join(f"ifnull({_quoted(c)}, 0)" for c in {"start", "end", *columns} & known)
        where, values = _where(keep, known)
        with self._errors():
            sql = f"SELECT {chosen} FROM {_quoted(table)} WHERE max({cells}) < ''{where}"  # noqa: S608 - quoted names of the schema
            cursor = self._ask(sql, values)
            while rows := cursor.fetchmany(BATCH):
                yield _arrays(rows, len(columns))

    def totals(self, table: str, key: str) -> dict[int, Total]:
        """Return what rows take, by an integer column."""
        if not {"start", "end", key} <= self.columns(table):
            return {}
        with self._errors():
            rows = self._ask(
                f"SELECT {_integer(key)}, {_SUMS} FROM {_quoted(table)} WHERE {_SANE} GROUP BY 1"  # noqa: S608 - quoted
            ).fetchmany(_MOST_GROUPS)
        return {
            number: Total(count, total, longest)
            for number, count, total, longest in rows
            if isinstance(number, int) and number != MISSING
        }

    def odd(self, table: str) -> int:
        """Count rows without sensible times."""
        if not {"start", "end"} <= self.columns(table):
            return 0
        with self._errors():
            row = self._ask(
                f"SELECT count(*) FROM {_quoted(table)} "  # noqa: S608 - quoted
                f"WHERE start >= 0 AND end IS NOT NULL AND NOT ({_SANE})"
            ).fetchone()
        return int(row[0])

    def texts(self, numbers: Iterable[int]) -> dict[int, str]:
        """Return entries of StringIds."""
        if not {"id", "value"} <= self.columns("StringIds"):
            return {}
        with self._errors():
            if self._strings is None:
                self._strings = StringIds(self._ask)
            found = [(number, self._strings.text(number)) for number in numbers]
        return {number: text for number, text in found if text is not None}

    def named_rows(
        self, table: str, column: str, numbers: Sequence[str]
    ) -> Iterator[tuple[list[str], list[Ints]]]:
        """Yield batches of a text column and of integer columns."""
        known = self.columns(table)
        if not {"start", "end", column} <= known:
            return
        name = _quoted(column)
        chosen = ", ".join(_integer(c) if c in known else str(MISSING) for c in numbers)
        with self._errors():
            cursor = self._ask(
                f"SELECT substr({name}, 1, {MAX_TEXT}), {chosen} FROM {_quoted(table)} "  # noqa: S608 - quoted names of the schema
                f"WHERE {_SANE} AND typeof({name}) = 'text' "
                f"AND {name} NOT GLOB '*::*, op_id = *'"
            )
            while rows := cursor.fetchmany(TEXTS):
                whole = [row for row in rows if None not in row]
                yield [row[0] for row in whole], _arrays([row[1:] for row in whole], len(numbers))

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
        chosen = ", ".join(_cell(c) if c in known else "NULL" for c in columns)
        with self._errors():
            return self._ask(f"SELECT {chosen} FROM {_quoted(table)} LIMIT {limit}").fetchall()  # noqa: S608 - quoted names of the schema

    def _ordinary_tables(self) -> set[str]:
        """Make the database harmless; return its tables: nsys writes no views or virtual tables."""
        with self._errors():
            # The size of the cache may come from the file.
            cache = f"cache_size = -{_CACHE_KIB}"
            for pragma in (
                "trusted_schema = OFF",
                "query_only = ON",
                "cell_size_check = ON",
                cache,
            ):
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
                what = "reading it takes far longer than the size of the file explains"
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
    return f" AND ({' OR '.join(parts) or '0'})", tuple(values)


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


def _integer(column: str) -> str:
    """Return SQL for an integer; NULL for what is none, so that no long text is taken."""
    name = _quoted(column)
    return f"iif(typeof({name}) = 'integer', {name}, iif({name} IS NULL, {MISSING}, NULL))"


def _cell(column: str) -> str:
    name = _quoted(column)
    return (
        f"CASE typeof({name}) WHEN 'integer' THEN {name} "
        f"WHEN 'text' THEN substr({name}, 1, {MAX_TEXT}) END"
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
