"""The same question gets the same bytes, whoever asks, in whatever order, live or from a file."""

import numpy as np
import pytest

from engine.errors import UsageError
from engine.simulate import Fleet, Profile, demo_fleet


def test_two_fleets_of_one_seed_say_the_same() -> None:
    one, two = demo_fleet(3), demo_fleet(3)
    at = one.start + 1800.0
    assert "".join(one.openmetrics(at, at + 60.0)) == "".join(two.openmetrics(at, at + 60.0))
    for node in one.nodes:
        assert one.exposition(node, at) == two.exposition(node, at)
        assert one.node_exposition(node, at) == two.node_exposition(node, at)


def test_seeds_differ() -> None:
    one, two = demo_fleet(0), demo_fleet(1)
    assert one.exposition("node-0", one.start) != two.exposition("node-0", two.start)


def test_the_order_of_questions_does_not_matter() -> None:
    asked, fresh = demo_fleet(), demo_fleet()
    times = [fresh.start + s for s in (3000.0, 60.0, 1800.0, 100.0, 2990.0)]
    first = [asked.exposition("node-2", t) for t in times]
    assert first == [demo_fleet().exposition("node-2", t) for t in times]
    assert first[::-1] == [fresh.exposition("node-2", t) for t in reversed(times)]


def test_a_live_scrape_and_the_history_agree() -> None:
    fleet = Fleet(2, 4, profile=Profile(pods=False, host_label=""))
    at = fleet.start + 600.0
    scraped = set(fleet.exposition("node-1", at).splitlines())
    history = {
        line.rpartition(" ")[0].replace(',instance="node-1:9400",job="dcgm-exporter"', "")
        for line in "".join(fleet.openmetrics(at, at, node_exporter=False)).splitlines()
        if 'instance="node-1:9400"' in line and not line.startswith("up{")
    }
    assert history
    strip = ',instance="node-1:9400",job="dcgm-exporter"'
    assert history == {line for line in scraped if not line.startswith("#") and strip not in line}


def test_a_gpu_does_not_change_when_the_fleet_grows() -> None:
    small, large = Fleet(1, 4), Fleet(5, 4)
    assert small.exposition("node-0", small.start + 900.0) == large.exposition(
        "node-0", large.start + 900.0
    )


def test_an_exporter_repeats_its_last_collection() -> None:
    fleet = Fleet(1, 2, profile=Profile(collect_s=30.0))
    at = fleet.start + 300.0
    assert fleet.exposition("node-0", at) == fleet.exposition("node-0", at + 29.0)
    assert fleet.exposition("node-0", at) != fleet.exposition("node-0", at + 30.0)


@pytest.mark.parametrize("offset", [-1.0, -1e9, 31 * 86400.0])
def test_times_outside_the_simulation_are_refused_at_once(offset: float) -> None:
    fleet = Fleet(1, 1)
    with pytest.raises(UsageError, match="no readings at"):
        fleet.exposition("node-0", fleet.start + offset)


def test_history_times_are_what_was_asked_for() -> None:
    fleet = Fleet(1, 1)
    times, series = fleet.series(fleet.start, fleet.start + 100.0, 15.0)
    assert np.array_equal(times - fleet.start, np.arange(0.0, 91.0, 15.0))
    assert all(len(one.values) == len(times) for _, one in series)
