"""``demo``: the whole thing on a simulated fleet with planted faults."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from bot.answer import Answer, Fields, Text, bullets, code, line, strong
from bot.commands import decode, sweep, why
from bot.phrases import count
from bot.times import utc
from engine.errors import UsageError

if TYPE_CHECKING:
    from engine.diagnosis import Engine
    from engine.simulate.fleet import Fleet
    from engine.sources.port import Source

_WINDOW_S = 900.0
SCRIPT = (
    ("sweep",),
    ("why", "node-1:3"),
    ("why", "node-2:3"),
    ("why", "node-4:7"),
    ("decode", "0x88"),
    ("decode", "xid", "79"),
    ("decode", "DCGM_FI_PROF_SM_ACTIVE"),
)


@dataclass(slots=True)
class Demo:
    """A simulated fleet that questions can be asked about.

    Attributes:
        engine: the rules.
        fleet: what is simulated, with the ground truth.
        source: where its readings come from.
        at: the moment judged (Unix seconds).
        how: what serves the readings, in words.
        everything: whether answers list all readings that were missing.
    """

    engine: Engine
    fleet: Fleet
    source: Source
    at: float
    how: str
    _held: AsyncExitStack
    everything: bool = False

    @classmethod
    async def start(cls, engine: Engine, *, prometheus: bool | None = None) -> Self:
        """Simulate the fleet and serve its readings.

        Args:
            engine: the rules.
            prometheus: whether to load them into a Prometheus; None if one is installed.

        Raises:
            SourceError: the Prometheus does not start.
        """
        from bot.demo.prometheus import installed, serving  # noqa: PLC0415 - aiohttp
        from bot.demo.scraped import scraping  # noqa: PLC0415
        from engine.simulate.demo import DEMO_SPAN_S, demo_fleet  # noqa: PLC0415 - numpy
        from engine.sources.prometheus import PrometheusConfig, PrometheusSource  # noqa: PLC0415

        fleet = demo_fleet()
        at = fleet.start + DEMO_SPAN_S
        held = AsyncExitStack()
        source: Source
        try:
            missing = "" if installed() else " (prometheus and promtool are not installed)"
            if prometheus is None:
                prometheus = not missing
            if prometheus:
                url = await held.enter_async_context(serving(fleet.openmetrics(fleet.start, at)))
                source = PrometheusSource(PrometheusConfig(url=url))
                held.push_async_callback(source.aclose)
                how = f"a Prometheus of its own at {url}"
            else:
                scraped = scraping(fleet, at=at, window_s=_WINDOW_S)
                source = await held.enter_async_context(scraped)
                how = f"its exporters, scraped directly{missing}"
        except BaseException:
            await held.aclose()
            raise
        return cls(engine, fleet, source, at, how, held)

    async def aclose(self) -> None:
        """Stop everything that was started."""
        await self._held.aclose()

    def opening(self) -> Answer:
        """Return what the demonstration is about, with the ground truth."""
        planted = self.fleet.planted
        size = f"{count(len(self.fleet.nodes), 'node')} with {len(self.fleet.gpus)} GPUs"
        return Answer(
            title=line(strong("Demonstration"), f": a simulated fleet, {size}"),
            blocks=(
                Text(line(f"{len(planted)} faults are planted; the rules do not know which.")),
                Fields(
                    (
                        ("readings", line(f"from {self.how}")),
                        ("moment", line(utc(self.at))),
                    )
                ),
            ),
            data={
                "schema": "gpuwhy/demo/1",
                "source": self.how,
                "at": self.at,
                "planted": [
                    {"cause": p.cause, "entity": p.entity, "since": p.since} for p in planted
                ],
            },
        )

    async def ask(self, words: Sequence[str]) -> Answer:
        """Answer a question about the fleet: ``sweep``, ``why TARGET``, ``decode TEXT``, ``help``.

        Raises:
            UsageError: it is none of these, or what it names is not there.
        """
        match words:
            case ["sweep"]:
                return await sweep.run(
                    engine=self.engine,
                    source=self.source,
                    at=self.at,
                    window_s=_WINDOW_S,
                    everything=self.everything,
                )
            case ["why", *target] if target:
                return await why.run(
                    " ".join(target),
                    engine=self.engine,
                    source=self.source,
                    at=self.at,
                    window_s=_WINDOW_S,
                    everything=self.everything,
                )
            case ["decode", *text] if text:
                return decode.run(" ".join(text), catalogue=self.engine.catalogue)
            case ["help", *_]:
                return commands()
            case _:
                said = f"the demonstration does not know {' '.join(words)!r}"
                raise UsageError(said, hint="ask: sweep, why node-3:5, decode xid 79, help or quit")


def commands() -> Answer:
    """Return what can be asked about the fleet."""
    said = (
        ("sweep", "everything that is sick, worst first"),
        ("why node-3:5", "why this GPU is slow; a host will do (why node-1)"),
        ("decode xid 79", "what an Xid, a throttle mask (0x88) or a metric means"),
        ("quit", "end; the fleet and its Prometheus go"),
    )
    return Answer(
        title=line(strong("What to ask")),
        blocks=(
            bullets(line(code(words), f"  {does}") for words, does in said),
            Text(line("Plain words do too: ", code("why is gpu 3 on node-2 slow?"))),
        ),
        data={
            "schema": "gpuwhy/help/1",
            "commands": [{"name": w.split()[0], "does": d, "examples": [w]} for w, d in said],
        },
    )


def step(words: Sequence[str]) -> Answer:
    """Return the line that stands above an answer: the command that gives it."""
    return Answer(line("$ ", code(f"gpuwhy {' '.join(words)}")), (), {})
