"""Answers of Prometheus' HTTP API as JSON: instant and range queries, read as exporter text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from engine.readers.base import Context, Result
from engine.readers.documents import DocumentKind

_MAX_SAMPLES = 500_000


def _rows(value: object) -> list[Any] | None:
    """The result of an answer, or a list of series that was cut out of one."""
    if isinstance(value, dict):
        data = value.get("data", value)
        value = data.get("result") if isinstance(data, dict) else None
    return value if isinstance(value, list) and value else None


def _detect(value: object) -> bool:
    rows = _rows(value)
    return rows is not None and all(
        isinstance(row, dict)
        and isinstance(row.get("metric"), dict)
        and ("value" in row or "values" in row)
        for row in rows[:8]
    )


def _lines(rows: list[Any]) -> Iterator[str]:
    for row in rows:
        if not isinstance(row, dict) or not isinstance(row.get("metric"), dict):
            continue
        labels = {str(k): str(v) for k, v in row["metric"].items()}
        name = labels.pop("__name__", "")
        if not name:
            continue
        inner = ",".join(f'{k}="{_escaped(v)}"' for k, v in labels.items())
        points = row.get("values") or [row.get("value")]
        for point in points if isinstance(points, list) else []:
            if isinstance(point, list) and len(point) == 2 and isinstance(point[0], int | float):
                yield f"{name}{{{inner}}} {point[1]} {float(point[0])!r}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _read(value: Any, context: Context, line: int) -> Result:
    from engine.readers.exporter import ExporterReader  # noqa: PLC0415 - numpy comes with it

    reader = ExporterReader(context)
    for number, text in enumerate(_lines(_rows(value) or [])):
        if number >= _MAX_SAMPLES:
            break
        reader.feed(line, text)
    return reader.finish()


PROMETHEUS_API: Final = DocumentKind("metrics", _detect, _read)
