"""A served model is slow: its queue, its KV cache, its prompts, its CPU side, or a sick GPU beneath.

``tests/data/services/services.yaml`` says what is read over a quarter of an hour; it becomes a metrics
file with times. ``engines`` are read with ``labels`` (model name and engine, if not given), ``front``
is of the whole instance, ``gpus`` are the signals of eight GPUs of its host.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from engine.diagnosis.ruletest import readings
from engine.model import Effect
from engine.sources import FileSource
from tests.support.readings import catalogue, causes, engine, notes
from tests.support.yamlfiles import parse

FILE = Path(__file__).parent.parent / "data" / "services" / "services.yaml"
SITUATIONS = [
    pytest.param(one, id=one["name"])
    for one in parse(FILE.read_text(encoding="utf-8"))["situations"]
]
# Metrics that were pasted, as `gpuwhy read` must understand them; Ray's names are for it alone.
MODEL = re.compile(r'^vllm:.*?[{,]model(?:_name)?="([^"]+)"', re.MULTILINE)
PASTED = [
    pytest.param(one, id=one.get("id") or one["name"])
    for path, key in (("cases/vllm_metrics.yaml", "cases"), ("variants/serving.yaml", "variants"))
    for one in parse((FILE.parent.parent / path).read_text(encoding="utf-8"))[key]
    if MODEL.search(one["input"])
]
INSTANCE = 'instance="node-3:8000"'
GPUS = 8


def exposition(situation: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a metrics file, one family after the other."""
    families: dict[str, list[str]] = {}
    for number, given in enumerate(situation["engines"]):
        own = situation.get("labels", {"model_name": "llama-70b", "engine": number})
        labels = [INSTANCE, *(f'{name}="{value}"' for name, value in own.items())]
        _add(families, given, labels)
    _add(families, situation.get("front", {}), [INSTANCE])
    for gpu in range(GPUS if "gpus" in situation else 0):
        uuid = f"GPU-{gpu:08x}-0000-4000-8000-000000000000"
        labels = [f'gpu="{gpu}"', f'UUID="{uuid}"', 'modelName="NVIDIA H100 80GB HBM3"']
        given = {
            catalogue().signals[signal].spellings[0].name: value
            for signal, value in situation["gpus"].items()
        }
        _add(families, given, [*labels, 'Hostname="node-3"'])
    for lines in families.values():
        yield from lines
    yield "# EOF\n"


def _add(families: dict[str, list[str]], given: Mapping[str, Any], labels: list[str]) -> None:
    for series, value in given.items():
        name, _, more = series.removesuffix("}").partition("{")
        every = ",".join([*labels, *([more] if more else [])])
        times, values = readings(value)
        families.setdefault(name, []).extend(
            f"{name}{{{every}}} {v:.12g} {t:.3f}\n" for t, v in zip(times, values, strict=True)
        )


@pytest.mark.parametrize("situation", SITUATIONS)
async def test_the_reason_is_named_first(tmp_path: Path, situation: Mapping[str, Any]) -> None:
    file = tmp_path / "service.om"
    file.write_text("".join(exposition(situation)), encoding="utf-8")
    answer = await engine().why("svc/llama-70b", FileSource([file]))
    expect, found = situation["expect"], causes(answer)
    beneath = set(_beneath(e for d in answer.diagnoses for e in d.effects))
    assert answer.verdict.value == expect["verdict"], (found, notes(answer))
    assert found[:1] == ([expect["first"]] if "first" in expect else [])
    assert set(expect.get("beneath", ())) <= beneath - set(found)
    assert not set(expect.get("never", ())) & {*found, *beneath}
    assert set(expect.get("notes", ())) <= set(notes(answer))


def _beneath(effects: Iterable[Effect]) -> list[str]:
    return [name for e in effects for name in (e.cause, *_beneath(e.effects))]


async def test_what_any_process_exports_makes_no_service(tmp_path: Path) -> None:
    file = tmp_path / "host.om"
    front = {"process_cpu_seconds_total": {"from": 0, "to": 890}, "process_start_time_seconds": 1}
    gpus = {"gr_engine_active": 0.97, "sm_clock": 1950, "gpu_temp": 60, "power_usage": 500}
    text = "".join(exposition({"engines": [], "front": front, "gpus": gpus}))
    file.write_text(text, encoding="utf-8")
    answer = await engine().why("node-3", FileSource([file]))
    assert causes(answer) == []
    assert not {"api_server_cpu_bound", "cold_start"} & set(notes(answer))


@pytest.mark.parametrize("case", PASTED)
async def test_a_question_does_not_contradict_what_pasted_metrics_show(
    case: Mapping[str, Any],
) -> None:
    text, expected = case["input"], case.get("expected", case)
    models = dict.fromkeys(MODEL.findall(text))
    found = set()
    for model in models:
        source = FileSource(["-"], stdin=BytesIO(text.encode()))
        try:
            found |= set(causes(await engine().why(f"svc/{model}", source))[:1])
        finally:
            await source.aclose()
    assert not found - set(expected.get("causes", found))
    assert not found & set(expected.get("causes_not", ()))
