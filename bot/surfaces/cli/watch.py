"""``gpuwhy watch``."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bot.surfaces.cli import options
from bot.surfaces.cli.output import report, show, warn, write
from bot.times import parse_hold, parse_span
from engine.errors import GpuwhyError, SourceError, UsageError

if TYPE_CHECKING:
    from engine.history import Book, Event, Outcome, Sight, Tracked, Watcher

_SHORTEST_S, _LONGEST_S = 1.0, 86400.0
_TICK_S = 1.0


def _every(text: str) -> float:
    seconds = parse_span(text)
    if not _SHORTEST_S <= seconds <= _LONGEST_S:
        raise UsageError(f"interval {text} is out of range", hint="give 1s to 1d")
    return seconds


@click.command("watch")
@click.option("--where", metavar="SELECTOR", help='Only these: Hostname=~"node-.*",cluster="a".')
@click.option("--every", type=_every, metavar="SPAN", help="How often to look (default: 60s).")
@click.option(
    "--for",
    "hold",
    type=parse_hold,
    metavar="SPAN",
    help="An incident opens when it has lasted so long (default: 2m).",
)
@click.option(
    "--resolve-after",
    type=parse_hold,
    metavar="SPAN",
    help="It closes when it has been absent so long (default: 5m).",
)
@click.option(
    "--quiet-period",
    type=parse_hold,
    metavar="SPAN",
    help="One that comes back within so long is the same one (default: 1h).",
)
@click.option(
    "--state",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Keep what is known here, so that a restart tells nothing twice (SQLite).",
)
@click.option("--once", is_flag=True, help="Look once and end, as for cron; see --state.")
@options.source
@options.logs
@options.common
def command(
    *,
    where: str | None,
    every: float | None,
    hold: float | None,
    resolve_after: float | None,
    quiet_period: float | None,
    state: Path | None,
    once: bool,
    source: options.SourceOptions,
    logs: options.LogOptions,
    common: options.Common,
) -> int:
    """Sweep again and again; print a line when an incident opens, changes or closes.

    With --json each line is a document (gpuwhy/watch/1). Ctrl-C ends it.
    """
    if common.server:
        hint = "set watch.every in its configuration"
        raise UsageError("a server watches by itself", hint=hint)
    if "-" in source.metrics or "-" in logs.kernel_log:
        raise UsageError("standard input can be read only once", hint="give a file")
    if once and state is None:
        if hold:
            raise UsageError("--once cannot wait for --for", hint="add --state FILE, or drop --for")
        hold = 0.0
    # A shell script starts what runs in the background with Ctrl-C ignored: not for long here.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    spans = {"open_s": hold, "resolve_s": resolve_after, "quiet_s": quiet_period}
    run = _Run(where or "", every or 60.0, spans, state, source, logs, common)
    try:
        asyncio.run(run.once() if once else run.forever())
    except GpuwhyError as error:
        report(error, as_json=common.as_json, one_line=True)
        return error.exit_status
    return 0


class _Run:
    """One watch on this terminal, or in this pipe."""

    def __init__(
        self,
        where: str,
        every_s: float,
        spans: dict[str, float | None],
        state: Path | None,
        source: options.SourceOptions,
        logs: options.LogOptions,
        common: options.Common,
    ) -> None:
        self._where = where
        self._every_s = every_s
        self._spans = {name: span for name, span in spans.items() if span is not None}
        self._state = state
        self._source = source
        self._logs = logs
        self._common = common

    async def once(self) -> None:
        """Look once, whenever the last look was.

        Raises:
            GpuwhyError: the source or the state cannot be used, or another one looks just now.
        """
        async with AsyncExitStack() as stack:
            watcher = await self._open(stack)
            outcome = await watcher.turn(now=True)
        if outcome is None:
            said = f"another watch looks just now with {self._state}"
            raise SourceError(said, hint="try again in half a minute", code="busy")
        events = outcome.events
        if outcome.error is not None and not self._common.as_json:  # the error says the same
            events = tuple(one for one in events if one.says != outcome.error.one_line())
        self._tell(events)
        if outcome.error is not None:
            raise outcome.error

    async def forever(self) -> None:
        """Look again and again.

        Raises:
            GpuwhyError: the first look shows that something is given wrongly; or the state cannot
                be used.
        """
        from bot.commands.watch import opening  # noqa: PLC0415 - so that --help starts fast

        async with AsyncExitStack() as stack:
            watcher = await self._open(stack)
            self._tell(await opening(watcher, now=time.time()))
            checked = said = False
            while True:
                try:
                    outcome = await watcher.turn()
                    said = False
                except GpuwhyError as error:  # the state cannot be used: said once
                    if not said:
                        warn([error.one_line()])
                    outcome, said = None, True
                if outcome is not None:
                    self._take(outcome, checked=checked)
                    checked = True
                await asyncio.sleep(_TICK_S)

    def _take(self, outcome: Outcome, *, checked: bool) -> None:
        error = outcome.error
        if error is not None and not checked and error.exit_status == UsageError.exit_status:
            raise error
        if error is not None and not outcome.failed_before:
            warn([f"cannot look: {error.one_line()}"])
        self._tell(outcome.events)

    def _tell(self, events: Sequence[Event]) -> None:
        from bot.commands import watch  # noqa: PLC0415 - so that --help starts fast
        from bot.render.json import dump_line  # noqa: PLC0415

        for event in events:
            if self._common.as_json:
                write(dump_line(watch.document(event)))
            else:
                show(watch.told(event), as_json=False, color=self._common.color)

    async def _open(self, stack: AsyncExitStack) -> Watcher:
        """Load the rules, choose the source, open the state; all is closed with the stack."""
        from bot.selector import format_selector, parse_selector  # noqa: PLC0415
        from bot.surfaces.cli import inputs  # noqa: PLC0415
        from bot.surfaces.cli.progress import Progress  # noqa: PLC0415
        from engine.history import Holds, Pace, Watcher, watch_name  # noqa: PLC0415
        from engine.history.sight import look  # noqa: PLC0415

        where = parse_selector(self._where)
        with Progress("loading the rules") as progress:
            setup = inputs.prepare(self._common, self._source, progress, self._logs)
        settings = setup.settings
        await setup.aclose()
        name = watch_name(setup.source.name, format_selector(where))

        watch = settings.watch
        holds = Holds(watch.hold, watch.resolve_after, watch.quiet_period)

        async def seen(known: Sequence[Tracked]) -> Sight:
            # A source of its own for each look: it tells its warnings once, and reads anew.
            source = inputs.open_source(self._source, settings, lambda _done, _total: None)
            logs = inputs.make_logs(settings, self._logs)
            try:
                return await look(
                    setup.engine,
                    source,
                    known,
                    window_s=settings.window,
                    where=where,
                    logs=logs,
                )
            finally:
                await source.aclose()
                if logs is not None:
                    await logs.aclose()

        return Watcher(
            await self._book(stack),
            seen,
            name=name,
            pace=Pace(self._every_s, watch.timeout),
            holds=replace(holds, **self._spans),
        )

    async def _book(self, stack: AsyncExitStack) -> Book:
        if self._state is None:
            from engine.history import MemoryBook  # noqa: PLC0415

            return MemoryBook()
        from bot.store import Store  # noqa: PLC0415 - SQLAlchemy, only with --state
        from bot.store.incidentbook import StoreBook  # noqa: PLC0415

        store = Store(f"sqlite:///{self._state.absolute()}")
        await store.migrate()
        await store.open()
        stack.push_async_callback(store.close)
        return StoreBook(store)
