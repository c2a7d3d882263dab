"""Judging many GPUs at once, and asking for many hosts at once, changes no answer."""

import re

import pytest

from engine.diagnosis import Engine
from engine.diagnosis.byhost import host_matchers, portions
from engine.diagnosis.judge import Judge
from engine.samples import Batch, RawSeries
from engine.signals import columns, hostreadings
from engine.signals.labels import locate
from engine.signals.normalise import build_frame
from engine.simulate import FAULTS, Fault, Fleet
from tests.support import packaged


@pytest.fixture(scope="module")
def judge():
    return Judge(packaged.catalogue())


def fleet_batch(nodes=4):
    kinds = [name for name, effect in FAULTS.items() if not effect.node]
    start = Fleet(nodes=1).start + 3000.0
    faults = [Fault(kinds[n], f"node-{n}:{n}", start) for n in range(nodes)]
    fleet = Fleet(nodes=nodes, gpus=8, faults=faults)
    at = start + 600.0
    times, named = fleet.series(at - 900.0, at, 30.0)
    series = [
        RawSeries(name, one.labels, times[one.present()], one.values[one.present()])
        for name, one in named
        if one.present().any()
    ]
    return Batch(series, at, 1)


def test_a_gpu_is_told_the_same_alone_and_among_many(judge):
    batch = fleet_batch()
    frame = build_frame(batch, judge.catalogue, at=batch.at, window_s=900.0).frame
    seen = judge.observe(frame)
    states = judge.states(seen)
    assert not seen.few
    for i in range(0, len(frame), 3):
        alone = judge.observe(frame, [i])
        assert alone.few
        assert judge.judge(alone, i, judge.states(alone)) == judge.judge(seen, i, states)


def test_columns_do_not_depend_on_how_many_samples_are_worked_on_together(judge, monkeypatch):
    batch = fleet_batch()
    whole = build_frame(batch, judge.catalogue, at=batch.at, window_s=900.0).frame
    monkeypatch.setattr(columns, "TOGETHER", 1)
    monkeypatch.setattr(hostreadings, "TOGETHER", 1)
    parts = build_frame(batch, judge.catalogue, at=batch.at, window_s=900.0).frame
    assert list(parts.columns) == list(whole.columns)
    for name, column in whole.columns.items():
        for part in ("ts", "values", "offsets"):
            assert (getattr(parts.columns[name], part) == getattr(column, part)).all(), name
    assert dict(parts.origins) == dict(whole.origins)


def matched(matchers, labels):
    for one in matchers:
        value = labels.get(one.label, "")
        hit = re.fullmatch(one.value, value) if "~" in one.op else one.value == value
        if bool(hit) is one.op.startswith("!"):
            return False
    return True


def test_every_host_of_a_long_list_is_asked_for_once():
    hosts = [f"gpu-{n}.rack-{n % 7}.dc1.example.com" for n in range(300)]
    some = list(portions(hosts))
    assert [host for portion in some for host in portion] == hosts
    assert 1 < len(some) < 30
    selections = [matchers for portion in some for matchers in host_matchers(portion)]
    for host in hosts[::37]:
        for labels in (
            {"Hostname": host, "instance": "10.0.0.1:9400"},
            {"node": host},
            {"instance": f"{host}:9100"},
        ):
            assert sum(matched(matchers, labels) for matchers in selections) == 1, labels
    assert not any(matched(one, {"Hostname": "gpu-1xrack-1"}) for one in selections)


def test_a_job_of_sixty_nodes_takes_as_many_requests_as_one_of_two():
    fetcher = Engine(packaged.catalogue()).fetcher

    def places(nodes):
        return [locate({"Hostname": f"n{n}", "gpu": "0", "UUID": f"GPU-{n}"}) for n in range(nodes)]

    assert len(fetcher.siblings_of(places(60))) == len(fetcher.siblings_of(places(2)))
