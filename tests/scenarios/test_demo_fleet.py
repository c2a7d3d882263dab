"""The demonstration fleet in real servers: every planted fault is named first, nothing else is.

64 GPUs, ten faults, red herrings, exporters that differ. The same readings lie in Prometheus, in
VictoriaMetrics and in an OpenMetrics file; the answers must not depend on which one is asked.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from engine.model import Sweep, Verdict, Why, to_json
from engine.simulate import DEMO_SPAN_S, demo_fleet
from engine.sources import FileSource, PrometheusConfig, PrometheusSource, Source
from tests.support.readings import causes, engine, incidents, notes
from tests.support.servers import (
    import_openmetrics,
    load_openmetrics,
    start_prometheus,
    start_victoriametrics,
)

FLEET = demo_fleet()
AT = FLEET.start + DEMO_SPAN_S
# A little more than the window, so that an old Xid can be told from a new one.
HISTORY_S = 1200.0
TRUTH = {gpu: planted.cause for planted in FLEET.planted for gpu in planted.members}
HERRINGS = ("node-0:2", "node-0:3", "node-0:4", "node-0:5", "node-2:1", "node-6:1")
SERVERS = ("prometheus", "victoriametrics")


@pytest.fixture(scope="session")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("demo") / "history.om"
    with file.open("w") as out:
        out.writelines(FLEET.openmetrics(AT - HISTORY_S, AT))
    return file


@pytest.fixture(scope="session")
def urls(history: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    data = tmp_path_factory.mktemp("prometheus")
    load_openmetrics(history, data)
    folder = tmp_path_factory.mktemp("victoriametrics")
    with start_prometheus(data) as prometheus, start_victoriametrics(folder) as victoria:
        import_openmetrics(victoria, history)
        yield {"prometheus": prometheus.url, "victoriametrics": victoria.url}


@contextlib.asynccontextmanager
async def server(url: str) -> AsyncIterator[Source]:
    source = PrometheusSource(PrometheusConfig(url))
    try:
        yield source
    finally:
        await source.aclose()


async def ask(url: str, *targets: str) -> dict[str, Why]:
    async with server(url) as source:
        return {t: await engine().why(t, source, at=AT) for t in targets}


def instant(url: str, query: str) -> list[Any]:
    """Return what a server answers to an instant query, as a person would send it."""
    asked = {"query": query, "time": str(AT)}
    answer = requests.get(f"{url}/api/v1/query", params=asked, timeout=10).json()
    assert answer["status"] == "success", query
    found: list[Any] = answer["data"]["result"]
    return found


def comparable(answer: Why | Sweep) -> dict[str, Any]:
    """Return an answer as JSON without what may differ between sources: how it was fetched."""
    out: dict[str, Any] = to_json(answer)
    del out["queries"], out["waves"]
    return out


@pytest.mark.parametrize("kind", SERVERS)
async def test_why_names_every_planted_fault_first(urls, kind):
    answers = await ask(urls[kind], *TRUTH)
    assert {gpu: causes(a)[:1] for gpu, a in answers.items()} == {g: [c] for g, c in TRUTH.items()}
    assert all(a.verdict is Verdict.DEGRADED for a in answers.values())
    assert max(a.waves for a in answers.values()) <= 3


@pytest.mark.parametrize("kind", SERVERS)
async def test_healthy_gpus_have_no_fault(urls, kind):
    answers = await ask(urls[kind], *FLEET.healthy)
    assert {gpu: causes(a) for gpu, a in answers.items() if causes(a)} == {}
    verdicts = {gpu: a.verdict for gpu, a in answers.items()}
    idle = {"node-0:4", *(f"node-6:{k}" for k in range(8))}
    assert {g for g, v in verdicts.items() if v is Verdict.IDLE} == idle
    assert {v for g, v in verdicts.items() if g not in idle} == {Verdict.HEALTHY}


async def test_red_herrings_are_notes_at_most(urls):
    answers = await ask(urls["prometheus"], *HERRINGS)
    assert "xid_history" in notes(answers["node-0:2"])
    assert "not changed for at least 20 min" in answers["node-0:2"].notes[0].says
    assert notes(answers["node-6:1"]) == ["idle"]
    assert notes(answers["node-0:4"]) == ["idle"]
    for gpu in ("node-0:5", "node-2:1", "node-0:3"):
        assert answers[gpu].verdict is Verdict.HEALTHY


async def test_the_stock_exporter_is_healthy_with_the_rest_named(urls):
    answer = (await ask(urls["prometheus"], "node-7:2"))["node-7:2"]
    assert answer.verdict is Verdict.HEALTHY
    lines = {u.needs: u.fix for u in answer.unknown}
    assert lines["throttle_reasons"].startswith("DCGM_FI_DEV_CLOCKS_EVENT_REASONS, gauge, ")


@pytest.mark.parametrize("kind", [*SERVERS, "file"])
async def test_sweep_names_every_planted_fault_and_nothing_else(urls, history, kind):
    if kind == "file":
        found = await engine().sweep(FileSource([history]), at=AT)
    else:
        async with server(urls[kind]) as source:
            found = await engine().sweep(source, at=AT)
    wanted = {(p.cause, p.entity): list(p.members) for p in FLEET.planted}
    assert incidents(found) == wanted
    assert found.checked == {"gpu": 64, "node": 8}
    assert found.verdicts == {"degraded": 17, "healthy": 38, "idle": 9, "unknown": 0}


async def test_prometheus_and_victoriametrics_give_the_same_answers(urls):
    targets = (*FLEET.gpus, *FLEET.nodes)
    one = await ask(urls["prometheus"], *targets)
    other = await ask(urls["victoriametrics"], *targets)
    for target in targets:
        assert comparable(one[target]) == comparable(other[target]), target


async def test_a_file_gives_the_same_answers_as_a_server(urls, history):
    source = FileSource([history])
    targets = ("node-5:4", "node-1", FLEET.uuid("node-4:7"))
    served = await ask(urls["prometheus"], *targets)
    for target in targets:
        answer = await engine().why(target, source, at=AT)
        assert comparable(answer) == comparable(served[target]), target
    async with server(urls["prometheus"]) as other:
        served_sweep = await engine().sweep(other, at=AT)
    assert comparable(await engine().sweep(source, at=AT)) == comparable(served_sweep)


async def test_the_queries_shown_as_evidence_find_what_they_say(urls):
    """Every query of an answer, sent as it stands, returns readings."""
    answer = (await ask(urls["prometheus"], "node-3:5"))["node-3:5"]
    for one in answer.diagnoses[0].evidence:
        assert instant(urls["prometheus"], one.query), one.query
