"""Asking about one GPU gives the words that asking about its whole node gives."""

import pytest

from engine.diagnosis.fetch import Fetched
from engine.diagnosis.judge import Judge
from engine.samples import Batch, Selection
from engine.signals.normalise import build_frame
from engine.simulate import Fault, Fleet
from engine.sources.exposition import FileSource
from tests.support import packaged


@pytest.fixture(scope="module")
def judge():
    return Judge(packaged.catalogue())


@pytest.mark.parametrize("cause", ["node_airflow", "clocks_locked", "nvlink_degraded"])
async def test_one_gpu_is_judged_as_among_its_siblings(judge, tmp_path, cause):
    fleet = Fleet(nodes=1, gpus=8, seed=3, faults=[Fault(cause, _target(cause), 1764432000.0)])
    end = fleet.start + 3600.0
    file = tmp_path / "node.om"
    file.write_text("".join(fleet.openmetrics(end - 900.0, end, 15.0)))
    batch = await FileSource([file]).select([Selection((), (), 900.0)], at=end)
    got = Fetched(Batch(batch.series, end, 0), end, 900.0)
    frame = build_frame(got.batch, judge.catalogue, at=end, window_s=900.0).frame
    everything = judge.observe(frame)
    for i in (0, 3, 7):
        alone = judge.observe(frame, only=[i])
        for symptom, truth in everything.truth.items():
            assert alone.truth[symptom][i] == truth[i], symptom
            assert alone.weak[symptom][i] == everything.weak[symptom][i], symptom


def _target(cause):
    return "node-0" if cause == "node_airflow" else "node-0:3"
