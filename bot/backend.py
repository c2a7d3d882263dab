"""Running a request: from a command and its arguments to an answer, off the event loop.

The engine has a thread with a loop of its own (`bot.enginethread`); what is plain arithmetic over
text (decode, read, rules) runs in a few more threads. The caller's loop only waits.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from bot.answer import Answer
from bot.attachments import Fetch, FileRef
from bot.commands import ask, calc, decode, export, kb, read, rules, ruletests, sweep, why, whynot
from bot.commands import help as help_
from bot.commands.arguments import Arguments
from bot.enginethread import EngineThread
from bot.request import Request
from bot.selector import parse_selector
from engine.catalogue import load_catalogue
from engine.diagnosis import Engine
from engine.errors import GpuwhyError, SourceError, UsageError
from engine.history import Sight, Tracked
from engine.history.sight import look
from engine.samples import Matcher, Selection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.model import Why
    from engine.sitemap import SiteFile
    from engine.sources.logs.port import LogSource
from engine.sources.port import Source

T = TypeVar("T")
OpenSource = Callable[[], "Source"]
OpenLogs = Callable[[], "LogSource | None"]

log = logging.getLogger(__name__)

_THREADS = 4
_PING_S = 5.0
_PING_WINDOW_S = 60.0


class Backend:
    """Answers requests.

    Args:
        open_source: makes what readings come from; None answers only what needs none. Each question
            has a source of its own: it tells its warnings once, to whoever asks.
        overlays: folders with a site's own knowledge and rules.
        sitemap: file with the jobs and racks of the site, if there is one.
        window_s: how far back ``why`` and ``sweep`` look if the request does not say (s).
        timeout_s: longest that one answer may take (s).
        clock: Unix seconds; what "2h ago" is relative to.
        fetch: brings a file that was attached to a message; None: none can be.
        open_logs: makes what Xids of kernel logs come from, for each question anew; it may return
            None. The log sources are closed with the question.
    """

    def __init__(
        self,
        open_source: OpenSource | None,
        *,
        overlays: tuple[Path, ...] = (),
        sitemap: Path | None = None,
        window_s: float = 900.0,
        timeout_s: float = 120.0,
        clock: Callable[[], float] = time.time,
        fetch: Fetch | None = None,
        open_logs: OpenLogs | None = None,
    ) -> None:
        self._fetch = fetch
        self._open_logs = open_logs
        self._open_source = open_source
        self._overlays = overlays
        self._site = SiteFile(sitemap) if sitemap else None
        self._window_s = window_s
        self._timeout_s = timeout_s
        self._clock = clock
        self._engine: Engine | None = None
        self._thread = EngineThread()
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="commands")
        self._commands = {
            "why": self._why,
            "sweep": self._sweep,
            "decode": self._decode,
            "ask": self._ask,
            "calc": self._calc,
            "kb": self._kb,
            "export": self._export,
            "read": self._read,
            "rules": self._rules,
            "help": self._help,
        }

    @property
    def commands(self) -> tuple[str, ...]:
        """Names of the commands that can be run."""
        return tuple(self._commands)

    @property
    def has_source(self) -> bool:
        """Whether questions about readings can be answered."""
        return self._open_source is not None

    async def start(self, *, strict: bool = False) -> None:
        """Load knowledge and rules.

        Args:
            strict: refuse what is broken in them; otherwise it is left out, and logged.

        Raises:
            CatalogueError: they do not load.
            UsageError: the map of the site cannot be read.
        """

        def load() -> Engine:
            if self._site is not None:
                self._site.current()
            return Engine(load_catalogue(self._overlays, strict=strict), site=self._site)

        self._engine = await self._apart(load)
        for text in self._engine.catalogue.left_out:
            log.warning("%s", text)

    async def run(self, request: Request) -> Answer:
        """Run a request.

        Raises:
            GpuwhyError: it cannot be understood, or a source does not answer; code ``timeout`` if
                it takes too long.
        """
        run = self._commands.get(request.command)
        if run is None:
            known = ", ".join(self._commands)
            raise UsageError(f"no command {request.command!r} here", hint=f"use one of {known}")
        try:
            async with asyncio.timeout(self._timeout_s):
                return await run(Arguments(request.command, request.args))
        except TimeoutError:
            raise SourceError(
                f"no answer within {self._timeout_s:g} s",
                hint="ask about less at once, or raise server.timeout",
                code="timeout",
            ) from None

    async def look(
        self,
        known: Sequence[Tracked],
        *,
        where: Sequence[Matcher] = (),
        open_source: OpenSource | None = None,
    ) -> Sight:
        """Look once for a watch.

        Args:
            known: its incidents.
            where: label matchers that every series must fit.
            open_source: makes what is looked at; None: what questions are about.

        Raises:
            GpuwhyError: the source does not answer.
        """

        async def looked(source: Source, logs: LogSource | None) -> Sight:
            return await look(
                self._ready, source, known, window_s=self._window_s, where=where, logs=logs
            )

        return await self._with_logs(looked, open_source)

    async def ping(self, *, thorough: bool = False) -> str:
        """Make sure that the source answers, and return its name.

        One that reads everything anew at each call is only asked if ``thorough``.

        Raises:
            SourceError: it does not answer.
        """

        async def probe(source: Source) -> str:
            if thorough or not source.rereads:
                await source.select([Selection(("up",), (), _PING_WINDOW_S)], at=None)
            return source.name

        try:
            async with asyncio.timeout(_PING_S):
                return await self._with_source(probe)
        except TimeoutError:
            hint = "check the server and the network between"
            raise SourceError(f"no answer in {_PING_S:g} s", hint=hint) from None

    async def aclose(self) -> None:
        """Cancel what runs."""
        await self._thread.aclose()
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _why(self, args: Arguments) -> Answer:
        target = args.text("target")
        at, window_s = args.moment("at", self._clock()), args.window("window", self._window_s)
        args.done()
        return await self._with_logs(
            lambda source, logs: why.run(
                target, engine=self._ready, source=source, at=at, window_s=window_s, logs=logs
            )
        )

    async def _sweep(self, args: Arguments) -> Answer:
        where = parse_selector(args.text("where", ""))
        at, window_s = args.moment("at", self._clock()), args.window("window", self._window_s)
        args.done()
        return await self._with_logs(
            lambda source, logs: sweep.run(
                engine=self._ready,
                source=source,
                at=at,
                window_s=window_s,
                where=where,
                logs=logs,
            )
        )

    async def _decode(self, args: Arguments) -> Answer:
        text = args.text("text")
        args.done()
        return await self._apart(lambda: decode.run(text, catalogue=self._ready.catalogue))

    async def _ask(self, args: Arguments) -> Answer:
        text, after = args.text("text"), args.text("after", "")
        args.done()
        catalogue = self._ready.catalogue
        return await self._apart(lambda: ask.run(text, catalogue=catalogue, after=after or None))

    async def _calc(self, args: Arguments) -> Answer:
        words = args.texts("words")
        args.done()
        return await self._apart(lambda: calc.run(words, catalogue=self._ready.catalogue))

    async def _kb(self, args: Arguments) -> Answer:
        action, text = args.text("action", "list"), args.text("text", "")
        args.done()
        catalogue = self._ready.catalogue
        run: Mapping[str, Callable[[], Answer]] = {
            "list": lambda: kb.list_entries(catalogue, text),
            "show": lambda: kb.show(text, catalogue),
            "search": lambda: kb.search(text, catalogue),
            "lint": lambda: kb.lint(self._overlays),
        }
        if action not in run:
            raise UsageError(f"kb cannot {action!r}", hint=f"use one of {', '.join(run)}")
        return await self._apart(run[action])

    async def _export(self, args: Arguments) -> Answer:
        what, runbooks = args.text("format"), args.text("runbooks", "")
        args.done()
        catalogue = self._ready.catalogue
        return await self._apart(lambda: export.run(what, catalogue=catalogue, runbooks=runbooks))

    async def _read(self, args: Arguments) -> Answer:
        files = args.files()
        inputs = list(args.inputs(optional=bool(files)))
        args.done()
        errors: list[GpuwhyError] = []
        for ref in files:
            try:
                inputs.append(read.Input(ref.name, [await self._fetched(ref)]))
            except GpuwhyError as error:
                errors.append(error)
        if errors and not inputs:
            raise errors[0]
        catalogue = self._ready.catalogue
        return await self._apart(
            lambda: read.run(inputs, catalogue=catalogue, diagnose=self._judged, errors=errors)
        )

    async def _fetched(self, ref: FileRef) -> bytes:
        if self._fetch is None:
            raise UsageError("no files here", hint="paste the text")
        return await self._fetch(ref)

    async def _rules(self, args: Arguments) -> Answer:
        action, names = args.text("action", "list"), args.texts("names")
        name = args.text("name", names[0] if names else "")
        if action == "why-not":
            return await self._why_not(name, args)
        args.done()
        catalogue = self._ready.catalogue
        run: Mapping[str, Callable[[], Answer]] = {
            "list": lambda: rules.list_rules(catalogue),
            "show": lambda: rules.show(name, catalogue),
            "test": lambda: ruletests.run(names or ([name] if name else []), catalogue),
            "lint": lambda: rules.lint(self._overlays),
        }
        if action not in run:
            known = ", ".join([*run, "why-not"])
            raise UsageError(f"rules cannot {action!r}", hint=f"use one of {known}")
        return await self._apart(run[action])

    async def _why_not(self, rule: str, args: Arguments) -> Answer:
        target = args.text("target")
        at, window_s = args.moment("at", self._clock()), args.window("window", self._window_s)
        args.done()
        return await self._with_source(
            lambda source: whynot.run(
                rule, target, engine=self._ready, source=source, at=at, window_s=window_s
            )
        )

    async def _help(self, args: Arguments) -> Answer:
        topic = args.text("topic", "")
        args.done()
        return help_.run(topic)

    @property
    def _ready(self) -> Engine:
        assert self._engine is not None, "the backend has not been started"
        return self._engine

    async def _with_source(
        self,
        use: Callable[[Source], Coroutine[Any, Any, T]],
        open_source: OpenSource | None = None,
    ) -> T:
        """Run what needs readings in the engine's thread, with a source of its own."""
        open_source = open_source or self._open_source
        if open_source is None:
            raise UsageError(
                "no source of readings",
                hint="set prometheus.url (GPUWHY_PROMETHEUS_URL) for the server",
                code="no_source",
            )

        async def used() -> T:
            source = open_source()
            try:
                return await use(source)
            finally:
                await source.aclose()

        return await self._thread.run(used)

    async def _with_logs(
        self,
        use: Callable[[Source, LogSource | None], Coroutine[Any, Any, T]],
        open_source: OpenSource | None = None,
    ) -> T:
        """Run what needs readings and may use kernel logs."""

        async def used(source: Source) -> T:
            logs = self._open_logs() if self._open_logs else None
            try:
                return await use(source, logs)
            finally:
                if logs is not None:
                    await logs.aclose()

        return await self._with_source(used, open_source)

    def _judged(self, text: bytes) -> Sequence[Why]:
        """Judge exporter text for `read`, which runs in one of the other threads."""
        return self._thread.call(lambda: read.judge(self._ready, text), self._timeout_s)

    async def _apart(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)
