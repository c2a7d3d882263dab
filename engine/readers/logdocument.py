"""Logs as one JSON document: answers of Loki's API, exports of Grafana and of log stores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.readers.amdgpu import AmdgpuReader
from engine.readers.base import Context, Result
from engine.readers.documents import DocumentKind, merged
from engine.readers.kernel import KIND, KernelReader
from engine.readers.logline import documents

_LINE_KEYS = ("line", "MESSAGE", "message", "log", "textPayload")
_TIME_KEYS = ("timestamp", "__REALTIME_TIMESTAMP", "@timestamp", "time")


def _is_log(value: object) -> bool:
    """Return whether a document is an answer of Loki, or a list of log records."""
    if isinstance(value, Mapping):
        data = value.get("data", value)
        if not isinstance(data, Mapping):
            return False
        streams = data.get("result", data.get("streams"))
        return (
            isinstance(streams, list)
            and bool(streams)
            and isinstance(streams[0], Mapping)
            and isinstance(streams[0].get("values"), list)
            and isinstance(streams[0].get("stream", streams[0].get("labels")), Mapping | str)
            and data.get("resultType", "streams") == "streams"
        )
    return isinstance(value, list) and bool(value) and all(map(_is_record, value[:8]))


def _is_record(value: object) -> bool:
    return (
        isinstance(value, Mapping)
        and any(isinstance(value.get(key), str) for key in _LINE_KEYS)
        and any(key in value for key in _TIME_KEYS)
    )


def _read(value: Any, context: Context, line: int) -> Result:
    records = list(documents(line, value))
    kernel, amdgpu = KernelReader(context), AmdgpuReader(context)
    kernel.feed_records(records)
    amdgpu.feed_records(records)
    return merged([kernel.finish(), amdgpu.finish()])


LOG_DOCUMENT = DocumentKind(KIND, _is_log, _read)
