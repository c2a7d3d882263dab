"""Columns of Parquet files as integers and as short texts, in bounded memory.

Files are untrusted: a few KiB may unpack to gigabytes. Texts are taken as Parquet keeps them, each
different one once, and are cut before Python sees them; columns that would be too large are refused
by what the file says of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from engine.traces.intervals import Ints
from engine.traces.tables import LATEST, MAX_TEXT, MISSING

Words = list[str | None]

_ROWS, _TEXT_ROWS = 65_536, 2_048
# Decoded bytes of one column in one row group: numbers of 64 million rows, texts of 128 MiB.
_MOST_NUMBERS, _MOST_TEXTS = 1 << 29, 1 << 27
# What Arrow may hold after a batch.
_MOST_HELD = 1 << 29
# Rows of one table: more than hours of a busy GPU.
_MOST_ROWS = 1_000_000_000
_WIDEST = 4  # bytes of a character


class Arrow:
    """Reads with pyarrow, which is given to it: it may not be installed."""

    def __init__(self, pa: Any, pc: Any, pq: Any) -> None:
        self._pa, self._pc, self._pq = pa, pc, pq

    def schema(self, path: Path) -> Any:
        """Return the Arrow schema of a file."""
        with self._pq.ParquetFile(path) as file:
            return file.schema_arrow

    def check(self, table: str, path: Path, whole: Sequence[str], texts: Sequence[str]) -> None:
        """Look at types and sizes before anything is decoded.

        Raises:
            ValueError: a column is not of the kind that is asked, or too large.
        """
        with self._pq.ParquetFile(path) as file:
            schema, about = file.schema_arrow, file.metadata
        for name in whole:
            if not self.is_number(schema.field(name).type):
                raise ValueError(f"column {name} holds no numbers ({schema.field(name).type})")
        for name in texts:
            if not self.is_text(schema.field(name).type):
                raise ValueError(f"column {name} holds no texts ({schema.field(name).type})")
        if about.num_rows > _MOST_ROWS:
            raise ValueError(f"{about.num_rows} rows are more than {table} can have")
        limits = dict.fromkeys(whole, _MOST_NUMBERS) | dict.fromkeys(texts, _MOST_TEXTS)
        for k in range(about.num_row_groups):
            group = about.row_group(k)
            for j in range(group.num_columns):
                column = group.column(j)
                limit = limits.get(column.path_in_schema)
                if limit is not None and column.total_uncompressed_size > limit:
                    raise ValueError(f"column {column.path_in_schema} is larger than {limit} bytes")

    def batches(self, path: Path, columns: list[str], texts: list[str]) -> Iterator[Any]:
        """Yield batches of columns; texts come as a dictionary."""
        with self._pq.ParquetFile(path, buffer_size=1 << 20, read_dictionary=texts) as file:
            size = _TEXT_ROWS if texts else _ROWS
            for batch in file.iter_batches(batch_size=size, columns=columns, use_threads=False):
                if self._pa.total_allocated_bytes() > _MOST_HELD:
                    raise ValueError("its columns take far more memory than those of an export")
                yield batch

    def is_number(self, kind: Any) -> bool:
        """Return whether a column is one of numbers, or of nothing."""
        types = self._pa.types
        if types.is_dictionary(kind):
            kind = kind.value_type
        return bool(
            types.is_integer(kind) or types.is_floating(kind) or types.is_null(kind)
            or types.is_boolean(kind)
        )  # fmt: skip

    def is_text(self, kind: Any) -> bool:
        """Return whether a column is one of texts."""
        types = self._pa.types
        if types.is_dictionary(kind):
            kind = kind.value_type
        return bool(
            types.is_string(kind) or types.is_large_string(kind)
            or types.is_binary(kind) or types.is_large_binary(kind)
        )  # fmt: skip

    def integers(self, column: Any) -> Ints:
        """Return a column as int64; `MISSING` for what is none."""
        pa, pc = self._pa, self._pc
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if pa.types.is_floating(column.type):
            floats = pc.fill_null(pc.cast(column, pa.float64()), np.nan)
            found = floats.to_numpy(zero_copy_only=False)
            with np.errstate(invalid="ignore"):
                whole = (np.abs(found) <= LATEST) & (found == np.floor(found))
            return np.where(whole, found, MISSING).astype(np.int64)
        filled = pc.fill_null(pc.cast(column, pa.int64(), safe=False), MISSING)
        numbers: Ints = filled.to_numpy(zero_copy_only=False)
        return numbers

    def words(self, column: Any) -> Words:
        """Return a column as texts, cut to `MAX_TEXT`."""
        if not self._pa.types.is_dictionary(column.type):
            return self._cut(column)
        at = self._pc.fill_null(self._pc.cast(column.indices, self._pa.int64()), -1)
        used, back = np.unique(at.to_numpy(zero_copy_only=False), return_inverse=True)
        present = used[used >= 0]
        texts: Words = [None] * (used.size - present.size)
        texts += self._cut(self._short(column.dictionary).take(self._pa.array(present)))
        return [texts[k] for k in back.tolist()]

    def _short(self, column: Any) -> Any:
        large = self._pa.types.is_large_string(column.type) or self._pa.types.is_large_binary(
            column.type
        )
        binary = self._pa.large_binary() if large else self._pa.binary()
        return self._pc.binary_slice(column.cast(binary), 0, _WIDEST * MAX_TEXT)

    def _cut(self, column: Any) -> Words:
        return [
            None if raw is None else raw.decode("utf-8", "replace")[:MAX_TEXT]
            for raw in self._short(column).to_pylist()
        ]
