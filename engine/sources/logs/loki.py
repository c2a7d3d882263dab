"""Events from Loki's HTTP API: ``query_range`` with a line filter, page by page.

Source: Grafana Loki HTTP API reference, ``GET /loki/api/v1/query_range``: ``start`` is inclusive,
``end`` exclusive, times are nanoseconds, an answer holds at most ``limit`` lines over all streams.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from yarl import URL

from engine.errors import SourceError
from engine.readers.logline import LogLine, loki_line
from engine.sources.httpoptions import HttpOptions, parse_url, shown_url
from engine.sources.logs.parse import EventParser
from engine.sources.logs.port import LogEvent, Unread
from engine.sources.text import show, start_of
from engine.sources.web import WebClient
from engine.sources.weberrors import bad_status

# Labels that shippers give a stream for its machine, the usual first (promtail, Alloy, Fluent Bit,
# Vector, the Kubernetes examples of Loki).
HOST_LABELS = ("host", "hostname", "node", "node_name", "nodename", "instance")
# Loki wants a matcher that an empty label does not meet; the usual shippers set this label.
DEFAULT_QUERY = '{job=~".+"}'
# The line filters: the plain word first, which Loki finds fast.
FILTER = '|= "NVRM:" |~ "Xid [(]|fallen off the bus|The NVIDIA GPU |GPU at PCI:"'
_PAGES = 20
# A page of 1,000 lines of a kernel log is 0.2 MB; this is 30 kB a line.
MAX_PAGE = 32 << 20
# Characters of lines that are kept of all pages.
_MOST_TEXT = 64 << 20
_MOST_WARNINGS = 20
_FEWER = "narrow loki.query, or the window"
# Nanoseconds since 1970 have 19 digits until the year 2286.
_STAMP_DIGITS = 19

_Pair = tuple[int, str, str | None]


@dataclass(frozen=True, kw_only=True)
class LokiConfig(HttpOptions):
    """Where Loki is; see `HttpOptions` for credentials, headers (``X-Scope-OrgID``) and time-outs.

    Attributes:
        url: base address, with a path prefix if there is one; ``/loki/api/v1`` at its end is
            dropped.
        query: LogQL that selects the streams of kernel logs; line filters are added.
        host_labels: labels of a stream that name its machine, the first that is there counts.
        limit: lines an answer (``max_entries_limit_per_query`` of the server is 5,000 by default).
    """

    url: str
    query: str = DEFAULT_QUERY
    host_labels: tuple[str, ...] = HOST_LABELS
    limit: int = 1_000

    def __post_init__(self) -> None:
        """Take the address apart."""
        url, user, password = parse_url(self.url)
        path = url.path.partition("/loki/api/v1")[0]
        object.__setattr__(self, "url", shown_url(url.with_path(path)))
        if user is not None and self.username is None:
            object.__setattr__(self, "username", user)
            object.__setattr__(self, "password", password)
        super().__post_init__()


class LokiSource:
    """Events of the kernel logs that a Loki holds."""

    def __init__(self, config: LokiConfig) -> None:
        """Nothing is connected yet."""
        self._config = config
        self._web = WebClient(config, max_body=MAX_PAGE, too_large_hint=_FEWER)
        self._endpoint = URL(config.url) / "loki/api/v1/query_range"
        self._warnings: list[str] = []
        self._unread: list[Unread] = []
        self.lines = 0
        """Lines that came with the last question."""

    @property
    def name(self) -> str:
        """The server's address, without credentials."""
        return self._config.url

    @property
    def timeout_s(self) -> float:
        """How long a question waits for all pages (s), and a little to say that they were late."""
        return self._config.timeout_s + 1.0

    @property
    def needs_hosts(self) -> bool:
        """All hosts are asked about at once: few lines pass the filter."""
        return False

    @property
    def queries(self) -> int:
        """HTTP requests sent so far."""
        return self._web.sent

    @property
    def query(self) -> str:
        """The LogQL that is sent."""
        return f"{self._config.query} {FILTER}"

    async def events(self, hosts: Sequence[str] | None, start: float, end: float) -> list[LogEvent]:
        """Ask for the Xids of a window; see `engine.sources.logs.port.LogSource`."""
        del hosts
        parser = EventParser(f"Loki {self.name}", start, end)
        parser.feed(await self.records(self.query, start, end))
        return parser.done()

    async def records(self, query: str, start: float, end: float) -> list[LogLine]:
        """Return the lines that LogQL selects in a window, oldest first.

        Args:
            query: LogQL that selects lines, no metric query.
            start: of the window (Unix s).
            end: of the window (Unix s), included.

        Raises:
            SourceError: the server does not answer, or not with lines.
        """
        lines: list[LogLine] = []
        first, last = int(start * 1e9), int(end * 1e9) + 1
        seen: set[_Pair] = set()
        size = malformed = 0
        until = asyncio.get_running_loop().time() + self._config.timeout_s
        for page in range(_PAGES):
            try:
                async with asyncio.timeout_at(until if page else None):
                    pairs, odd = await self._page(query, first, last)
            except TimeoutError:
                said = f"only the first {len(lines)} lines came in {self._config.timeout_s:g} s"
                self._unread.append(
                    Unread(self.name, said, "raise loki.timeout, narrow loki.query")
                )
                break
            except SourceError as error:
                if not page:
                    raise
                said = f"only the first {len(lines)} lines came: {error.message}"
                self._unread.append(Unread(self.name, said, error.hint))
                break
            malformed = max(malformed, odd)
            pairs.sort(key=lambda pair: pair[0])
            fresh = [pair for pair in pairs if pair not in seen]
            lines += [
                loki_line(len(lines) + k, ns, text, host)
                for k, (ns, text, host) in enumerate(fresh, start=1)
            ]
            size += sum(len(text) for _, text, _ in fresh)
            if len(pairs) + odd < self._config.limit or not pairs:
                break
            if size > _MOST_TEXT:
                said = f"more than {size >> 20} MB of lines match: the newest are missing"
                self._unread.append(Unread(self.name, said, _FEWER))
                break
            newest = pairs[-1][0]
            # Lines of one moment may lie on both sides of a page's end: ask for it again.
            first = newest if newest > first else newest + 1
            seen = {pair for pair in pairs if pair[0] == newest}
        else:
            said = f"more than {len(lines)} lines match: the newest are missing"
            self._unread.append(Unread(self.name, said, _FEWER))
        if malformed:
            said = f"{malformed} lines or more are not in Loki's form, and were not read"
            self._unread.append(Unread(self.name, said, "look into what answers at this address"))
        self.lines = len(lines)
        return lines

    def take_unread(self) -> list[Unread]:
        """Return what could not be read."""
        taken, self._unread = self._unread, []
        return taken

    def take_warnings(self) -> list[str]:
        """Return the warnings not taken yet."""
        taken, self._warnings = self._warnings, []
        return taken

    async def aclose(self) -> None:
        """Close the connections."""
        await self._web.aclose()

    async def _page(self, query: str, first: int, last: int) -> tuple[list[_Pair], int]:
        form = {
            "query": query,
            "start": str(first),
            "end": str(last),
            "limit": str(self._config.limit),
            "direction": "forward",
        }
        reply = await self._web.request("GET", self._endpoint, form=form, where=self.name)
        if not 200 <= reply.status < 300:
            raise bad_status(
                self.name,
                reply.status,
                self._web.redact(_said(reply.body)),
                not_found_hint="the API may have a path prefix; give it in the URL",
            )
        return self._pairs(reply.body)

    def _pairs(self, body: bytes) -> tuple[list[_Pair], int]:
        """Return the lines of an answer, and how many more were not in the form Loki promises."""
        try:
            answer = orjson.loads(body)
            data = answer["data"]
            kind, streams = data["resultType"], data["result"]
        except (orjson.JSONDecodeError, KeyError, TypeError):
            raise SourceError(
                f"{self.name} does not answer like Loki",
                hint="give Loki's base address, as Grafana's data source has it",
                code="source_format",
            ) from None
        if kind != "streams" or not isinstance(streams, list):
            raise SourceError(
                f"{self.name} answers with {self._shown(kind, 20)}, not with lines",
                hint="loki.query must select streams, not count them",
                code="source_format",
            )
        warnings = answer.get("warnings")
        for warning in warnings[:_MOST_WARNINGS] if isinstance(warnings, list) else ():
            self._tell(self._shown(warning, 160))
        found: list[_Pair] = []
        odd = 0
        for stream in streams:
            values = stream.get("values") if isinstance(stream, Mapping) else 0
            if values is None:
                continue  # an empty list, as Go may write it
            if not isinstance(values, list):
                odd += 1
                continue
            host = self._host(stream.get("stream"))
            for pair in values:
                one = _pair(pair, host)
                if one is None:
                    odd += 1
                else:
                    found.append(one)
        return found, odd

    def _host(self, labels: Any) -> str | None:
        if not isinstance(labels, Mapping):
            return None
        named = (labels.get(label) for label in self._config.host_labels)
        return next((value[:253] for value in named if value and isinstance(value, str)), None)

    def _shown(self, given: Any, limit: int) -> str:
        return show(self._web.redact(given[:4096]), limit) if isinstance(given, str) else "no text"

    def _tell(self, warning: str) -> None:
        text = f"{self.name}: {warning}"
        if text not in self._warnings:
            self._warnings.append(text)


def _pair(pair: Any, host: str | None) -> _Pair | None:
    """Return one line with its nanoseconds; a third element (structured metadata) is left."""
    if not isinstance(pair, list) or len(pair) < 2 or not isinstance(pair[1], str):
        return None
    stamp = pair[0]
    if not isinstance(stamp, str) or not stamp.isascii() or not stamp.isdigit():
        return None
    return (int(stamp), pair[1], host) if len(stamp) <= _STAMP_DIGITS else None


def _said(body: bytes) -> str:
    """Return what an error answer says: plain text, or the message of a JSON document."""
    text = start_of(body).strip()
    if text.startswith("{"):
        try:
            value = orjson.loads(body)
        except orjson.JSONDecodeError:
            return text
        for key in ("message", "error"):
            if isinstance(value.get(key), str):
                return str(value[key][:4096])
    return text
