"""Targets: how a thing is named, what happens if nothing or several things have that name."""

from __future__ import annotations

import pytest

from engine.errors import UsageError
from engine.model import Kind, Verdict
from engine.sources import FileSource
from tests.support.memory import MemorySource
from tests.support.readings import (
    AT,
    FULL,
    IDLE,
    causes,
    engine,
    gpu,
    node,
    notes,
    series,
    up,
    uuid_of,
)

BRAKE = {**FULL, "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": 0x88, "DCGM_FI_DEV_SM_CLOCK": 990}
NARROW = {**FULL, "DCGM_FI_DEV_PCIE_LINK_WIDTH": 8}


async def ask(series, target, at=AT):
    return await engine().why(target, MemorySource(series), at=at)


async def refused(series, target):
    with pytest.raises(UsageError) as caught:
        await ask(series, target)
    return caught.value


# --- a GPU


@pytest.mark.parametrize(
    "target", ["node-1:2", "gpu 2 on node-1", "node-1/gpu-2", "GPU2@node-1", "{uuid}", "{prefix}"]
)
async def test_a_gpu_by_any_of_its_names(target):
    uuid = "GPU-3a4f5b6c-0000-4000-8000-000000000002"
    others = [s for s in node(FULL) if s.labels["gpu"] != "2"]
    text = target.format(uuid=uuid, prefix="GPU-3A4F")
    answer = await ask(gpu(NARROW, index=2, uuid=uuid) + others, text)
    assert (answer.target.kind, answer.target.name) == (Kind.GPU, "node-1:2")
    assert answer.target.uuid == uuid
    assert causes(answer) == ["pcie_degraded"]


async def test_a_uuid_prefix_of_two_gpus_lists_both():
    both = gpu(FULL, uuid="GPU-3a4f-1") + gpu(FULL, index=1, uuid="GPU-3a4f-2")
    error = await refused(both, "GPU-3a4f")
    assert error.code == "ambiguous_target"
    assert "node-1:0 (GPU-3a4f-1)" in error.message
    assert "node-1:1 (GPU-3a4f-2)" in error.message


async def test_the_same_host_name_in_two_clusters():
    both = gpu(NARROW, cluster="east", uuid="GPU-1") + gpu(FULL, cluster="west", uuid="GPU-2")
    error = await refused(both, "node-1:0")
    assert "east::node-1:0" in error.message
    assert "west::node-1:0" in error.message
    assert causes(await ask(both, "east::node-1:0")) == ["pcie_degraded"]
    assert (await ask(both, "west::node-1:0")).verdict is Verdict.HEALTHY


async def test_no_such_host_offers_the_nearest():
    error = await refused(node(FULL, host="node-17"), "node-71:0")
    assert error.code == "no_such_target"
    assert error.message == "no host 'node-71' in this source"
    assert error.hint == "did you mean node-17"


async def test_no_such_gpu_says_which_there_are():
    error = await refused(node(FULL, gpus=4), "node-1:7")
    assert error.message == "no GPU 7 on node-1"
    assert error.hint == "it has GPU 0, 1, 2, 3"


async def test_no_such_uuid_offers_the_nearest():
    error = await refused(gpu(FULL, uuid="GPU-aaaa0000"), "GPU-aaaa1111")
    assert error.code == "no_such_target"
    assert "GPU-aaaa0000" in error.hint


async def test_a_number_above_63_is_a_port_of_the_host():
    answer = await ask(node(FULL), "node-1:9400")
    assert (answer.target.kind, answer.target.name) == (Kind.NODE, "node-1")


async def test_a_gpu_index_alone_where_there_is_one_host():
    assert (await ask(node(FULL), "gpu 3")).target.name == "node-1:3"


async def test_a_gpu_without_a_host_is_named_by_its_index():
    bare = gpu(NARROW, index=5)
    for one in bare:
        one.labels = {k: v for k, v in one.labels.items() if k not in {"Hostname", "instance"}}
    answer = await ask(bare, "gpu 5")
    assert (answer.target.name, answer.target.gpu) == ("GPU 5", 5)
    assert causes(answer) == ["pcie_degraded"]


@pytest.mark.parametrize("label", ["hostname", "node", "instance"])
async def test_a_host_under_another_label(label):
    found = gpu(NARROW)
    for one in found:
        one.labels = {k: v for k, v in one.labels.items() if k not in {"Hostname", "instance"}}
        one.labels[label] = "node-1:9400" if label == "instance" else "node-1"
    assert causes(await ask(found, "node-1:0")) == ["pcie_degraded"]


async def test_kinds_that_no_rule_looks_at_yet_are_refused():
    error = await refused(node(FULL), "svc/llama")
    assert "service" in error.message


# --- a node, a pod, a job


async def test_a_cause_of_the_node_is_said_once():
    answer = await ask(node(BRAKE), "node-1")
    assert causes(answer) == ["power_brake"]
    assert answer.diagnoses[0].entity.kind is Kind.NODE
    assert answer.diagnoses[0].entity.name == "node-1"
    assert [m.name for m in answer.members] == [f"node-1:{k}" for k in range(8)]


async def test_a_cause_of_one_gpu_of_a_node_names_the_gpu():
    sick = gpu(NARROW, index=6) + [s for s in node(FULL) if s.labels["gpu"] != "6"]
    answer = await ask(sick, "node-1")
    assert [(d.cause, d.entity.name) for d in answer.diagnoses] == [("pcie_degraded", "node-1:6")]
    assert answer.verdict is Verdict.DEGRADED


async def test_a_node_is_idle_only_if_all_its_gpus_are():
    assert (await ask(node(IDLE), "node-1")).verdict is Verdict.IDLE
    mixed = gpu(FULL) + [s for s in node(IDLE) if s.labels["gpu"] != "0"]
    assert (await ask(mixed, "node-1")).verdict is Verdict.HEALTHY


async def test_a_node_is_unknown_if_one_gpu_is():
    blind = {k: v for k, v in FULL.items() if k != "DCGM_FI_DEV_GPU_TEMP"}
    mixed = gpu(blind) + [s for s in node(FULL) if s.labels["gpu"] != "0"]
    assert (await ask(mixed, "node-1")).verdict is Verdict.UNKNOWN


async def test_a_pod_by_the_label_that_prometheus_renamed():
    """Without honor_labels the workload's pod arrives as exported_pod, the exporter's as pod."""
    exporter = {"pod": "nvidia-dcgm-exporter-x", "namespace": "gpu-operator"}
    mine = gpu(NARROW, index=1, exported_pod="train-0", exported_namespace="ml", **exporter)
    other = gpu(FULL, index=2, exported_pod="train-1", exported_namespace="ml", **exporter)
    answer = await ask(mine + other, "pod/ml/train-0")
    assert (answer.target.kind, answer.target.name) == (Kind.POD, "pod/ml/train-0")
    assert (answer.target.namespace, answer.target.pod) == ("ml", "train-0")
    assert [m.name for m in answer.members] == ["node-1:1"]
    assert causes(answer) == ["pcie_degraded"]
    error = await refused(mine + other, "pod/gpu-operator/nvidia-dcgm-exporter-x")
    assert error.code == "no_such_target"


async def test_a_pod_by_its_plain_label():
    answer = await ask(gpu(FULL, pod="train-0", namespace="ml"), "pod/ml/train-0")
    assert answer.verdict is Verdict.HEALTHY


async def test_the_siblings_of_a_pods_gpu_are_looked_at():
    """Hotter than its siblings shows only next to them."""
    hot = {**FULL, "DCGM_FI_DEV_GPU_TEMP": 78}
    mine = gpu(hot, index=1, pod="train-0", namespace="ml")
    others = [s for s in node(FULL) if s.labels["gpu"] != "1"]
    answer = await ask(mine + others, "pod/ml/train-0")
    assert causes(answer) == ["cooling_outlier"]
    assert answer.waves == 3  # the pod, its node, the last day of what is sick


async def test_a_job_over_two_nodes_by_the_label_of_the_slurm_mapping():
    first = gpu(FULL, host="node-1", hpc_job="4711")
    second = gpu(NARROW, host="node-2", hpc_job="4711")
    other = gpu(BRAKE, host="node-3", hpc_job="4712")
    answer = await ask(first + second + other, "job/4711")
    assert (answer.target.kind, answer.target.job) == (Kind.JOB, "4711")
    assert [m.name for m in answer.members] == ["node-1:0", "node-2:0"]
    assert [(d.cause, d.entity.name) for d in answer.diagnoses] == [("pcie_degraded", "node-2:0")]


async def test_the_fleet_is_every_gpu():
    answer = await ask(node(BRAKE) + node(FULL, host="node-2", gpus=2), "fleet")
    assert answer.target.kind is Kind.FLEET
    assert len(answer.members) == 10
    assert causes(answer) == ["power_brake"]


# --- odd data


async def test_a_swapped_board_is_the_one_that_reports_now():
    old = gpu(NARROW, uuid="GPU-old", shift_s=-400)
    new = gpu(FULL, uuid="GPU-new")
    for target in ("node-1:0", "node-1"):
        answer = await ask(old + new, target)
        assert answer.verdict is Verdict.HEALTHY, target
    assert (await ask(old + new, "node-1:0")).target.uuid == "GPU-new"


async def test_two_boards_that_report_under_one_index_are_ambiguous():
    error = await refused(gpu(FULL, uuid="GPU-1") + gpu(FULL, uuid="GPU-2"), "node-1:0")
    assert "GPU-1" in error.message
    assert "GPU-2" in error.message


async def test_two_exporters_for_one_gpu_are_one_gpu():
    """A second Prometheus job, or nvidia_gpu_exporter beside dcgm-exporter: same UUID."""
    uuid = uuid_of("node-1", 0)
    second = gpu(NARROW, instance="node-1:9401", job="dcgm-second")
    smi = {"uuid": uuid, "instance": "node-1:9835", "job": "nvidia_gpu_exporter"}
    smi_series = [
        series("nvidia_smi_temperature_gpu", 61, smi),
        series("nvidia_smi_utilization_gpu_ratio", 0.97, smi),
    ]
    answer = await ask(gpu(NARROW) + second + smi_series, "node-1:0")
    assert answer.target.uuid == uuid
    assert causes(answer) == ["pcie_degraded"]


async def test_duplicate_series_that_differ_in_a_descriptive_label_are_one():
    twice = gpu(FULL, DCGM_FI_DRIVER_VERSION="570.1") + gpu(FULL, DCGM_FI_DRIVER_VERSION="570.2")
    assert (await ask(twice, "node-1:0")).verdict is Verdict.HEALTHY


async def test_samples_from_the_future_are_not_used():
    """The clock of a node runs ahead: what lies after the moment asked about is not seen."""
    future = gpu({"DCGM_FI_DEV_XID_ERRORS": 79}, shift_s=1800)
    answer = await ask(gpu({**FULL, "DCGM_FI_DEV_XID_ERRORS": 0}) + future, "node-1:0")
    assert answer.verdict is Verdict.HEALTHY
    assert notes(answer) == []


async def test_several_pods_on_one_gpu_share_it():
    first = gpu(FULL, pod="a", namespace="ml")
    answer = await ask(first + gpu(FULL, pod="b", namespace="ml"), "node-1:0")
    assert causes(answer) == ["gpu_contention"]
    assert answer.target.pod is None


async def test_mig_slices_are_of_one_gpu_and_no_contention():
    slices = [
        s
        for k in (1, 3)
        for s in gpu(FULL, GPU_I_ID=str(k), GPU_I_PROFILE="3g.40gb", pod=f"p{k}", namespace="ml")
    ]
    answer = await ask(slices, "node-1:0")
    assert answer.verdict is Verdict.HEALTHY
    assert "mig_slice" in notes(answer)


async def test_labels_are_data_whatever_they_hold():
    odd = gpu(NARROW, host="node-1", pod='x"; rm -rf /', namespace="{sm_clock}\n[bold]")
    answer = await ask(odd, "node-1:0")
    assert causes(answer) == ["pcie_degraded"]
    assert not any("rm -rf" in (s.command or "") for s in answer.diagnoses[0].next)


async def test_a_number_that_is_no_index_and_no_port_is_not_taken_for_the_whole_node():
    with pytest.raises(UsageError, match="node-1 has no GPU 99") as caught:
        await ask(node(FULL), "node-1:99")
    assert caught.value.code == "no_such_target"
    assert "it has GPU 0, 1" in str(caught.value.hint)


async def test_an_index_that_a_known_host_lacks_is_named():
    with pytest.raises(UsageError, match="no GPU 8 on node-1"):
        await ask([*node(FULL), up(1)], "node-1:8")


async def test_a_uuid_of_two_hosts_must_be_named_by_host():
    same = "GPU-aaaaaaaa-0000-4000-8000-000000000001"
    series = gpu(FULL, uuid=same) + gpu(FULL, host="node-2", uuid=same)
    with pytest.raises(UsageError, match="2 GPUs match") as error:
        await ask(series, same)
    assert "node-1:0" in str(error.value)
    assert (await ask(series, "node-2:0")).target.name == "node-2:0"


async def test_a_job_whose_name_has_blanks():
    series = gpu(FULL, hpc_job="llama 3/base") + gpu(FULL, index=1, hpc_job="llama")
    for text in ("job/llama 3/base", "job/llama%203/base", '"job/llama 3/base"'):
        answer = await ask(series, text)
        assert answer.target.name == "job/llama 3/base"
        assert [m.name for m in answer.members] == ["node-1:0"]
    with pytest.raises(UsageError) as error:
        await ask(series, "job/llama 3")
    assert "llama 3/base" in error.value.hint


@pytest.mark.parametrize(
    ("text", "engine_of"),
    [
        ("svc/a#b", "svc/a#b#node-1:8000"),
        ("svc/a#b#node-1:8000", "svc/a#b#node-1:8000"),
        ("svc/a", "svc/a#node-2:8000"),
        ("svc/a#node-2:8000", "svc/a#node-2:8000"),
    ],
)
async def test_a_model_whose_name_has_a_number_sign(text, engine_of):
    served = [
        series("vllm:num_requests_running", 3, {"model_name": model, "instance": f"{host}:8000"})
        for model, host in (("a#b", "node-1"), ("a", "node-2"))
    ]
    assert (await ask(served, text)).target.name == engine_of


async def test_a_host_whose_lines_could_not_be_read_is_told_with_the_file_and_the_line(tmp_path):
    file = tmp_path / "node.prom"
    file.write_text(
        'DCGM_FI_DEV_GPU_TEMP{gpu="0",Hostname="other"} 60\n'
        'DCGM_FI_DEV_GPU_TEMP{gpu="0",gpu="0",Hostname="node-1"} 60\n'
    )
    with pytest.raises(UsageError) as error:
        await engine().why("node-1:0", FileSource([file]))
    assert f"{file}:2: label gpu of DCGM_FI_DEV_GPU_TEMP is given twice" in error.value.one_line()


async def test_names_that_are_not_there_are_answered_with_those_that_are():
    labels = {"model_name": "llama#70b", "instance": "10.0.0.1:8000"}
    served = series("vllm:num_requests_running", 3, labels)
    source = MemorySource([*gpu(FULL, hpc_job="train 3"), served])
    with pytest.raises(UsageError, match="no service 'svc/lama'") as told:
        await engine().why("svc/lama", source, at=AT)
    assert "svc/llama#70b" in told.value.hint
    with pytest.raises(UsageError, match="no GPU here works for job 'train'") as told:
        await engine().why("job/train", source, at=AT)
    assert "train 3" in told.value.hint
    with pytest.raises(UsageError, match="no GPU here works for job 'x'") as told:
        await engine().why("job/x", MemorySource(gpu(FULL)), at=AT)
    assert "no label names a job" in told.value.hint
