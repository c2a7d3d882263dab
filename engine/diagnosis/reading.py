"""From a target to the readings that answer for it, in as few waves as can be.

What a wave brings says what the next must ask for: the hosts of a UUID, a GPU that fell silent,
what a service runs on. Kernel logs are read beside the metrics.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.diagnosis.core import missing_core
from engine.diagnosis.fetch import Fetched, Fetcher, matches
from engine.diagnosis.logwatch import LogWatch
from engine.diagnosis.lost import lost, no_such_entity, no_such_port, placeholder
from engine.diagnosis.present import current, late, silent
from engine.diagnosis.related import OWN, gpus, own
from engine.diagnosis.selecting import LOOKBACK_LOST_S
from engine.diagnosis.targets import distinct, hosts_of
from engine.errors import UsageError
from engine.model import Kind
from engine.samples import Selection
from engine.signals.normalise import Readings
from engine.sources.port import Source
from engine.topology import Target


class Reader:
    """Fetches what is known of a target."""

    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher

    async def read(
        self, target: Target, source: Source, got: Fetched, watch: LogWatch
    ) -> tuple[Readings, list[int]]:
        """Fetch what is known of a target, the kernel log beside the metrics."""
        # The moment of a file is that of its newest sample: not known before it is read.
        if got.at is not None or not source.rereads:
            watch.start(hosts_of(target, None, ()) or None, got.at, got.window_s)
        await self._fetcher.ask(source, got, self._fetcher.wave_one(target, got.window_s))
        readings = self._fetcher.frame(got)
        if target.kind in OWN:
            return await self._own(target, source, got, watch, readings)
        chosen = self._choose(target, readings)
        span = got.window_s
        watch.start(hosts_of(target, readings, chosen), got.log_end, span)
        if not chosen:
            await watch.join(got)
            readings, chosen = await lost(self._fetcher, source, got, target)
            if await watch.widen(got):
                readings = self._fetcher.frame(got)  # of the same series, so with the same entities
            if not chosen:
                return placeholder(target, readings, got), [0]
            if got.window_s != span:  # it has readings of the past only
                return readings, chosen
        more = self._second_wave(target, got, readings, chosen)
        brought = bool(more) and bool((await self._fetcher.ask(source, got, more)).series)
        stale = brought or got.window_s != span
        if target.host is None and stale:  # only now it is known which hosts these are
            readings = self._fetcher.frame(got)
            chosen = self._choose(target, readings)
            far = self._fetcher.elsewhere(readings, chosen)
            stale = bool(far) and bool((await self._fetcher.ask(source, got, far)).series)
        await watch.join(got)
        await watch.widen(got)
        if stale or got.events:
            readings = self._fetcher.frame(got)
            chosen = self._choose(target, readings)
        return readings, chosen

    async def _own(
        self, target: Target, source: Source, got: Fetched, watch: LogWatch, readings: Readings
    ) -> tuple[Readings, list[int]]:
        """Fetch what is beneath a service, a file system or a rank: hosts and GPUs.

        Raises:
            UsageError: the source has nothing of that name.
        """
        frame = readings.others.get(OWN[target.kind])
        mine = own(target, frame) if frame else []
        if not frame or not mine:
            raise await no_such_entity(self._fetcher, source, got, target, frame)
        devices = [
            one.labels["device"]
            for one in got.batch.series
            if target.kind is Kind.FILESYSTEM and one.labels.get("device")
        ]
        more = self._fetcher.beneath([frame.entities[i] for i in mine], devices)
        if more:
            await self._fetcher.ask(source, got, more)
            readings = self._fetcher.frame(got)
        watch.start(hosts_of(target, readings, gpus(target, readings)), got.log_end, got.window_s)
        await watch.join(got)
        if got.events:
            readings = self._fetcher.frame(got)
        return readings, current(readings, gpus(target, readings))

    def again(self, target: Target, got: Fetched) -> tuple[Readings, list[int]]:
        """Return the readings and the GPUs of a target anew, after more has come."""
        readings = self._fetcher.frame(got)
        return readings, self._choose(target, readings)

    def _choose(self, target: Target, readings: Readings) -> list[int]:
        """Return the entities of a frame that are the target.

        Raises:
            UsageError: a GPU was asked for and several fit, or the host has none of this number.
        """
        groups = readings.places
        chosen = [i for i, group in enumerate(groups) if any(matches(target, p) for p in group)]
        chosen = current(readings, chosen)
        if (wrong := no_such_port(target, readings, chosen)) is not None:
            raise wrong
        if target.kind is Kind.GPU and len(chosen) > 1:
            names = ", ".join(distinct(readings.frame.entities[i]) for i in chosen[:4])
            more = f" and {len(chosen) - 4} more" if len(chosen) > 4 else ""
            raise UsageError(
                f"{len(chosen)} GPUs match {target.text!r}: {names}{more}",
                hint="name one of them by HOST:GPU, CLUSTER::HOST:GPU or a longer UUID",
                code="ambiguous_target",
            )
        return chosen

    def _second_wave(
        self, target: Target, got: Fetched, readings: Readings, chosen: Sequence[int]
    ) -> list[Selection]:
        """Return what can only be asked once the target is known, often nothing.

        The siblings of a GPU that was not named by its host; and of a GPU whose core readings are
        missing or late, whether its exporter answers, and what it read before the window.
        """
        frame = readings.frame
        out = []
        if target.host is None and not target.hosts and target.kind is not Kind.FLEET:
            places = [p for i in chosen for p in readings.places[i]]
            out += self._fetcher.siblings_of(
                places, target.job if target.kind is Kind.JOB else None
            )
        out += self._fetcher.elsewhere(readings, chosen)
        out += self._fetcher.workloads_of([frame.entities[i] for i in chosen], target)
        lacking = [i for i in chosen if missing_core(frame, i) or late(frame, i)]
        out += self._fetcher.exporters_of(readings, lacking)
        # A board whose readings stop may go on elsewhere: it was moved.
        stopped = [p for i in lacking if late(frame, i) for p in readings.places[i] if p.uuid]
        if stopped and frame.timed:
            out += self._fetcher.history_of(stopped, self._fetcher.names.gpu, got.window_s)
        mute = [i for i in lacking if silent(frame, i)]
        if mute and frame.timed:
            got.window_s = LOOKBACK_LOST_S
            places = [p for i in mute for p in readings.places[i]]
            out += self._fetcher.history_of(places, self._fetcher.core_names())
        return out
