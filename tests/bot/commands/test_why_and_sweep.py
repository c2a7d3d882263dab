"""The commands on the real engine, readings from a file."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from bot.answer import Code, Heading, Level, Steps, text_of
from bot.commands import sweep, why
from bot.render import plain
from engine.diagnosis import Engine
from engine.errors import UsageError
from engine.model import Entity, Kind, Verdict
from engine.sources.exposition import FileSource
from tests.support import answers, packaged

NAMES = {
    "DCGM_FI_DEV_SM_CLOCK": 1900,
    "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": 0,
    "DCGM_FI_DEV_GPU_UTIL": 99,
    "DCGM_FI_DEV_GPU_TEMP": 55,
    "DCGM_FI_DEV_POWER_USAGE": 450,
}


@pytest.fixture(scope="module")
def engine():
    return Engine(packaged.catalogue())


@pytest.fixture
def source(tmp_path):
    lines = []
    for gpu in range(4):
        labels = f'gpu="{gpu}",UUID="GPU-{gpu:08}-0000-4000-8000-000000000000",Hostname="node-9",modelName="NVIDIA H100 80GB HBM3"'
        readings = dict(NAMES)
        if gpu == 2:
            readings |= {"DCGM_FI_DEV_CLOCKS_EVENT_REASONS": 136, "DCGM_FI_DEV_SM_CLOCK": 345}
        lines += [f"{name}{{{labels}}} {value}\n" for name, value in readings.items()]
    file = tmp_path / "metrics.prom"
    file.write_text("".join(lines))
    return FileSource([str(file)])


async def test_why_names_the_cause_in_its_first_line(engine, source):
    answer = await why.run("node-9:2", engine=engine, source=source, at=None, window_s=900)
    first = plain.render(answer).splitlines()[0]
    assert "is degraded: " in first
    assert "(power_brake, critical, " in first
    assert answer.level is Level.CRITICAL
    assert answer.data["verdict"] == "degraded"


async def test_healthy_says_over_what_and_what_was_not_seen(engine, source):
    answer = await why.run("node-9:0", engine=engine, source=source, at=None, window_s=900)
    text = plain.render(answer)
    assert "node-9:0 is healthy in the samples given, which have no times: none of the " in text
    assert "could not be checked (not seen: " in text
    assert "Add to the counters file of dcgm-exporter" in text


async def test_some_of_the_missing_readings_are_listed_and_all_if_wanted(engine, source):
    short = await why.run("node-9:0", engine=engine, source=source, at=None, window_s=900)
    whole = await why.run(
        "node-9:0", engine=engine, source=source, at=None, window_s=900, everything=True
    )
    assert short.data == whole.data
    assert len(unseen(short)) == 5
    assert unseen(whole)[:5] == unseen(short)
    assert len(unseen(whole)) > 10
    told = re.search(
        r"^(\d+) more readings are missing; .* --all lists", plain.render(short), re.MULTILINE
    )
    listed = sum(len(signals_of(point)) for point in unseen(whole)[5:])
    assert int(told[1]) == listed
    assert "--all" not in plain.render(whole)
    lines = code_lines(short)
    assert 0 < len(lines) < len(code_lines(whole))
    assert set(lines) <= set(code_lines(whole))


async def test_a_sweep_lists_as_many_and_says_less_of_each_incident(engine, source):
    short = await sweep.run(engine=engine, source=source, at=None, window_s=900)
    whole = await sweep.run(engine=engine, source=source, at=None, window_s=900, everything=True)
    assert short.data == whole.data
    assert len(unseen(short)) == 5 < len(unseen(whole))
    assert len(plain.render(short)) < len(plain.render(whole))


def test_a_sweep_that_found_nothing_speaks_of_no_samples():
    empty = replace(answers.SWEEPS["empty"], at=None, window_s=900.0)
    text = plain.render(sweep.answer(empty))
    assert "window: 15 min" in text
    assert "in the samples given" not in text
    assert "--at" in text


def unseen(answer):
    """Return the points under "Not seen"."""
    blocks = iter(answer.blocks)
    for block in blocks:
        if isinstance(block, Heading) and text_of(block.line) == "Not seen":
            return next(blocks).items
    return ()


def signals_of(point):
    """Return the readings that a point names."""
    named = point.line[0].text
    head, _, more = named.partition(" and ")
    return [*head.split(", "), *([""] * int(more.split()[0]) if more else [])]


def code_lines(answer):
    return [line for b in answer.blocks if isinstance(b, Code) for line in b.text.splitlines()]


async def test_a_target_that_is_not_there_is_an_error_or_unknown(engine, source):
    with pytest.raises(UsageError):
        await why.run("node-8:0", engine=engine, source=source, at=None, window_s=900)


async def test_sweep_finds_the_sick_one(engine, source):
    answer = await sweep.run(engine=engine, source=source, at=None, window_s=900)
    assert answer.data["incidents"][0]["cause"] == "power_brake"
    assert answer.data["checked"]["gpu"] == 4


@pytest.mark.parametrize(
    ("entity", "command"),
    [
        (Entity(Kind.GPU, "node-3:5", host="node-3", gpu=5), "gpuwhy why node-3:5"),
        (Entity(Kind.NODE, "node-3", "north", host="node-3"), "gpuwhy why north::node-3"),
        (Entity(Kind.GPU, "GPU 5", gpu=5), "gpuwhy why 'GPU 5'"),
        (Entity(Kind.SERVICE, "svc/a;id"), "gpuwhy why 'svc/a;id'"),
        (Entity(Kind.NODE, "x; rm -rf /", host="x; rm -rf /"), None),
        (Entity(Kind.NODE, "--help", host="--help"), None),
        (Entity(Kind.NODE, "", host=""), None),
    ],
)
def test_the_question_that_a_sweep_offers_can_be_pasted(entity, command):
    incident = answers.SWEEPS["incidents"].incidents[0]
    found = replace(incident, diagnosis=replace(incident.diagnosis, entity=entity))
    answer = sweep.answer(replace(answers.SWEEPS["incidents"], incidents=(found,)))
    steps = [s for block in answer.blocks if isinstance(block, Steps) for s in block.steps]
    asked = [s.command for s in steps if (s.command or "").startswith("gpuwhy")]
    assert asked == ([command] if command else [])


def test_levels_of_a_sweep():
    assert sweep.answer(answers.SWEEPS["incidents"]).level is Level.CRITICAL
    assert sweep.answer(answers.SWEEPS["quiet"]).level is Level.CLEAR
    assert sweep.answer(answers.SWEEPS["empty"]).level is Level.UNKNOWN


def test_levels_of_why():
    def level(verdict, **changes):
        return why.answer(answers.why(verdict, **changes)).level

    assert level(Verdict.DEGRADED) is Level.CRITICAL
    assert level(Verdict.DEGRADED, diagnoses=(answers.CAPPED,)) is Level.LOW
    assert level(Verdict.UNKNOWN, notes=(answers.OLD_XID,)) is Level.UNKNOWN
    assert level(Verdict.HEALTHY, notes=(answers.OLD_XID,)) is Level.INFO
    assert level(Verdict.IDLE) is Level.CLEAR


def test_notes_of_one_cause_are_one_block_and_all_of_them_if_wanted():
    gpus = [replace(answers.GPU, name=f"node-3:{i}", gpu=i, uuid=f"GPU-{i}") for i in range(5)]
    alike = tuple(replace(answers.CAPPED, entity=gpu) for gpu in gpus)
    found = answers.why(Verdict.HEALTHY, notes=(*alike, answers.OLD_XID), target=answers.NODE)
    short = plain.render(why.answer(found))
    assert short.count("Worth knowing") == 2
    assert "Worth knowing, 5 times: " in short
    assert " on node-3:0, node-3:1 and 3 more (" in short
    assert "Shown for node-3:0; on the command line --all shows each." in short
    assert plain.render(why.answer(found, everything=True)).count("Worth knowing: ") == 6
    assert len(why.answer(found).data["notes"]) == 6


def test_what_is_only_worth_knowing_is_counted_apart():
    def coverage(verdict, **changes):
        text = plain.render(why.answer(answers.why(verdict, **changes)))
        return next(said for said in text.splitlines() if said.startswith("coverage:"))

    assert " checked, 0 found, 1 note, " in coverage(Verdict.HEALTHY, notes=(answers.CAPPED,))
    assert " checked, 1 found, 1 note, " in coverage(Verdict.DEGRADED, notes=(answers.OLD_XID,))
    assert " checked, 1 found, 20 " in coverage(Verdict.DEGRADED)
