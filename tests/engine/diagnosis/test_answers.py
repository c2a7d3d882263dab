"""The shape of an answer as others rely on it, and that the same readings give the same bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.diagnosis import Engine
from engine.model import Class, Confidence, Severity, Verdict, to_json
from tests.support.memory import MemorySource
from tests.support.readings import AT, FULL, STOCK, catalogue, engine, gpu, node

BRAKE = {**FULL, "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": 0x88, "DCGM_FI_DEV_SM_CLOCK": 990}
OLD_XID = {**STOCK, "DCGM_FI_DEV_XID_ERRORS": 31}

WHY = [
    "schema", "target", "at", "window_s", "verdict", "diagnoses", "notes", "unknown", "coverage",
    "engine", "queries", "waves", "warnings", "members",
    "changes",
]  # fmt: skip
DIAGNOSIS = [
    "cause", "title", "class", "entity", "severity", "confidence", "says", "evidence", "against",
    "effects", "alternatives", "next", "since", "rule", "references",
]  # fmt: skip
EVIDENCE = [
    "signal", "says", "value", "unit", "op", "threshold", "window_s", "query", "source", "entity",
]  # fmt: skip
STEP = ["do", "command", "argv", "risk", "capture"]
SWEEP = [
    "schema", "at", "window_s", "incidents", "checked", "verdicts", "unknown", "engine", "queries",
    "waves", "warnings", "unseen",
]  # fmt: skip


async def answer_to(series, target="node-1:0") -> dict[str, Any]:
    found = await engine().why(target, MemorySource(series), at=AT)
    return json.loads(json.dumps(to_json(found)))


def evidence(answer: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for one in answer["diagnoses"] + answer["notes"]:
        yield from one["evidence"] + one["against"]


async def test_a_degraded_answer_has_the_keys_of_the_contract_in_its_order():
    answer = await answer_to(node(BRAKE))
    assert list(answer) == WHY
    assert answer["schema"] == "gpuwhy/why/1"
    assert (answer["verdict"], answer["at"], answer["window_s"]) == ("degraded", AT, 900.0)
    first = answer["diagnoses"][0]
    assert list(first) == DIAGNOSIS
    assert (first["cause"], first["class"], first["rule"]) == (
        "power_brake",
        "fault",
        "power_brake@1",
    )
    assert first["entity"] == {"kind": "node", "name": "node-1", "host": "node-1"}
    assert all(list(e) == EVIDENCE for e in first["evidence"])
    assert all(list(s) == STEP for s in first["next"])
    assert list(answer["coverage"]) == ["rules", "checked", "fired", "unseen"]
    assert list(answer["engine"]) == ["version", "rules", "inference"]
    assert answer["engine"]["inference"] == "durable_rules"


async def test_a_healthy_answer_has_the_same_keys():
    answer = await answer_to(gpu(OLD_XID))
    assert list(answer) == WHY
    assert (answer["verdict"], answer["diagnoses"]) == ("healthy", [])
    assert list(answer["notes"][0]) == DIAGNOSIS
    assert answer["notes"][0]["class"] == "benign"
    assert all(list(u) == ["cause", "needs", "why", "fix", "blocks"] for u in answer["unknown"])
    assert all(u["fix"] for u in answer["unknown"])


async def test_entities_leave_out_what_is_not_known():
    answer = await answer_to(gpu(FULL))
    assert list(answer["target"]) == ["kind", "name", "host", "gpu", "uuid", "pci", "model"]


async def test_a_sweep_has_the_keys_of_the_contract_in_its_order():
    found = await engine().sweep(MemorySource(node(BRAKE)), at=AT)
    answer = json.loads(json.dumps(to_json(found)))
    assert list(answer) == SWEEP
    assert list(answer["incidents"][0]) == [*DIAGNOSIS, "members"]


@pytest.mark.parametrize("values", [BRAKE, OLD_XID])
async def test_all_evidence_has_a_unit_a_query_and_the_source_of_its_threshold(values):
    answer = await answer_to(node(values))
    found = list(evidence(answer))
    assert found
    for one in found:
        assert one["says"], one
        assert one["source"], one
        assert one["query"].count("{") == one["query"].count("}") >= 1, one
        assert one["entity"]["host"] == "node-1"
        assert isinstance(one["unit"], str)
        assert one["signal"] in catalogue().signals


async def test_every_unit_of_the_signals_is_written_out():
    """A number never stands without its unit, in evidence and in sentences."""
    hot = {**FULL, "DCGM_FI_DEV_GPU_TEMP": 91, "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": 0x48}
    sick = gpu({**hot, "DCGM_FI_DEV_SM_CLOCK": 795})
    answer = await answer_to(sick + [s for s in node(FULL) if s.labels["gpu"] != "0"])
    text = answer["diagnoses"][0]["says"]
    assert "91 °C" in text
    assert "795 MHz" in text


async def test_words_are_those_of_the_contract():
    answer = await answer_to(node(BRAKE))
    for one in answer["diagnoses"] + answer["notes"]:
        assert one["class"] in {*Class}
        assert one["severity"] in {*Severity}
        assert one["confidence"] in {*Confidence}
        assert {s["risk"] for s in one["next"]} <= {"none", "disturbs", "disrupts"}
        for step in one["next"]:
            assert (step["command"] is None) == (step["argv"] is None)
    assert answer["verdict"] in {*Verdict}


@pytest.mark.parametrize(
    ("target", "waves"), [("node-1:0", 2), ("node-1", 2), ("GPU-0000", 2), ("pod/ml/train-0", 2)]
)
async def test_at_most_three_waves_and_the_queries_are_counted(target, waves):
    source = MemorySource(gpu(FULL, uuid="GPU-0000-1", pod="train-0", namespace="ml"))
    found = await engine().why(target, source, at=AT)
    assert found.waves == waves == len(source.asked)
    assert found.queries == sum(len(wave) for wave in source.asked)


# --- the same readings, the same bytes


async def bytes_of(series, target, one=None):
    found = await (one or engine()).why(target, MemorySource(series), at=AT)
    return json.dumps(to_json(found))


async def test_an_answer_repeats_to_the_byte():
    series = node(BRAKE)
    first = await bytes_of(series, "node-1")
    assert first == await bytes_of(series, "node-1")
    assert first == await bytes_of(series, "node-1", Engine(catalogue()))


async def test_both_inferences_give_the_same_answer():
    for values in (BRAKE, OLD_XID, FULL):
        durable = json.loads(await bytes_of(node(values), "node-1"))
        plain = Engine(catalogue(), inference="reference")
        reference = json.loads(await bytes_of(node(values), "node-1", plain))
        assert durable.pop("engine")["inference"] == "durable_rules"
        assert reference.pop("engine")["inference"] == "reference"
        assert durable == reference


class Shuffled(MemorySource):
    """A server that answers in the order it likes."""

    def __init__(self, series, order):
        super().__init__(series)
        self.order = order

    async def select(self, selections, *, at):
        batch = await super().select(selections, at=at)
        self.order.shuffle(batch.series)
        return batch


@given(order=st.randoms(use_true_random=False), target=st.sampled_from(["node-1:3", "node-1"]))
@settings(max_examples=25, deadline=None)
async def test_the_order_of_series_does_not_matter(order, target):
    hot = {**FULL, "DCGM_FI_DEV_GPU_TEMP": 91, "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": 0x48}
    series = gpu(hot, index=3, pod="b") + gpu(FULL, index=3, pod="a")
    series += [s for s in node(OLD_XID, gpus=4) if s.labels["gpu"] != "3"]
    found = await engine().why(target, Shuffled(series, order), at=AT)
    assert json.dumps(to_json(found)) == await bytes_of(series, target)
