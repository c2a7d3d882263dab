"""Exports of nsys to Parquet: a folder with a file for each table.

``nsys export --type parquetdir`` names the files after the tables (KIND.parquet). pyarrow reads
them; it is large, so it comes as an extra.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from engine.errors import InputError
from engine.traces.arrow import Arrow, Words
from engine.traces.intervals import Ints
from engine.traces.tables import MISSING, SAMPLE, Keep, Total, sane

_GROUPS = 65_536
_TABLES = 1_024
# StringIds is kept in memory, up to so many characters; an entry takes more than its text.
_TEXT, _ENTRY = 24_000_000, 100
INSTALL = "pip install 'gpuwhy[parquet]'"


class ParquetTables:
    """An export to a folder of Parquet files."""

    source = "nsys_parquet"

    def __init__(self, path: Path) -> None:
        """Open a folder, or the folder of one of its files.

        Raises:
            InputError: pyarrow is not installed, or there are no such files.
        """
        try:
            pa, pc, pq = map(import_module, ("pyarrow", "pyarrow.compute", "pyarrow.parquet"))
        except ImportError as error:
            raise InputError("Parquet files need pyarrow", hint=INSTALL) from error
        self._arrow = Arrow(pa, pc, pq)
        folder = path if path.is_dir() else path.parent
        try:
            files = sorted(folder.glob("*.parquet"))[:_TABLES]
        except OSError as error:
            raise InputError(f"cannot read {folder}: {error}") from error
        self._files = {file.stem: file for file in files}
        if not path.is_dir() and path.stem not in self._files:
            # A copy under another name: one table of which nothing is known.
            raise InputError(
                "one table of an nsys export alone says too little",
                hint="give a file in the folder that nsys export --type parquetdir made",
            )
        self._columns: dict[str, frozenset[str]] = {}
        self._schemas: dict[str, Any] = {}
        self._texts: dict[int, str] | None = None

    def close(self) -> None:
        """Nothing stays open."""

    @property
    def tables(self) -> frozenset[str]:
        """The names of all tables."""
        return frozenset(self._files)

    def columns(self, table: str) -> frozenset[str]:
        """Return the columns of a table; empty if there is no such table."""
        if table not in self._files:
            return frozenset()
        found = self._columns.get(table)
        if found is None:
            with self._errors(table):
                schema = self._schemas[table] = self._arrow.schema(self._files[table])
                found = self._columns[table] = frozenset(map(str, schema.names))
        return found

    def rows(
        self, table: str, columns: Sequence[str], keep: Keep | None = None
    ) -> Iterator[list[Ints]]:
        """Yield batches of int64 columns."""
        known = self.columns(table)
        if not {"start", "end"} <= known:
            return
        asked = [c for c, _ in keep.among] if keep else []
        asked += [keep.sample[0]] if keep and keep.sample else []
        wanted = [c for c in dict.fromkeys([*columns, *asked]) if c in known]
        for size, got, _ in self._batches(table, wanted):
            missing = np.full(size, MISSING, dtype=np.int64)
            kept = _kept(keep, got, size)
            yield [got.get(c, missing)[kept] for c in columns]

    def totals(self, table: str, key: str) -> dict[int, Total]:
        """Return what rows take, by an integer column."""
        if key not in self.columns(table):
            return {}
        out: dict[int, Total] = {}
        for starts, ends, keys in self.rows(table, ("start", "end", key)):
            kept = sane(starts, ends)
            _add(out, keys[kept], (ends - starts)[kept])
        out.pop(MISSING, None)
        return out

    def odd(self, table: str) -> int:
        """Count rows without sensible times."""
        return sum(
            int(((starts >= 0) & (ends != MISSING) & ~sane(starts, ends)).sum())
            for starts, ends in self.rows(table, ("start", "end"))
        )

    def texts(self, numbers: Iterable[int]) -> dict[int, str]:
        """Return entries of StringIds."""
        if self._texts is None:
            self._texts = self._strings()
        return {n: self._texts[n] for n in numbers if n in self._texts}

    def _strings(self) -> dict[int, str]:
        if not {"id", "value"} <= self.columns("StringIds"):
            return {}
        out: dict[int, str] = {}
        left = _TEXT
        for _, numbers, texts in self._batches("StringIds", ["id"], ["value"]):
            for number, text in zip(numbers["id"].tolist(), texts["value"], strict=True):
                if text is not None and left > 0 and number not in out:
                    out[number] = text
                    left -= len(text) + _ENTRY
            if left <= 0:
                break
        return out

    def named_rows(
        self, table: str, column: str, numbers: Sequence[str]
    ) -> Iterator[tuple[list[str], list[Ints]]]:
        """Yield batches of a text column and of integer columns."""
        known = self.columns(table)
        if not {"start", "end", column} <= known:
            return
        wanted = [c for c in dict.fromkeys(["start", "end", *numbers]) if c in known]
        for size, got, texts in self._batches(table, wanted, [column]):
            kept = sane(got["start"], got["end"]).tolist()
            rows = [
                k
                for k, text in enumerate(texts[column])
                if kept[k] and text is not None and not ("::" in text and ", op_id = " in text)
            ]
            missing = np.full(size, MISSING, dtype=np.int64)
            names = [text for k in rows if (text := texts[column][k]) is not None]
            yield names, [got.get(c, missing)[rows] for c in numbers]

    def values(self, table: str, names: Iterable[str]) -> dict[str, str]:
        """Return entries of a table of names and values."""
        rows = self.records(table, ("name", "value"), 4_096)
        wanted = frozenset(names)
        return {
            str(name): str(value)[:200]
            for name, value in reversed(rows)
            if name in wanted and isinstance(value, str | int)
        }

    def records(self, table: str, columns: Sequence[str], limit: int) -> list[tuple[object, ...]]:
        """Return the first rows of a small table."""
        known = self.columns(table)
        chosen = [c for c in columns if c in known]
        out: list[tuple[object, ...]] = []
        if not chosen:
            return out
        with self._errors(table):
            types = self._schemas[table]
            texts = [c for c in chosen if self._arrow.is_text(types.field(c).type)]
        whole = [c for c in chosen if c not in texts]
        for size, got, words in self._batches(table, whole, texts):
            cells: dict[str, list[object]] = {name: list(column) for name, column in words.items()}
            for name, column in got.items():
                cells[name] = [None if n == MISSING else n for n in column.tolist()]
            out.extend(
                tuple(cells[c][k] if c in cells else None for c in columns)
                for k in range(min(size, limit - len(out)))
            )
            if len(out) >= limit:
                break
        return out

    # --- Arrow

    def _batches(
        self, table: str, whole: Sequence[str], texts: Sequence[str] = ()
    ) -> Iterator[tuple[int, dict[str, Ints], dict[str, Words]]]:
        """Yield the size of batches, their integer columns, and their columns of texts, cut."""
        with self._errors(table):
            self._arrow.check(table, self._files[table], whole, texts)
            for batch in self._arrow.batches(self._files[table], [*whole, *texts], list(texts)):
                numbers = {c: self._arrow.integers(batch.column(c)) for c in whole}
                words = {c: self._arrow.words(batch.column(c)) for c in texts}
                yield batch.num_rows, numbers, words

    def _errors(self, table: str) -> _Errors:
        return _Errors(table)


class _Errors:
    """Turns what Arrow raises into an error that names the table."""

    def __init__(self, table: str) -> None:
        self._table = table

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        # Arrow's errors are of these kinds.
        if isinstance(
            error,
            OSError | ValueError | TypeError | LookupError | ArithmeticError | NotImplementedError
            | MemoryError | RuntimeError,
        ):  # fmt: skip
            first = (str(error).splitlines() or ["unreadable"])[0]
            raise InputError(
                f"{self._table}.parquet cannot be read: {first[:200]}",
                hint="export it again: nsys export --type parquetdir REPORT",
            ) from error


def _kept(keep: Keep | None, columns: dict[str, Ints], size: int) -> Any:
    if keep is None:
        return slice(None)
    kept = np.zeros(size, dtype=bool)
    for column, values in keep.among:
        if column in columns and values:
            wanted = np.fromiter(values, dtype=np.int64, count=len(values))
            kept |= np.isin(columns[column], wanted)
    if keep.sample is not None and keep.sample[0] in columns:
        column, remainders = keep.sample
        kept |= columns[column] % SAMPLE < remainders
    return kept


def _add(out: dict[int, Total], keys: Ints, lengths: Ints) -> None:
    """Add lengths (ns) by key."""
    if not keys.size:
        return
    distinct, back = np.unique(keys, return_inverse=True)
    counts = np.bincount(back, minlength=distinct.size)
    sums, longest = np.zeros((2, distinct.size), dtype=np.int64)
    np.add.at(sums, back, lengths)
    np.maximum.at(longest, back, lengths)
    columns = (distinct.tolist(), counts.tolist(), sums.tolist(), longest.tolist())
    for key, count, total, most in zip(*columns, strict=True):
        found = out.get(key)
        if found is not None:
            longer = max(found.longest, most)
            out[key] = Total(found.count + count, found.total + total, longer)
        elif len(out) < _GROUPS:
            out[key] = Total(count, total, most)
