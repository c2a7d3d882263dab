"""Setting up fleets, the demonstration fleet, and the borders of the room."""

import ast
from pathlib import Path

import pytest

import engine.simulate
from engine.errors import UsageError
from engine.simulate import DEMO_SPAN_S, MODELS, Fleet, demo_fleet
from engine.simulate.fleet import FAULTS
from tests.support.yamlfiles import parse

ROOM = Path(engine.simulate.__file__).parent


def test_the_room_imports_nothing_that_judges() -> None:
    allowed = {"engine.errors", "engine.model"}
    for path in ROOM.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("engine"):
                inside = node.module.startswith("engine.simulate")
                assert inside or node.module in allowed, f"{path.name}: {node.module}"


def test_the_room_never_asks_the_clock_or_chance() -> None:
    for path in ROOM.glob("*.py"):
        text = path.read_text()
        assert "import random" not in text
        assert "np.random" not in text
        assert "import time" not in text or path.name == "serve.py"


def test_every_fault_is_a_cause_of_the_taxonomy() -> None:
    taxonomy = ROOM.parent.parent / "knowledge" / "taxonomy.yaml"
    causes = {c["id"]: c for c in parse(taxonomy.read_text())["taxonomy"]}
    assert set(FAULTS) <= set(causes)
    for cause, effect in FAULTS.items():
        if effect.node and cause != "metrics_missing":
            assert causes[cause]["scope"] == "node", cause


def test_all_is_public_and_there() -> None:
    for name in engine.simulate.__all__:
        assert hasattr(engine.simulate, name)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"nodes": 0}, "0 nodes"),
        ({"gpus": 17}, "17 GPUs"),
        ({"model": "h1000"}, "GPU model 'h1000'"),
        ({"models": {"node-9": "l40s"}}, "'node-9'"),
        ({"workloads": ("mining",)}, "workload 'mining'"),
        ({"workload_of": {"node-0:9": "idle"}}, "'node-0:9'"),
    ],
)
def test_senseless_fleets_are_refused(arguments: dict[str, object], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        Fleet(**{"nodes": 1, "gpus": 2, **arguments})  # type: ignore[arg-type]


def test_unknown_names_are_refused() -> None:
    fleet = Fleet(1, 2)
    for ask in (
        lambda: fleet.exposition("node-7", fleet.start),
        lambda: fleet.node_exposition("node-7", fleet.start),
        lambda: fleet.model("node-7"),
        lambda: fleet.uuid("node-0:5"),
    ):
        with pytest.raises(UsageError, match="in this fleet"):
            ask()


def test_uuids_are_those_of_the_exporter() -> None:
    fleet = Fleet(2, 2)
    uuids = [fleet.uuid(gpu) for gpu in fleet.gpus]
    assert len(set(uuids)) == 4
    assert f'gpu="1",UUID="{fleet.uuid("node-1:1")}"' in fleet.exposition("node-1", fleet.start)


def test_models_can_be_named_by_what_the_exporter_prints() -> None:
    fleet = Fleet(1, 1, model="NVIDIA L40S")
    assert fleet.model("node-0") is MODELS["l40s"]


def test_the_demo_plants_ten_different_faults_on_a_fleet_of_64() -> None:
    fleet = demo_fleet()
    assert len(fleet.nodes) == 8
    assert len(fleet.gpus) == 64
    assert len({p.cause for p in fleet.planted}) == len(fleet.planted) == 10
    assert len({p.entity for p in fleet.planted}) == 10
    members = [gpu for planted in fleet.planted for gpu in planted.members]
    assert len(members) == len(set(members)) == 8 + 9
    assert set(fleet.healthy) == set(fleet.gpus) - set(members)
    at = fleet.start + DEMO_SPAN_S
    assert all(fleet.start < p.since < at - 300.0 for p in fleet.planted)


def test_the_demo_shows_its_faults_at_the_moment_to_look_at(by_gpu) -> None:
    fleet = demo_fleet()
    at = fleet.start + DEMO_SPAN_S
    node = {name: by_gpu(fleet.exposition(name, at)) for name in fleet.nodes}
    assert set(node["node-1"]["DCGM_FI_DEV_CLOCK_THROTTLE_REASONS"].values()) == {136}
    assert int(node["node-2"]["DCGM_FI_DEV_CLOCKS_EVENT_REASONS"]["3"]) & 0x48 == 0x48
    assert node["node-2"]["DCGM_FI_PROF_TENSOR_UTIL_RATIO"]["6"] < 0.02
    assert node["node-3"]["DCGM_FI_DEV_ENFORCED_POWER_LIMIT"]["5"] < 500
    assert node["node-3"]["DCGM_FI_DEV_SM_CLOCK"]["1"] < 1400
    assert "7" not in node["node-4"]["DCGM_FI_DEV_GPU_TEMP"]
    assert node["node-4"]["DCGM_FI_DEV_PCIE_LINK_WIDTH"]["2"] == 4
    assert node["node-5"]["DCGM_FI_DEV_XID_ERRORS"]["4"] == 48
    assert node["node-5"]["DCGM_FI_DEV_ROW_REMAP_PENDING"]["4"] == 1
    assert node["node-5"]["DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL"]["0"] > 1e5
    assert node["node-5"]["DCGM_FI_DEV_MEMORY_TEMP"]["6"] > 95
    assert set(node["node-6"]["DCGM_FI_DEV_GPU_UTIL"].values()) == {0}
    assert "DCGM_FI_PROF_SM_ACTIVE" not in node["node-7"]
