"""A small Loki: `query_range` of its HTTP API over lines in memory, as the reference describes it.

Grafana Loki HTTP API, "Query logs within a range of time": ``start`` is inclusive, ``end`` is
exclusive, times are nanoseconds, at most ``limit`` lines of all streams come, in ``direction``.
Line filters and stream selectors are applied, so that a query that selects nothing finds nothing.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, field

from aiohttp import web

from tests.support.web import Site, serve

_STRING = r'"(?:[^"\\]|\\.)*"'
_MATCHER = re.compile(rf"\s*(\w+)\s*(=~|!~|!=|=)\s*({_STRING})\s*,?")
_FILTER = re.compile(rf"\s*(\|=|!=|\|~|!~)\s*({_STRING})")
_MOST = 5_000

Streams = Mapping[tuple[tuple[str, str], ...], list[tuple[int, str]]]


@dataclass
class Loki:
    """What it holds: lines with their labels and times (Unix s)."""

    lines: list[tuple[dict[str, str], float, str]] = field(default_factory=list)
    limit: int = _MOST

    def add(self, when: float, line: str, **labels: str) -> None:
        """Store one line."""
        self.lines.append(({"job": "systemd-journal", **labels}, when, line))

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer a request."""
        if request.path != "/loki/api/v1/query_range":
            return web.Response(status=404, text="404 page not found")
        query = request.query
        limit = int(query.get("limit", "100"))
        if limit > self.limit:
            said = f"max entries limit per query exceeded, limit > max_entries_limit ({limit} > {self.limit})"
            return web.Response(status=400, text=said)
        try:
            wanted = parse(query["query"])
        except ValueError as error:
            return web.Response(status=400, text=f"parse error : {error}")
        first, last = int(query["start"]), int(query["end"])
        found = [
            (round(when * 1e9), labels, line)
            for labels, when, line in self.lines
            if first <= round(when * 1e9) < last and wanted(labels, line)
        ]
        found.sort(key=lambda one: one[0], reverse=query.get("direction") != "forward")
        return web.json_response(text=body(found[:limit]))


def body(found: Iterable[tuple[int, dict[str, str], str]]) -> str:
    """Return an answer in Loki's form."""
    streams: dict[str, dict[str, object]] = {}
    for ns, labels, line in found:
        key = json.dumps(labels, sort_keys=True)
        stream = streams.setdefault(key, {"stream": labels, "values": []})
        stream["values"].append([str(ns), line])  # type: ignore[attr-defined]
    data = {"resultType": "streams", "result": list(streams.values()), "stats": {}}
    return json.dumps({"status": "success", "data": data})


def parse(query: str):
    """Return whether labels and a line are selected; ValueError for what Loki would refuse."""
    selector, brace, rest = query.partition("}")
    if not brace or not selector.startswith("{"):
        raise ValueError("syntax error: unexpected end, expecting }")
    matchers = [(n, op, json.loads(v)) for n, op, v in _MATCHER.findall(selector[1:])]
    if all((op in {"=~", "!~"} and re.fullmatch(v, "")) or not v for _, op, v in matchers):
        raise ValueError(
            "queries require at least one regexp or equality matcher that does not have an empty-compatible value"
        )
    filters = []
    while rest.strip():
        found = _FILTER.match(rest)
        if not found:
            raise ValueError(f"syntax error: unexpected {rest.strip()[:10]}")
        filters.append((found[1], json.loads(found[2])))
        rest = rest[found.end() :]

    def wanted(labels: Mapping[str, str], line: str) -> bool:
        for name, op, value in matchers:
            has = labels.get(name, "")
            hit = has == value if op in {"=", "!="} else re.fullmatch(value, has) is not None
            if hit is op.startswith("!"):
                return False
        for op, value in filters:
            hit = value in line if op in {"|=", "!="} else re.search(value, line) is not None
            if hit is op.startswith("!"):
                return False
        return True

    return wanted


@contextlib.asynccontextmanager
async def serve_loki(loki: Loki) -> AsyncIterator[Site]:
    """Serve it on a free loopback port."""
    async with serve(loki.handle) as site:
        yield site
