"""Asking why a rule did not fire: what it needs, what was read, what is missing."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bot.commands import whynot
from bot.render import json, plain
from engine.catalogue import load_catalogue
from engine.diagnosis import Engine
from engine.diagnosis.whynot import why_not
from engine.diagnosis.whynotmodel import Outcome, WhyNot
from engine.errors import SourceError, UsageError
from engine.model import to_json
from engine.samples import Batch, Selection
from tests.support.contracts import conforms
from tests.support.house import write
from tests.support.memory import MemorySource
from tests.support.readings import AT, FULL, IDLE, STOCK, engine, gpu, node, up

BRAKED = {**FULL, "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": 136, "DCGM_FI_DEV_SM_CLOCK": 900}

SERVICE = {
    "knowledge/signals.yaml": """\
signals:
  - id: queue_depth
    title: requests that wait
    unit: count
    kind: gauge
    scope: service
    export: "the engine of the site has it"
    spellings:
      - {name: site_queue_depth, unit: count, exporter: site}
    source: [runbook 3]
    status: single
""",
    "rules/symptoms/site/queue_long.yaml": """\
id: queue_long
title: many requests wait
version: 1
status: experimental
scope: service
when: avg(queue_depth, "5m") > 10
threshold: "site default: 10"
references: [runbook 3]
tests: []
""",
}


async def asked(rule: str, values=FULL, target: str = "node-1:0", **labels) -> WhyNot:
    found = await why_not(engine(), rule, target, MemorySource(gpu(values, **labels)), at=AT)
    conforms(to_json(found), "rules-why-not")
    return found


def part(found: WhyNot, ref: str):
    return next(p for c in found.checks[0].patterns for p in c.parts if p.ref == ref)


async def test_a_rule_that_does_not_hold_shows_the_number_that_decided():
    found = await asked("power_brake")
    assert found.outcome is Outcome.QUIET
    assert "power_brake_active is not true" in found.says
    blocking = part(found, "power_brake_active")
    assert (blocking.role, blocking.truth, blocking.state) == ("all", "false", "blocks")
    first = blocking.decided[0]
    assert (first.signal, first.value, first.threshold, first.unit) == (
        "throttle_reasons",
        0.0,
        0.1,
        "ratio",
    )
    assert first.query.startswith("DCGM_FI_DEV_CLOCKS_EVENT_REASONS{UUID=")
    assert "limit.reason_active_share" in first.source


async def test_a_missing_reading_names_the_line_that_would_export_it():
    found = await asked("power_brake", STOCK)
    assert found.outcome is Outcome.UNKNOWN
    lacks = {lack.signal: lack for lack in part(found, "power_brake_active").lacks}
    assert lacks["throttle_reasons"].why == "not exported"
    text = plain.render(whynot.answer(found))
    assert "DCGM_FI_DEV_CLOCKS_EVENT_REASONS, gauge" in text


async def test_a_rule_that_did_fire_says_so():
    found = await asked("power_brake", BRAKED)
    assert found.outcome is Outcome.FIRED
    assert found.says == "It did fire, and stands in the answer."
    assert [c.entity.name for c in found.checks] == ["node-1:0"]


async def test_a_consequence_names_the_cause_that_it_hangs_beneath():
    hot = {"DCGM_FI_DEV_CLOCKS_EVENT_REASONS": 0x68, "DCGM_FI_DEV_GPU_TEMP": 90}
    source = MemorySource(gpu({**BRAKED, **hot}))
    why = await engine().why("node-1:0", source, at=AT)
    (below,) = {e.cause for d in why.diagnoses for e in d.effects}
    found = await why_not(engine(), below, "node-1:0", source, at=AT)
    assert found.outcome is Outcome.FOLLOWS
    assert found.says == f"It holds, and is told as an effect of {why.diagnoses[0].cause}."


async def test_a_symptom_can_be_asked_about():
    assert (await asked("no_work", IDLE)).outcome is Outcome.FIRED
    quiet = await asked("clock_low")
    assert quiet.outcome is Outcome.QUIET
    assert "1972 MHz, at least 1485 MHz" in part(quiet, "clock_low").decided[0].says
    assert (await asked("power_brake_active", STOCK)).outcome is Outcome.UNKNOWN


async def test_a_symptom_of_another_vendor_does_not_apply():
    found = await asked("amd_pcie_nacks_rising")
    assert found.outcome is Outcome.NOT_APPLICABLE
    assert "no exporter for GPUs of nvidia" in found.says


async def test_a_rule_of_services_does_not_apply_to_a_lone_gpu(tmp_path):
    folder = write(tmp_path, SERVICE)
    ours = Engine(load_catalogue([folder]))
    found = await why_not(ours, "queue_long", "node-1:0", MemorySource(gpu(FULL)), at=AT)
    assert found.outcome is Outcome.NOT_APPLICABLE
    assert "reads what is of service" in found.says
    assert found.checks == ()


async def test_a_node_is_answered_gpu_by_gpu():
    source = MemorySource(node(FULL, gpus=2))
    found = await why_not(engine(), "clock_low", "node-1", source, at=AT)
    assert [c.entity.name for c in found.checks] == ["node-1:0", "node-1:1"]
    assert "node-1:1" in plain.render(whynot.answer(found))
    assert [m.name for m in found.members] == ["node-1:0", "node-1:1"]


async def test_a_rule_that_is_off_names_the_overlay_and_reads_nothing(tmp_path):
    file = tmp_path / "rules" / "causes" / "power" / "power_brake.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("id: power_brake\ndisabled: true\n")
    source = MemorySource(gpu(FULL))
    found = await why_not(
        Engine(load_catalogue([tmp_path])), "power_brake", "node-1:0", source, at=AT
    )
    assert (found.outcome, found.disabled_by) == (Outcome.DISABLED, str(file))
    assert source.asked == []
    conforms(to_json(found), "rules-why-not")
    assert str(file) in plain.render(whynot.answer(found))


async def test_a_symptom_that_is_off_is_named_where_a_cause_goes_without_it(tmp_path):
    file = tmp_path / "rules" / "symptoms" / "power" / "power_brake_active.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("id: power_brake_active\ndisabled: true\n")
    ours = Engine(load_catalogue([tmp_path]))
    found = await why_not(ours, "power_brake", "node-1:0", MemorySource(gpu(FULL)), at=AT)
    assert found.goes_without == (f"power_brake_active ({file})",)


class Failing(MemorySource):
    """A server that refuses the query for the throttle mask."""

    async def select(self, selections: Sequence[Selection], *, at: float | None) -> Batch:
        batch = await super().select(selections, at=at)
        name = "DCGM_FI_DEV_CLOCKS_EVENT_REASONS"
        batch.series = [s for s in batch.series if s.name != name]
        batch.failed[name] = SourceError("memory answers HTTP 500", hint="look into its log")
        return batch


async def test_a_query_that_failed_is_not_taken_for_a_metric_that_is_not_exported():
    found = await why_not(engine(), "power_brake", "node-1:0", Failing(gpu(FULL)), at=AT)
    assert found.outcome is Outcome.UNKNOWN
    lacks = {lack.signal: lack for lack in part(found, "power_brake_active").lacks}
    assert lacks["throttle_reasons"].why == "its query failed: memory answers HTTP 500"
    assert lacks["throttle_reasons"].fix == "look into its log"


async def test_a_gpu_of_which_nothing_is_read_is_not_said_to_be_quiet():
    found = await why_not(engine(), "power_brake", "node-1:0", MemorySource([up(1)]), at=AT)
    assert found.outcome is Outcome.UNKNOWN
    assert found.says.startswith("It cannot be decided: ")


async def test_an_unknown_rule_and_target_are_one_line():
    with pytest.raises(UsageError, match="did you mean 'power_brake'"):
        await asked("power_brak")
    with pytest.raises(UsageError):
        await asked("power_brake", target="::")


async def test_every_rule_can_be_asked_about_and_says_the_same_each_time():
    catalogue = engine().catalogue
    for name in (*catalogue.causes, *catalogue.symptoms):
        first, second = await asked(name), await asked(name)
        assert json.render(whynot.answer(first)) == json.render(whynot.answer(second))
        assert plain.render(whynot.answer(first))
