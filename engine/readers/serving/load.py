"""What a service does, as far as its metrics or its log say: readings by engine, in one unit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from engine.model import Entity, Kind
from engine.readers.serving.histogram import Histogram
from engine.readers.serving.quantities import SERVERS


@dataclass(slots=True)
class Engine:
    """One engine (data-parallel rank, worker or replica) of a service.

    Attributes:
        name: how the text calls it, empty for a server with one engine.
        instance: its index or place alone, as a target names it (``svc/MODEL#INSTANCE``).
        now: newest readings by quantity.
        grown: how far counters rose between the first and the last scrape, reset-corrected.
        before: counters as of the first scrape.
    """

    name: str
    instance: str = ""
    now: dict[str, float] = field(default_factory=dict)
    grown: dict[str, float] = field(default_factory=dict)
    before: dict[str, float] = field(default_factory=dict)

    @property
    def called(self) -> str:
        """How to call it in a sentence."""
        return self.name or "the engine"


@dataclass(slots=True)
class Load:
    """The readings of one service.

    Attributes:
        server: id of the server software.
        model: the served model, empty if not said.
        engines: its engines, by name.
        histograms: by quantity, all engines together.
        written: by quantity, the metric name that carried it.
        line: the first line.
        since: what counters count from, for a sentence.
        span_s: time between first and last scrape, if known.
        uptime_s: age of the server's process, if known.
        labels: the labels that name model and version, as written.
        lora_waiting, lora_slots, lora_at: adapters that wait, how many fit, and when that was.
        asleep: whether the engine says that it sleeps.
        refused_by: the limits that requests were refused by, as the server names them.
        positions: accepted draft tokens by position in the draft, from 0.
        cache_blocks, block_tokens: size of one engine's KV cache, as it was configured.
    """

    server: str
    model: str
    engines: dict[str, Engine] = field(default_factory=dict)
    histograms: dict[str, Histogram] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)
    line: int = 0
    since: str = "since the server started"
    span_s: float | None = None
    uptime_s: float | None = None
    labels: frozenset[str] = frozenset()
    lora_waiting: tuple[str, ...] = ()
    lora_slots: int | None = None
    lora_at: float = 0.0
    asleep: bool = False
    refused_by: dict[str, None] = field(default_factory=dict)
    positions: dict[int, float] = field(default_factory=dict)
    cache_blocks: int | None = None
    block_tokens: int | None = None

    @property
    def called(self) -> str:
        """The service in words: ``vLLM, model ds-flash``."""
        title = SERVERS.get(self.server, self.server)
        return f"{title}, model {self.model}" if self.model else title

    @property
    def title(self) -> str:
        """The server software."""
        return SERVERS.get(self.server, self.server)

    @property
    def entity(self) -> Entity | None:
        """The service, None where no model is named."""
        if not self.model:
            return None
        return Entity(Kind.SERVICE, f"svc/{self.model}", service=self.model)

    def one(self, engine: Engine) -> Entity | None:
        """Return the entity of one engine; the service itself where it has only one."""
        if not self.model or len(self.engines) < 2:
            return self.entity
        name = engine.instance or engine.name
        return Entity(Kind.SERVICE, f"svc/{self.model}#{name}", service=self.model, instance=name)

    def having(self, quantity: str) -> Iterator[tuple[Engine, float]]:
        """Yield the engines that have a reading, with it."""
        for engine in self.engines.values():
            if quantity in engine.now:
                yield engine, engine.now[quantity]

    def total(self, quantity: str) -> float | None:
        """Return the sum over engines, None if none has it."""
        values = [value for _, value in self.having(quantity)]
        return sum(values) if values else None

    def mean(self, quantity: str) -> float | None:
        """Return the mean over engines, None if none has it."""
        values = [value for _, value in self.having(quantity)]
        return sum(values) / len(values) if values else None

    def highest(self, quantity: str) -> tuple[Engine, float] | None:
        """Return the engine with the largest reading, the first of equals."""
        return max(self.having(quantity), key=lambda pair: pair[1], default=None)

    def growth(self, quantity: str) -> float | None:
        """Return how far a counter rose between scrapes, None with one scrape only."""
        values = [e.grown[quantity] for e in self.engines.values() if quantity in e.grown]
        return sum(values) if values else None
