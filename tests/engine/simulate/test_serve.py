"""The exporters over HTTP."""

import aiohttp
import pytest

from engine.errors import UsageError
from engine.simulate import Fault, Fleet, Recorded, running_clock, serve_fleet


async def get(url: str) -> tuple[int, str, str]:
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return answer.status, answer.headers["Content-Type"], await answer.text()


async def test_each_node_has_a_listener_of_its_own() -> None:
    fleet = Fleet(3, 2)
    at = fleet.start + 600.0
    async with serve_fleet(fleet, clock=lambda: at) as served:
        assert len(set(served.urls())) == 3
        for node, url in zip(fleet.nodes, served.urls(), strict=True):
            status, kind, text = await get(url)
            assert status == 200
            assert kind.startswith("text/plain; version=0.0.4")
            assert text == fleet.exposition(node, at)
        for node, url in zip(fleet.nodes, served.urls("node-exporter"), strict=True):
            assert (await get(url))[2] == fleet.node_exposition(node, at)


async def test_targets_say_how_a_prometheus_would_know_them() -> None:
    async with serve_fleet(Fleet(2, 1), clock=lambda: 0.0) as served:
        assert [(t.node, t.job, t.instance, t.path) for t in served.targets] == [
            ("node-0", "dcgm-exporter", "node-0:9400", "/metrics"),
            ("node-1", "dcgm-exporter", "node-1:9400", "/metrics"),
            ("node-0", "node-exporter", "node-0:9100", "/node/metrics"),
            ("node-1", "node-exporter", "node-1:9100", "/node/metrics"),
        ]


async def test_nothing_listens_afterwards() -> None:
    async with serve_fleet(Fleet(1, 1), clock=lambda: 0.0) as served:
        (url,) = served.urls()
    with pytest.raises(aiohttp.ClientConnectorError):
        await get(url)


async def test_a_dead_exporter_and_a_time_out_of_range_are_errors_not_text() -> None:
    down = Fault("exporter_down", "node-0", 0.0)
    fleet = Fleet(2, 1, faults=(down,))
    async with serve_fleet(fleet, clock=lambda: fleet.start) as served:
        assert [(await get(url))[0] for url in served.urls()] == [503, 200]
    async with serve_fleet(fleet, clock=lambda: 0.0) as served:
        status, _, text = await get(served.urls()[1])
        assert status == 503
        assert "no readings at 0" in text


async def test_recorded_output_is_served_as_it_is() -> None:
    text = '# TYPE up gauge\nDCGM_FI_DEV_GPU_TEMP{gpu="0"} 61\r\n'
    async with serve_fleet(Recorded(text)) as served:
        status, _, answer = await get(served.urls()[0])
        assert (status, answer) == (200, text)
        assert (await get(served.urls("node-exporter")[0]))[0] == 503
    async with serve_fleet(Recorded({"a": text, "b": text})) as served:
        assert [t.node for t in served.targets[:2]] == ["a", "b"]


@pytest.mark.parametrize("nothing", ["", {}])
def test_an_empty_recording_is_refused(nothing: str | dict[str, str]) -> None:
    with pytest.raises(UsageError, match="no recorded exporter output"):
        Recorded(nothing)


def test_a_running_clock_starts_where_it_is_told_and_goes_on() -> None:
    clock = running_clock(1000.0)
    first, second = clock(), clock()
    assert 1000.0 <= first <= second < 1001.0
