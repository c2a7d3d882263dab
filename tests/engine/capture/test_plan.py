"""What can be asked for, and plans as stored JSON."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from engine import capture
from engine.capture import (
    CaptureError,
    CaptureRequest,
    CaptureSettings,
    LocalExecutor,
    SshSettings,
    Via,
    plan_from_json,
)
from engine.errors import UsageError
from engine.model import Entity, Kind, to_json
from tests.engine.capture.conftest import gpu, node, request_for


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (request_for(gpu(), 61.0), "cannot record for 61 s; give at most 1 min"),
        (request_for(gpu(), 0.0), "cannot record for 0 s; give at most 1 min"),
        (request_for(gpu(), float("nan")), "cannot record for"),
        (request_for(gpu(), profiler="nsyss"), "no profiler 'nsyss'; did you mean 'nsys'?"),
        (request_for(gpu(), profiler="ncu"), "no profiler 'ncu'; use nsys"),
    ],
)
async def test_what_is_out_of_range_is_refused_before_anything_runs(asked, said, pretending):
    with pytest.raises(UsageError) as caught:
        await capture.plan(asked, replace(pretending, nsys="/nowhere"))
    assert said in caught.value.one_line()


@pytest.mark.parametrize("name", ["", "../x", "a b", "-x", "a" * 65, "x;y", "a\n"])
def test_a_capture_has_a_harmless_name(name):
    with pytest.raises(UsageError, match="cannot name a capture"):
        CaptureRequest(name, "nsys", gpu(), 1.0)


@pytest.mark.parametrize(
    "target",
    [
        Entity(Kind.GPU, "GPU 5", gpu=5),
        Entity(Kind.JOB, "42", job="42"),
        Entity(Kind.POD, "p", host="node-3", pod="p"),
    ],
)
def test_a_target_has_a_host(target):
    with pytest.raises(UsageError, match="its host is not known"):
        request_for(target)


@pytest.mark.parametrize(
    "settings",
    [
        {"user": "-oProxyCommand=x"},
        {"user": "a b"},
        {"port": 0},
        {"port": 65536},
        {"options": ("ProxyCommand",)},
        {"options": ("A=b\nC=d",)},
        {"program": "-x"},
    ],
)
def test_settings_that_could_be_options_are_refused(settings):
    with pytest.raises(UsageError, match="is not usable for captures"):
        SshSettings(**settings)


@pytest.mark.parametrize(
    "settings",
    [{"nsys": "-p"}, {"nsys": "nsys; id"}, {"importer": ""}, {"target_folder": "tmp"}],
)
def test_paths_that_could_be_options_are_refused(settings):
    with pytest.raises(UsageError, match="is not usable for captures"):
        CaptureSettings(**settings)


@pytest.mark.parametrize(
    ("via", "host", "route"),
    [
        (Via.AUTO, "localhost", "local"),
        (Via.AUTO, "NODE-3", "local"),
        (Via.AUTO, "node-33", "ssh"),
        (Via.SSH, "node-3", "ssh"),
        (Via.LOCAL, "anything", "local"),
    ],
)
def test_how_a_host_is_reached(via, host, route):
    settings = CaptureSettings(via=via, local_hosts=("localhost", "node-3"))
    executor = capture.executor_for(host, settings)
    assert executor.route == route
    assert isinstance(executor, LocalExecutor) == (route == "local")


async def test_the_file_of_a_node_and_of_an_address(pretending):
    plan = await capture.plan(request_for(node()), pretending)
    assert plan.file.endswith(f"/{plan.id}/node-3.nsys-rep")
    plan = await capture.plan(request_for(gpu("[fd00::7]")), pretending)
    assert plan.file.endswith(f"/{plan.id}/fd00--7-gpu5.nsys-rep")


async def test_a_plan_survives_json(pretending):
    plan = await capture.plan(request_for(gpu()), pretending)
    document = to_json(plan)
    assert next(iter(document)) == "schema"
    assert plan_from_json(json.loads(json.dumps(document))) == plan


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "gpuwhy/capture-plan/2"},
        {"steps": None},
        {"steps": [{"id": "start"}]},
        {"target": {"kind": "toaster", "name": "t"}},
        {"target": "node-3"},
    ],
)
async def test_what_is_no_plan_is_refused(change, pretending):
    plan = await capture.plan(request_for(gpu()), pretending)
    with pytest.raises(CaptureError, match="no plan of a capture"):
        plan_from_json({**to_json(plan), **change})


@pytest.mark.parametrize("document", [{}, [], None, "plan"])
def test_other_documents_are_refused(document):
    with pytest.raises(CaptureError, match="no plan of a capture"):
        plan_from_json(document)


async def test_an_argv_that_is_text_is_refused(pretending):
    document = to_json(await capture.plan(request_for(gpu()), pretending))
    document["steps"][1]["argv"] = "rm -rf /"
    with pytest.raises(CaptureError, match="no plan of a capture"):
        plan_from_json(document)
