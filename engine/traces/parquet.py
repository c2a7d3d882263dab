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
from engine.traces.intervals import Ints
from engine.traces.tables import MAX_TEXT, MISSING, SAMPLE, Keep, Total

_ROWS = 65_536
_TABLES = 1_024
# StringIds is kept in memory, up to so many characters.
_TEXT = 16_000_000
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
        self._pa, self._pc, self._pq = pa, pc, pq
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
                file = self._pq.ParquetFile(self._files[table])
                found = self._columns[table] = frozenset(map(str, file.schema_arrow.names))
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
        for batch in self._batches(table, wanted):
            got = {name: self._integers(batch.column(name)) for name in wanted}
            missing = np.full(batch.num_rows, MISSING, dtype=np.int64)
            kept = _kept(keep, got, batch.num_rows)
            yield [got.get(c, missing)[kept] for c in columns]

    def totals(self, table: str, key: str) -> dict[int, Total]:
        """Return what rows take, by an integer column."""
        if key not in self.columns(table):
            return {}
        out: dict[int, Total] = {}
        for starts, ends, keys in self.rows(table, ("start", "end", key)):
            sane = (starts >= 0) & (ends >= starts)
            _add(out, keys[sane].tolist(), (ends - starts)[sane].tolist())
        out.pop(MISSING, None)
        return out

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
        for batch in self._batches("StringIds", ["id", "value"]):
            numbers = self._integers(batch.column("id")).tolist()
            for number, text in zip(numbers, self._words(batch.column("value")), strict=True):
                if text is not None and left > 0:
                    out[number] = text
                    left -= len(text)
        return out

    def named_totals(self, table: str, column: str) -> dict[str, Total]:
        """Return what rows take, by a text column."""
        if not {"start", "end", column} <= self.columns(table):
            return {}
        out: dict[str, Total] = {}
        for batch in self._batches(table, ["start", "end", column]):
            starts, ends = (self._integers(batch.column(c)) for c in ("start", "end"))
            sane = (starts >= 0) & (ends >= starts)
            rows = zip(
                self._words(batch.column(column)), (ends - starts).tolist(), sane.tolist(),
                strict=True,
            )  # fmt: skip
            kept = [
                (text, length)
                for text, length, good in rows
                if good and text is not None and not ("::" in text and ", op_id = " in text)
            ]
            _add(out, [text for text, _ in kept], [length for _, length in kept])
        return out

    def named_rows(
        self, table: str, column: str, names: Iterable[str], numbers: Sequence[str]
    ) -> Iterator[tuple[str, list[int]]]:
        """Yield rows of some names."""
        known = self.columns(table)
        if not {"start", "end", column} <= known:
            return
        wanted = frozenset(names)
        chosen = [c for c in numbers if c in known]
        for batch in self._batches(table, [*dict.fromkeys([*chosen, column])]):
            cells = {c: self._integers(batch.column(c)).tolist() for c in chosen}
            for k, text in enumerate(self._words(batch.column(column))):
                if text in wanted and text is not None:
                    yield text, [cells[c][k] if c in cells else MISSING for c in numbers]

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
        wanted = [c for c in columns if c in known]
        out: list[tuple[object, ...]] = []
        if not wanted:
            return out
        for batch in self._batches(table, wanted):
            cells = {c: batch.column(c).to_pylist() for c in wanted}
            out.extend(
                tuple(cells[c][k] if c in cells else None for c in columns)
                for k in range(min(batch.num_rows, limit - len(out)))
            )
            if len(out) >= limit:
                break
        return out

    # --- Arrow

    def _batches(self, table: str, columns: list[str]) -> Iterator[Any]:
        with self._errors(table):
            file = self._pq.ParquetFile(self._files[table], buffer_size=1 << 20)
            yield from file.iter_batches(batch_size=_ROWS, columns=columns, use_threads=False)

    def _integers(self, column: Any) -> Ints:
        if not self._pa.types.is_integer(column.type):
            column = self._pc.cast(column, self._pa.int64(), safe=False)
        filled = self._pc.fill_null(self._pc.cast(column, self._pa.int64(), safe=False), MISSING)
        found: Ints = filled.to_numpy(zero_copy_only=False)
        return found

    def _words(self, column: Any) -> list[str | None]:
        text = self._pc.cast(column, self._pa.string())
        return list(self._pc.utf8_slice_codeunits(text, 0, MAX_TEXT).to_pylist())

    def _errors(self, table: str) -> _Errors:
        return _Errors(table, self._pa.ArrowException)


class _Errors:
    """Turns what Arrow raises into an error that names the table."""

    def __init__(self, table: str, kind: type[BaseException]) -> None:
        self._table = table
        self._kind = kind

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, self._kind | OSError | UnicodeError):
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


def _add(out: dict[Any, Total], keys: Sequence[Any], lengths: Sequence[int]) -> None:
    for key, length in zip(keys, lengths, strict=True):
        found = out.get(key)
        if found is None:
            if len(out) < _ROWS:
                out[key] = Total(1, length, length)
            continue
        out[key] = Total(found.count + 1, found.total + length, max(found.longest, length))
