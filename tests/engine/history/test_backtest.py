"""Rules replayed over the past: from real Prometheus, from files, from servers that refuse much."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from bot.commands import backtest as command
from bot.render import plain
from engine.catalogue import load_catalogue
from engine.errors import SourceError, UsageError
from engine.history.backtest import backtest
from engine.history.replaymodel import Difference, Ended
from engine.model import to_json
from engine.samples import Batch, RawSeries, Selection
from engine.sources import FileSource, PrometheusConfig, PrometheusSource
from tests.support.contracts import conforms
from tests.support.memory import MemorySource
from tests.support.readings import AT, FULL, catalogue, engine, gpu
from tests.support.servers import load_openmetrics, start_prometheus

BEGIN = AT - 5400.0
ONSET, RELEASE = AT - 2400.0, AT - 1200.0
LIMIT = """\
thresholds:
- id: reason_active_share
  title: part of the samples with a throttle reason from which it counts
  kind: threshold
  text: We count a reason only where it stands in half of the samples.
  value: {value}
  unit: ratio
  site_default: true
  source: ["site default: as we have it"]
  status: single
"""


def history(values=FULL, *, index: int = 0, until: float = AT) -> list[RawSeries]:
    """A busy GPU over 90 minutes, a sample every 15 s; the brake is asserted for 20 minutes."""
    import numpy as np

    times = np.arange(BEGIN, until + 1, 15.0)
    braked = (times >= ONSET) & (times < RELEASE)
    out = []
    for one in gpu(dict.fromkeys(values, 0), index=index):
        value = values[one.name]
        steady = float(value[0]) if isinstance(value, list) else float(value)
        column = np.full(times.size, steady)
        if one.name == "DCGM_FI_DEV_CLOCKS_EVENT_REASONS" and index == 0:
            column = np.where(braked, 136.0, steady)
        if one.name == "DCGM_FI_DEV_SM_CLOCK" and index == 0:
            column = np.where(braked, 900.0, steady)
        out.append(RawSeries(one.name, one.labels, times, column))
    return out


def openmetrics(series: Sequence[RawSeries]) -> str:
    lines = []
    for one in sorted(series, key=lambda s: s.name):
        labels = ",".join(f'{k}="{v}"' for k, v in one.labels.items())
        pairs = zip(one.ts.tolist(), one.values.tolist(), strict=True)
        lines += [f"{one.name}{{{labels}}} {value:g} {ts:.3f}" for ts, value in pairs]
    return "\n".join([*lines, "# EOF"]) + "\n"


@pytest.fixture(scope="module")
def series() -> list[RawSeries]:
    return [*history(), *history(index=1)]


async def test_a_rule_is_listed_with_when_on_what_and_for_how_long(series):
    found = await backtest(MemorySource(series), catalogue(), ["power_brake"], since_s=3600.0)
    conforms(to_json(found), "rules-backtest")
    (rule,), (firing,) = found.now.rules, found.now.firings
    assert (rule.rule.partition("@")[0], rule.firings, rule.entities) == ("power_brake", 1, 1)
    assert firing.entity.name == "node-1"
    assert abs(firing.start - ONSET) <= 60.0
    assert (
        RELEASE - 60.0 <= firing.end <= RELEASE + 900.0
    )  # as long as its window of 15 minutes holds some
    assert firing.lasted_s == firing.end - firing.start + 60.0
    assert (firing.confidence, firing.from_before, firing.ended) == ("certain", False, Ended.OVER)
    assert (found.moments, found.gaps, found.warnings) == (60, (), ())
    text = plain.render(command.answer(found))
    assert "1 rule of 1 would have fired" in text


async def test_moments_without_readings_are_told_apart(tmp_path, series):
    file = tmp_path / "history.om"
    file.write_text(openmetrics(series))
    found = await backtest(
        FileSource([str(file)]), catalogue(), ["power_brake"], since_s=86400.0, step_s=600.0
    )
    assert (found.moments, found.moments_read) == (144, 10)
    assert (found.readings_from, found.readings_to) == (BEGIN, AT)
    text = plain.render(command.answer(found))
    assert "10 of 144 moments had readings: " in text
    assert "a moment counts for one step, 10 min." in text
    long_ago = await backtest(
        FileSource([str(file)]), catalogue(), ["power_brake"], until=AT - 4e7, since_s=3600.0
    )
    conforms(to_json(long_ago), "rules-backtest")
    assert (long_ago.moments_read, long_ago.readings_from, long_ago.readings_to) == (0, BEGIN, AT)
    text = plain.render(command.answer(long_ago))
    assert text.startswith("No reading to judge from ")
    assert "0 of 60 moments had readings: " in text
    assert "would have fired" not in text


async def test_each_moment_is_judged_as_a_question_about_it_would_be(series):
    names = ["power_brake", "thermal_slowdown_hw", "clocks_locked"]
    source = MemorySource(series)
    found = await backtest(source, catalogue(), names, since_s=3000.0, step_s=150.0)
    for k in range(20):
        at = found.start + (k + 1) * 150.0
        why = await engine().why("node-1:0", source, at=at)
        told = {d.cause for d in why.diagnoses} & set(names)
        fired = {f.rule for f in found.now.firings if f.start <= at <= f.end}
        assert fired == told, at


async def test_what_was_going_on_before_and_what_goes_on_is_said(series):
    source = MemorySource(series)
    found = await backtest(
        source, catalogue(), ["power_brake"], since_s=300.0, until=ONSET + 900.0, step_s=60.0
    )
    (firing,) = found.now.firings
    assert (firing.from_before, firing.ended) == (True, Ended.GOES_ON)


async def test_a_rule_without_its_readings_is_not_said_to_be_quiet():
    values = {k: v for k, v in FULL.items() if "CLOCKS_EVENT" not in k}
    found = await backtest(
        MemorySource(history(values)), catalogue(), ["power_brake_active"], since_s=600.0
    )
    (rule,) = found.now.rules
    assert (rule.firings, rule.looks, rule.unknown) == (0, 10, 10)
    text = plain.render(command.answer(found))
    assert "Never decided, for lack of readings (see rules why-not): power_brake_active" in text


async def test_the_real_prometheus_and_the_file_say_the_same(series, tmp_path):
    text = openmetrics(series)
    load_openmetrics(text, tmp_path / "data")
    (tmp_path / "metrics.om").write_text(text)
    answers = []
    with start_prometheus(tmp_path / "data") as server:
        for source in (
            PrometheusSource(PrometheusConfig(server.url)),
            FileSource([tmp_path / "metrics.om"]),
        ):
            try:
                found = await backtest(source, catalogue(), since_s=3600.0, until=AT)
            finally:
                await source.aclose()
            answers.append(replace(found, source="", queries=0))
    assert json.dumps(to_json(answers[0])) == json.dumps(to_json(answers[1]))
    assert "power_brake" in {f.rule for f in answers[0].now.firings}


async def test_a_prometheus_that_caps_samples_is_asked_for_less_at_once(series, tmp_path):
    load_openmetrics(openmetrics(series), tmp_path / "data")
    answers = []
    for cap in (50_000_000, 500):
        args = [f"--query.max-samples={cap}"]
        with start_prometheus(tmp_path / "data", extra_args=args) as server:
            source = PrometheusSource(PrometheusConfig(server.url))
            try:
                answers.append(
                    await backtest(source, catalogue(), ["power_brake"], since_s=3600.0, until=AT)
                )
            finally:
                await source.aclose()
    free, capped = answers
    assert capped.queries > free.queries
    assert capped.now.firings == free.now.firings
    assert [g.what for g in capped.gaps if g.start >= capped.start] == []


class Refusing(MemorySource):
    """A server that fails where a span is asked for, except for a whole day."""

    def __init__(self, series, start: float, end: float) -> None:
        super().__init__(series)
        self.span = (start, end)

    async def select(self, selections: Sequence[Selection], *, at: float | None) -> Batch:
        start = min(at - s.window_s for s in selections) if at is not None else 0.0
        if at is not None and at > self.span[0] and start < self.span[1] and at - start < 80_000:
            raise SourceError("memory answers HTTP 503", code="source_bad_answer")
        return await super().select(selections, at=at)


async def test_what_could_not_be_read_is_said_and_ends_what_fired(series):
    source = Refusing(series, ONSET + 300.0, ONSET + 600.0)
    found = await backtest(source, catalogue(), ["power_brake"], since_s=3600.0)
    (gap,) = found.gaps
    assert (gap.what, gap.why) == ("all readings", "memory answers HTTP 503")
    assert found.moments < 60
    before, after = found.now.firings
    assert (before.ended, after.from_before) == (Ended.UNREAD, True)
    assert "Could not be read" in plain.render(command.answer(found))


async def test_a_source_that_never_answers_is_an_error(series):
    with pytest.raises(SourceError, match="HTTP 503"):
        await backtest(
            Refusing(series, 0.0, AT + 1), catalogue(), ["power_brake"], since_s=3600.0, until=AT
        )


async def test_two_versions_of_a_rule_are_compared(series, tmp_path):
    file = tmp_path / "limit.yaml"
    source = MemorySource(series)
    found = {}
    for value in (0.05, 0.9, 0.1):
        file.write_text(LIMIT.format(value=value))
        other = load_catalogue([file])
        found[value] = await backtest(
            source, catalogue(), ["hw_slowdown_active"], since_s=3600.0, step_s=15.0, other=other
        )
        conforms(to_json(found[value]), "rules-backtest")
    (longer,) = found[0.05].changes
    assert (longer.difference, longer.entity.name) == (Difference.LONGER, "node-1:0")
    (shorter,) = found[0.9].changes
    assert shorter.difference is Difference.SHORTER
    assert shorter.before[0].lasted_s > shorter.after[0].lasted_s
    assert (found[0.1].changes, found[0.1].same) == ((), 1)
    assert "shorter" in plain.render(command.answer(found[0.9]))


async def test_a_rule_that_the_overlay_adds_or_switches_off_is_new_or_gone(series, tmp_path):
    off = tmp_path / "site" / "rules" / "symptoms" / "power" / "hw_slowdown_active.yaml"
    off.parent.mkdir(parents=True)
    off.write_text("id: hw_slowdown_active\ndisabled: true\n")
    ours = load_catalogue([tmp_path / "site"])
    source = MemorySource(series)
    there = await backtest(source, catalogue(), ["hw_slowdown_active"], since_s=3600.0, other=ours)
    assert [c.difference for c in there.changes] == [Difference.GONE]
    back = await backtest(source, ours, ["hw_slowdown_active"], since_s=3600.0, other=catalogue())
    assert [c.difference for c in back.changes] == [Difference.NEW]


async def test_without_names_the_rules_that_differ_are_compared(series, tmp_path):
    file = tmp_path / "limit.yaml"
    file.write_text(LIMIT.format(value=0.9))
    source = MemorySource(series)
    found = await backtest(source, catalogue(), since_s=600.0, other=load_catalogue([file]))
    names = {rule.rule.partition("@")[0] for rule in found.now.rules}
    assert {"hw_slowdown_active", "power_brake"} <= names
    assert "idle" not in names
    with pytest.raises(UsageError, match="no rule differs"):
        await backtest(source, catalogue(), since_s=600.0, other=catalogue())


async def test_the_load_is_that_of_a_sweep_every_minute(series):
    found = await backtest(MemorySource(series), catalogue(), ["clock_low"], since_s=600.0)
    load = found.now.load
    assert load.queries_a_day == 1440 * load.queries_a_sweep
    assert load.series >= 2
    # Each series has 61 samples in 15 minutes.
    assert load.samples_a_day == 1440 * load.series * 61


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"rules": ["power_brak"]}, "did you mean 'power_brake'"),
        ({"step_s": 1.0}, "step 1 s is out of range"),
        ({"since_s": 3e7, "step_s": 60.0}, "moments are too many"),
        ({"since_s": 30.0}, "out of range"),
    ],
)
async def test_what_cannot_be_replayed_is_refused(given, said):
    rules = given.pop("rules", ["power_brake"])
    with pytest.raises(UsageError, match=said):
        await backtest(MemorySource(history()), catalogue(), rules, **given)


async def test_a_file_without_times_has_no_past():
    file = Path(__file__).parents[2] / "data" / "metrics" / "h100_locked_clock.prom"
    with pytest.raises(UsageError, match="has no times"):
        await backtest(FileSource([file]), catalogue(), ["power_brake"])


async def test_progress_counts_moments_and_the_loop_goes_on(series):
    done: list[tuple[int, int]] = []
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.01)

    task = asyncio.create_task(tick())
    await backtest(
        MemorySource(series),
        catalogue(),
        ["power_brake"],
        since_s=3600.0,
        on_progress=lambda *x: done.append(x),
    )
    task.cancel()
    assert done[-1] == (60, 60)
    assert ticks > 5


async def test_a_span_that_begins_before_the_readings_says_so(series):
    found = await backtest(MemorySource(series), catalogue(), ["power_brake"], since_s=14400.0)
    assert any("readings begin" in w for w in found.warnings)
