"""The same samples from real Prometheus, real VictoriaMetrics, and the file they were loaded from."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.samples import Batch, Matcher, Selection
from engine.sources import FileSource, PrometheusConfig, PrometheusSource, Source
from tests.support.servers import (
    Server,
    import_openmetrics,
    load_openmetrics,
    start_prometheus,
    start_victoriametrics,
)

AT = 1_764_432_000.0
NAMES = ("DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_XID_ERRORS", "DCGM_FI_DEV_POWER_USAGE")


def fleet() -> str:
    """2 nodes of 2 GPUs, an hour of samples every 15 s, some on the very edges of windows."""
    rng = random.Random(7)
    lines = []
    for name in (*NAMES, "node_load1"):
        lines.append(f"# TYPE {name} gauge")
        for node in ("node-1", "node-3"):
            for gpu in ("0", "1"):
                head = (
                    f'{name}{{Hostname="{node}",gpu="{gpu}",modelName="NVIDIA \\"H100\\" a\\\\b"}}'
                )
                # gpu 1 of node-1 stopped 20 minutes ago.
                last = AT - 1200 if (node, gpu) == ("node-1", "1") else AT + 300
                for k in range(240):
                    stamp = AT + 300 - 15 * (239 - k)
                    if stamp <= last:
                        value = rng.choice(["0", "1980", f"{rng.uniform(0, 700):.3f}", "+Inf"])
                        lines.append(f"{head} {value} {stamp:.3f}")
                if gpu == "0":
                    lines.append(f"{head} 5 {AT + 301.123:.3f}")
    return "\n".join([*lines, "# EOF"]) + "\n"


@pytest.fixture(scope="module")
def text() -> str:
    return fleet()


@pytest.fixture(scope="module")
def prometheus(text: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    data = tmp_path_factory.mktemp("prometheus")
    load_openmetrics(text, data)
    with start_prometheus(data) as server:
        yield server


@pytest.fixture(scope="module")
def victoria(text: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with start_victoriametrics(tmp_path_factory.mktemp("victoria")) as server:
        import_openmetrics(server, text)
        yield server


@pytest.fixture
async def sources(text: str, prometheus: Server, victoria: Server, tmp_path: Path):
    path = tmp_path / "metrics.txt"
    path.write_text(text)
    opened: list[Source] = [
        FileSource([path]),
        PrometheusSource(PrometheusConfig(prometheus.url)),
        PrometheusSource(PrometheusConfig(victoria.url)),
    ]
    yield opened
    for source in opened:
        await source.aclose()


def plain(batch: Batch) -> list[object]:
    return [(s.name, dict(s.labels), s.ts.tolist(), s.values.tolist()) for s in batch.series]


@pytest.mark.parametrize("at", [AT, AT + 7.5, AT - 0.001, AT + 301.123, AT + 300.0, AT - 2000])
@pytest.mark.parametrize("window_s", [300.0, 900.0, 1207.5, 15.0])
async def test_same_samples_on_every_source(
    sources: list[Source], at: float, window_s: float
) -> None:
    wave = [
        Selection(NAMES, (Matcher("Hostname", "=", "node-3"),), window_s),
        Selection(("node_load1",), (Matcher("gpu", "=~", "0|7"),), window_s),
    ]
    file, *servers = [plain(await s.select(wave, at=at)) for s in sources]
    assert len(file) == 3 * 2 + 2
    assert servers == [file, file]


async def test_both_ends_of_the_window_belong_to_it(sources: list[Source]) -> None:
    wave = [Selection(NAMES[:1], (Matcher("Hostname", "=", "node-3"),), 300.0)]
    for source in sources:
        batch = await source.select(wave, at=AT)
        for one in batch.series:
            assert (one.ts[0], one.ts[-1], len(one.ts)) == (AT - 300, AT, 21)


async def test_a_series_in_two_selections_comes_once_with_the_longer_window(
    sources: list[Source],
) -> None:
    wave = [Selection(NAMES[:1], (), 60.0), Selection(NAMES, (), 600.0), Selection(NAMES, (), 30.0)]
    file, *servers = [await s.select(wave, at=AT) for s in sources]
    assert [len(s.ts) for s in file.series] == [41] * 9
    assert [plain(s) for s in servers] == [plain(file)] * 2
    assert [s.queries for s in servers] == [3, 3]


async def test_label_sets_agree_and_follow_the_window(sources: list[Source]) -> None:
    for window_s, gpus in ((900.0, 3), (1800.0, 4)):
        for source in sources:
            sets = await source.label_sets(
                NAMES, ("Hostname", "gpu", "absent"), at=AT, window_s=window_s
            )
            assert len(sets) == gpus
            assert sets[0] == {"Hostname": "node-1", "gpu": "0"}
            assert sets == sorted(sets, key=lambda s: (s["Hostname"], s["gpu"]))


async def test_label_sets_can_list_metric_names(sources: list[Source]) -> None:
    for source in sources:
        sets = await source.label_sets(
            (), ("__name__",), at=AT, window_s=60, matchers=[Matcher("Hostname", "=~", "node-.*")]
        )
        assert [s["__name__"] for s in sets] == sorted((*NAMES, "node_load1"))


async def test_nothing_found_is_no_error(sources: list[Source]) -> None:
    for source in sources:
        batch = await source.select([Selection(("no_such_metric",))], at=AT)
        assert batch.series == []
        assert batch.at == AT
        assert batch.warnings == []
        assert await source.label_sets(("no_such_metric",), ("gpu",), at=AT, window_s=60) == []


async def test_matchers_mean_the_same_everywhere(sources: list[Source]) -> None:
    for matcher, hosts in (
        (Matcher("Hostname", "!=", "node-1"), {"node-3"}),
        (Matcher("Hostname", "!~", "node-[12]"), {"node-3"}),
        (Matcher("Hostname", "=~", "node"), set()),
        (Matcher("modelName", "=", 'NVIDIA "H100" a\\b'), {"node-1", "node-3"}),
        (Matcher("missing", "=", ""), {"node-1", "node-3"}),
        (Matcher("missing", "!=", ""), set()),
        (Matcher("modelName", "=~", 'NVIDIA "H\\d+" a\\\\b'), {"node-1", "node-3"}),
    ):
        for source in sources:
            batch = await source.select([Selection(NAMES, (matcher,))], at=AT)
            assert {s.labels["Hostname"] for s in batch.series} == hosts, (matcher, source.name)


async def test_many_names_are_split_over_queries(sources: list[Source]) -> None:
    many = tuple(f"DCGM_FI_DEV_METRIC_THAT_NOBODY_EXPORTS_{k}" for k in range(600))
    wave = [Selection((*many[:300], *NAMES, *many[300:]), (Matcher("gpu", "=", "0"),), 60.0)]
    file, *servers = [await s.select(wave, at=AT) for s in sources]
    assert len(file.series) == 6
    for batch in servers:
        assert plain(batch) == plain(file)
        assert batch.queries == 3


async def test_now_is_now(tmp_path: Path) -> None:
    stamp = round(time.time(), 3)
    text = f'# TYPE up gauge\nup{{job="a"}} 1 {stamp - 2:.3f}\nup{{job="a"}} 0 {stamp - 1:.3f}\n# EOF\n'
    with start_victoriametrics(tmp_path) as server:
        import_openmetrics(server, text)
        source = PrometheusSource(PrometheusConfig(server.url))
        batch = await source.select([Selection(("up",))], at=None)
        await source.aclose()
    assert batch.at is not None
    assert math.isclose(batch.at, stamp, abs_tol=20)
    assert [s.values.tolist() for s in batch.series] == [[1.0, 0.0]]
