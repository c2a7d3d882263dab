"""What is recorded: one name, unit and set of labels, whatever the exporter; no blanks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.export import prometheus_rules
from tests.support import packaged
from tests.support.promtool import BLANK, needed, run

CATALOGUE = packaged.catalogue()
RULES = packaged.exported().text
WHO = 'UUID="GPU-a",gpu="0",modelName="NVIDIA H100 80GB HBM3"'
HERE = f'{WHO},Hostname="n1",instance="10.0.0.1:9400",job="dcgm"'
OUT = f'{WHO},host="n1"'
# A GPU is known by its core readings; what else it has is recorded for those.
SEEN = {f"DCGM_FI_DEV_POWER_USAGE{{{HERE}}}": "400x20"}
TEMPERATURE = "gpuwhy:gpu_temp:celsius"


def check(
    tmp_path: Path,
    given: dict[str, str],
    expr: str,
    found: list[tuple[str, float]],
    at: str = "5m",
    rules: str = RULES,
) -> None:
    test: dict[str, Any] = {
        "interval": "15s",
        "input_series": [{"series": s, "values": v} for s, v in given.items()],
        "promql_expr_test": [
            {
                "expr": expr,
                "eval_time": at,
                "exp_samples": [{"labels": labels, "value": value} for labels, value in found],
            }
        ],
    }
    assert run(tmp_path, needed(rules, [expr]), [test]) == ""


@pytest.mark.parametrize(
    ("series", "value", "signal", "recorded"),
    [
        ("DCGM_FI_DEV_GPU_TEMP", "61", "gpu_temp:celsius", 61),
        ("DCGM_FI_DEV_GPU_TEMP_CELSIUS", "61", "gpu_temp:celsius", 61),
        ("DCGM_FI_DEV_SM_CLOCK", "1980", "sm_clock:megahertz", 1980),
        ("DCGM_FI_DEV_SM_CLOCK_HERTZ", "1980000000", "sm_clock:megahertz", 1980),
        ("DCGM_FI_DEV_FB_USED_BYTES", "1073741824", "fb_used:mebibytes", 1024),
        ("DCGM_FI_PROF_SM_ACTIVE", "0.5", "sm_active:ratio", 0.5),
        ("DCGM_FI_PROF_SM_UTIL_RATIO", "0.5", "sm_active:ratio", 0.5),
        ("DCGM_FI_DEV_GPU_UTIL", "40", "gpu_util:percent", 40),
        # Read as a ratio a percentage is impossible, and no reading.
        ("DCGM_FI_DEV_GPU_UTIL_RATIO", "0.5", "gpu_util:percent", 50),
    ],
)
def test_old_and_new_names_come_out_in_one_unit(
    series: str, value: str, signal: str, recorded: float, tmp_path: Path
):
    name = f"gpuwhy:{signal}"
    check(
        tmp_path,
        {**SEEN, f"{series}{{{HERE}}}": f"{value}x20"},
        name,
        [(f"{name}{{{OUT}}}", recorded)],
    )


@pytest.mark.parametrize(
    "labels",
    [
        f'{WHO},Hostname="n1",instance="10.0.0.1:9400"',
        f'{WHO},hostname="n1",instance="10.0.0.1:9400"',
        f'{WHO},node="n1",instance="10.0.0.1:9400"',
        f'{WHO},instance="n1:9400"',
        f'{WHO},instance="n1"',
        f'{WHO.replace("UUID", "uuid")},instance="n1:9400"',
        f'{WHO.replace("UUID", "gpu_uuid").replace("modelName", "model_name")},hostname="n1"',
        f'{HERE},pod="trainer-0",namespace="ml",err_code="0",DCGM_FI_DRIVER_VERSION="570"',
    ],
)
def test_labels_are_spelled_one_way(labels: str, tmp_path: Path):
    given = {f"DCGM_FI_DEV_GPU_TEMP{{{labels}}}": "61x20"}
    check(tmp_path, given, TEMPERATURE, [(f"{TEMPERATURE}{{{OUT}}}", 61)])


@pytest.mark.parametrize("value", [BLANK, "-1", "250", "2147483632", "140737488355328", "NaN"])
def test_blanks_and_impossible_values_are_no_readings(value: str, tmp_path: Path):
    given = {f"DCGM_FI_DEV_GPU_TEMP{{{HERE}}}": f"{value}x20" if value != "NaN" else "NaN NaN NaN"}
    check(tmp_path, given, TEMPERATURE, [], at="30s")


@pytest.mark.parametrize("value", ["2147483632", "2147483635"])
def test_a_mask_may_not_be_a_blank_marker(value: str, tmp_path: Path):
    given = {f"DCGM_FI_DEV_CLOCKS_EVENT_REASONS{{{HERE}}}": f"{value}x20"}
    check(tmp_path, given, "gpuwhy:throttle_reasons:bitmask", [])


def test_a_new_pod_does_not_split_a_gpu(tmp_path: Path):
    old, new = (f'DCGM_FI_DEV_GPU_TEMP{{{HERE},pod="{pod}"}}' for pod in ("a", "b"))
    given = {old: "61x9 stale", new: "_x10 63x10"}
    check(tmp_path, given, f"count_over_time({TEMPERATURE}[5m])", [(f"{{{OUT}}}", 21)])


def test_pods_and_slices_are_counted(tmp_path: Path):
    given = {
        f'DCGM_FI_DEV_GPU_TEMP{{{HERE},pod="{pod}",namespace="ml"}}': "61x20" for pod in ("a", "b")
    }
    given[f'DCGM_FI_DEV_GPU_TEMP{{{HERE},pod="dcgm-exporter-x7"}}'] = "61x20"
    name = "gpuwhy:pods:count"
    check(tmp_path, given, name, [(f"{name}{{{OUT}}}", 2)])
    sliced = {
        f'DCGM_FI_PROF_GR_ENGINE_ACTIVE{{{HERE},GPU_I_ID="{k}"}}': f"0.{k}x20" for k in (1, 2)
    }
    name = "gpuwhy:mig_instances:count"
    check(tmp_path, sliced, name, [(f"{name}{{{OUT}}}", 2)])
    check(tmp_path, sliced, "gpuwhy:gr_engine_active:ratio", [
        (f"gpuwhy:gr_engine_active:ratio{{{OUT}}}", 0.2)
    ])  # fmt: skip


def test_a_zero_of_a_sliced_gpu_is_no_utilisation(tmp_path: Path):
    util = f"DCGM_FI_DEV_GPU_UTIL{{{HERE}}}"
    sliced = {f'DCGM_FI_PROF_GR_ENGINE_ACTIVE{{{HERE},GPU_I_ID="1"}}': "0.9x20"}
    name = "gpuwhy:gpu_util:percent"
    check(tmp_path, {util: "0x20", **sliced}, name, [])
    check(tmp_path, {util: "0x20"}, name, [(f"{name}{{{OUT}}}", 0)])


def test_an_engine_that_serves_is_no_gpu(tmp_path: Path):
    engine = 'instance="n1:8000",job="vllm",model_name="llama"'
    given = {
        **SEEN,
        f"vllm:num_requests_running{{{engine}}}": "4x20",
        f"up{{{engine}}}": "1x20",
        'up{instance="10.0.0.1:9400",job="dcgm"}': "0x20",
    }
    check(tmp_path, given, "gpuwhy:gpu:info", [(f"gpuwhy:gpu:info{{{OUT}}}", 1)])
    # It answers for itself alone, not for the GPUs of the host that it runs on.
    name = "gpuwhy:exporter_up_of_gpu:count"
    check(tmp_path, given, name, [(f"{name}{{{OUT}}}", 0)])


XID = f"DCGM_FI_DEV_XID_ERRORS{{{HERE}}}"
COUNT = f'DCGM_EXP_XID_ERRORS_COUNT{{{HERE},xid="79",window_size_in_ms="300000"}}'


@pytest.mark.parametrize(
    ("given", "events"),
    [
        ({XID: "0x10 79x10"}, 1),
        ({XID: "79x20"}, 0),  # sticky: it may be days old
        ({XID: "31x5 79x5 31x10"}, 1),
        ({XID: "79x20", COUNT: "0x10 1x10"}, 1),  # the gauge does not show the second one
        ({XID: "79x20", COUNT: "1x5 2x15"}, 2),
        ({COUNT: "1x20"}, 1),
        # The exporter was away for a while: what it then shows is new if it is another code.
        ({XID: "0x3 stale _x8 79x8"}, 1),
    ],
)
def test_an_xid_is_an_event_when_it_comes(given: dict[str, str], events: int, tmp_path: Path):
    expr = 'count_over_time(gpuwhy:xid:change{code="79"}[10m])'
    found = [(f'{{{OUT},code="79"}}', events)] if events else []
    check(tmp_path, {**SEEN, **given}, expr, found)


@pytest.mark.parametrize("up", [0, 1])
def test_every_gpu_knows_whether_its_exporter_answers(up: int, tmp_path: Path):
    given = {
        f"DCGM_FI_DEV_GPU_TEMP{{{HERE}}}": "61x5 stale",
        'up{instance="10.0.0.1:9400",job="dcgm"}': f"1x5 {up}x15",
        'up{instance="10.0.0.1:9100",job="node"}': "1x20",
    }
    name = "gpuwhy:exporter_up_of_gpu:count"
    check(tmp_path, given, name, [(f"{name}{{{OUT}}}", up)])


def test_a_symptom_with_a_hold_time_must_have_lasted(tmp_path: Path):
    symptom = replace(CATALOGUE.symptoms["sm_low"], hold_s=120.0)
    catalogue = replace(CATALOGUE, symptoms={**CATALOGUE.symptoms, "sm_low": symptom})
    rules = prometheus_rules(catalogue).text
    given = {f"DCGM_FI_PROF_SM_ACTIVE{{{HERE}}}": "0.1x20"}
    expr = 'group by (symptom) (gpuwhy:symptom{symptom="sm_low"})'
    check(tmp_path, given, expr, [], at="1m30s", rules=rules)
    check(tmp_path, given, expr, [('{symptom="sm_low"}', 1)], at="2m30s", rules=rules)
