"""Which entities a look could read: nobody is called absent who was not looked at."""

from __future__ import annotations

import pytest

from engine.diagnosis import sweepresult
from engine.history.readable import UNSEEN_LISTED, Asked, Rows, scope_of, unread
from engine.model import Entity, Kind
from tests.support.sightings import gpu, sweep

GPU = gpu("node-1:0")
ROW = {"Hostname": "node-1", "gpu": "0", "UUID": "GPU-node-1:0"}
NODE = Entity(Kind.NODE, "node-1", host="node-1")


def readable(entity, *, rows=None, unseen=(), by_node=False):
    return not unread([Asked(entity, by_node)], sweep(unseen=unseen), rows or Rows())


def test_a_gpu_is_read_if_it_has_a_fresh_reading_and_a_verdict():
    assert readable(GPU, rows=Rows(gpus=[ROW]))
    assert not readable(GPU)
    assert not readable(GPU, rows=Rows(gpus=[{**ROW, "gpu": "1", "UUID": "GPU-x"}]))
    assert not readable(GPU, rows=Rows(gpus=[ROW]), unseen=[GPU])


def test_a_gpu_is_the_same_by_its_uuid_or_its_place():
    assert readable(GPU, rows=Rows(gpus=[{"Hostname": "node-9", "gpu": "7", "UUID": GPU.uuid}]))
    assert readable(GPU, rows=Rows(gpus=[{"hostname": "node-1", "gpu": "0", "UUID": "GPU-new"}]))


def test_a_host_that_did_not_answer_hides_all_that_is_on_it():
    assert not readable(GPU, rows=Rows(gpus=[ROW]), unseen=[NODE])
    assert not readable(NODE, rows=Rows(gpus=[ROW]), unseen=[NODE])


def test_a_node_is_read_with_its_gpus_and_by_its_own_readings_where_they_decided():
    own = [{"instance": "node-1:9100"}]
    assert readable(NODE, rows=Rows(gpus=[ROW]))
    assert not readable(NODE, rows=Rows(gpus=[ROW]), by_node=True)
    assert readable(NODE, rows=Rows(gpus=[ROW], nodes=own), by_node=True)


def test_a_service_has_to_be_read_itself_and_a_job_may_be_over():
    labels = {"model_name": "llama", "pod": "vllm-0", "namespace": "serving", "engine": "0"}
    service = Entity(Kind.SERVICE, "svc/llama#vllm-0 engine 0", host="node-1", service="llama")
    assert not readable(service, rows=Rows(gpus=[ROW]))
    assert readable(service, rows=Rows(others={"service": [labels]}))
    job = Entity(Kind.JOB, "job/42", host="node-1", job="42")
    assert readable(job, rows=Rows(gpus=[ROW]))
    assert not readable(job)


@pytest.mark.parametrize(
    ("entity", "scope"),
    [
        (GPU, None),
        (NODE, None),
        (Entity(Kind.NODE, "node-1 mlx5_0/1", host="node-1", instance="mlx5_0/1"), "port"),
        (Entity(Kind.FILESYSTEM, "fs/scratch", host="node-1"), "filesystem"),
        (Entity(Kind.RANK, "job/4/rank/2", job="4", rank=2), "rank"),
        (Entity(Kind.FLEET, "fleet"), None),
    ],
)
def test_everything_has_a_scope_of_its_own_readings(entity, scope):
    assert scope_of(entity) == scope


def test_if_the_list_of_those_without_a_verdict_is_full_nobody_counts_as_read():
    unseen = [gpu(f"node-9:{n}") for n in range(UNSEEN_LISTED)]
    assert not readable(GPU, rows=Rows(gpus=[ROW]), unseen=unseen)
    assert readable(GPU, rows=Rows(gpus=[ROW]), unseen=unseen[1:])


def test_the_engine_lists_as_many():
    assert sweepresult._SHOWN_UNSEEN == UNSEEN_LISTED
