"""Exporter text: oddities, and verdicts taken over from the judge."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from engine.catalogue import Catalogue
from engine.model import (
    Class,
    Confidence,
    Coverage,
    Diagnosis,
    EngineInfo,
    Entity,
    Finding,
    Kind,
    Read,
    Severity,
    Unknown,
    Verdict,
    Why,
)
from engine.readers import read
from engine.readers.exporter import ExporterReader

ReadText = Callable[[str], Read]
GPU = Entity(Kind.GPU, "n1:0", host="n1", gpu=0)


def line(name: str, value: object, **labels: str) -> str:
    shown = ",".join(f'{k}="{v}"' for k, v in ({"gpu": "0", "UUID": "GPU-1"} | labels).items())
    return f"{name}{{{shown}}} {value}\n"


def odd(answer: Read) -> list[Finding]:
    """What is odd about a text: all findings but the readings themselves."""
    return [f for f in answer.findings if f.id != "readings"]


def diagnosis(cause: str, class_: Class, severity: Severity) -> Diagnosis:
    return Diagnosis(
        cause, cause, class_, GPU, severity, Confidence.CERTAIN, f"says {cause}", evidence=()
    )


def why(verdict: Verdict, *diagnoses: Diagnosis, notes: tuple[Diagnosis, ...] = ()) -> Why:
    return Why(
        target=GPU,
        at=None,
        window_s=900,
        verdict=verdict,
        diagnoses=diagnoses,
        notes=notes,
        unknown=(Unknown("metrics_missing", "sm_active", "not exported", "add it"),),
        coverage=Coverage(1, 1, 1, 0),
        engine=EngineInfo("0", "0", "reference"),
        queries=0,
        waves=0,
    )


def test_the_judge_gets_the_exposition_text_and_its_verdicts_lead(catalogue: Catalogue) -> None:
    seen: list[bytes] = []

    def diagnose(text: bytes) -> list[Why]:
        seen.append(text)
        brake = diagnosis("power_brake", Class.FAULT, Severity.CRITICAL)
        low = diagnosis("low_occupancy", Class.WORKLOAD, Severity.LOW)
        benign = diagnosis("memory_bound", Class.BENIGN, Severity.INFO)
        return [
            why(Verdict.DEGRADED, low, notes=(benign,)),
            why(Verdict.DEGRADED, brake),
            why(Verdict.IDLE),
        ]

    text = "# TYPE DCGM_FI_DEV_SM_CLOCK gauge\n" + line("DCGM_FI_DEV_SM_CLOCK", 510)
    answer = read(f"prose before\n{text}".encode(), catalogue, diagnose)
    assert seen == [text.encode()]
    assert answer.causes == ("power_brake", "low_occupancy", "memory_bound", "idle")
    assert [d.cause for d in answer.diagnoses] == ["power_brake", "low_occupancy"]
    assert answer.notes == ("says memory_bound",)
    assert len(answer.unknown) == 1


def test_text_without_metrics_is_not_judged(catalogue: Catalogue) -> None:
    def diagnose(_text: bytes) -> list[Why]:
        raise AssertionError

    assert read(b"no metrics\n", catalogue, diagnose).causes == ()


def test_a_stock_scrape_is_nothing_odd(read_text: ReadText) -> None:
    answer = read_text(
        "# HELP DCGM_FI_DEV_GPU_TEMP GPU temperature (in C).\n"
        "# TYPE DCGM_FI_DEV_GPU_TEMP gauge\n"
        + line("DCGM_FI_DEV_GPU_TEMP", 41)
        + line("DCGM_FI_PROF_SM_ACTIVE", 0.97)
        + "# EOF\n"
    )
    assert answer.kinds == ("metrics",)
    assert odd(answer) == []
    assert answer.unread_lines == 0


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("140737488355328.0", "FP64_BLANK"),
        ("140737488355330", "FP64_NOT_SUPPORTED"),
        ("9223372036854775792", "INT64_BLANK"),
        ("9223372036854775794", "INT64_NOT_SUPPORTED"),
        ("9.223372036854776e+18", "INT64_BLANK"),  # as a float the four are one
        ("2147483632", "INT32_BLANK"),
    ],
)
def test_blanks_have_their_dcgm_names(value: str, name: str, read_text: ReadText) -> None:
    answer = read_text(line("DCGM_FI_DEV_GPU_TEMP", value) + line("DCGM_FI_DEV_SM_CLOCK", 510))
    (finding,) = odd(answer)
    assert finding.data["sentinel"] == name
    assert answer.causes == ()


@pytest.mark.parametrize("value", ["1e30", "1e300"])
@pytest.mark.parametrize(
    "name",
    ["DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"],
)
def test_what_is_only_large_is_no_blank(name: str, value: str, read_text: ReadText) -> None:
    (finding,) = odd(read_text(line(name, value)))
    assert finding.id == "impossible_value"
    assert len(finding.says) < 200


def test_a_fraction_is_no_xid(read_text: ReadText) -> None:
    answer = read_text(line("DCGM_FI_DEV_XID_ERRORS", 79.5))
    assert not any(f.kind == "xid" for f in answer.findings)
    assert answer.causes == ()
    assert "a fraction is no code" in answer.findings[0].says


def test_only_blanks_is_no_data(read_text: ReadText) -> None:
    assert read_text(line("DCGM_FI_DEV_GPU_TEMP", 2147483632)).causes == ("no_data",)


def test_a_counter_may_pass_the_32_bit_marker(read_text: ReadText) -> None:
    assert read_text(line("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 2147483632)).findings == ()


def test_profiling_that_is_not_supported_is_missing_not_paused(read_text: ReadText) -> None:
    answer = read_text(line("DCGM_FI_PROF_SM_ACTIVE", "140737488355330"))
    assert answer.causes == ("metrics_missing",)


def test_one_good_profiling_reading_means_that_profiling_runs(read_text: ReadText) -> None:
    answer = read_text(
        line("DCGM_FI_PROF_SM_ACTIVE", "140737488355328") + line("DCGM_FI_PROF_DRAM_ACTIVE", 0.2)
    )
    assert answer.causes == ()


def test_percent_under_a_ratios_name(read_text: ReadText) -> None:
    (finding,) = odd(read_text(line("DCGM_FI_PROF_SM_ACTIVE", 97.2)))
    assert finding.id == "ratio_in_percent"
    assert finding.data["metrics"] == ["DCGM_FI_PROF_SM_ACTIVE"]


def test_values_out_of_range_are_set_apart(read_text: ReadText) -> None:
    text = line("DCGM_FI_DEV_GPU_UTIL", 250) + line("DCGM_FI_DEV_GPU_UTIL", 90)
    (finding,) = odd(read_text(text))
    assert finding.id == "impossible_value"
    assert finding.data["last"] == 90
    assert "outside its range of 0 to 100 %" in finding.says


def test_the_xid_gauge_is_sticky_and_no_cause(read_text: ReadText) -> None:
    answer = read_text(line("DCGM_FI_DEV_XID_ERRORS", 79, err_code="79"))
    (finding,) = odd(answer)
    assert (finding.kind, finding.data["xid"]) == ("xid", 79)
    assert "time is unknown" in finding.says
    assert answer.causes == ()


def test_xid_counts_have_a_root(read_text: ReadText) -> None:
    name = "DCGM_EXP_XID_ERRORS_COUNT"
    answer = read_text(
        line(name, 3, xid="45", window_size_in_ms="300000")
        + line(name, 1, xid="48", window_size_in_ms="300000")
        + line(name, 0, window_size_in_ms="300000")
    )
    root, echo = answer.findings
    assert (root.data["xid"], root.data["primary_xid"], root.data["window_s"]) == (48, 48, 300)
    assert "follows from Xid 48" in echo.says
    assert answer.causes == ("ecc_uncorrectable",)


def test_gpus_with_the_same_mask_are_one_finding(read_text: ReadText) -> None:
    name = "DCGM_FI_DEV_CLOCKS_EVENT_REASONS"
    answer = read_text("".join(line(name, 4, gpu=str(i), UUID=f"GPU-{i}") for i in range(8)))
    (finding,) = odd(answer)
    assert finding.data["physical_gpus"] == 8
    assert finding.entity is None


def test_an_idle_shared_gpu_is_no_contention(read_text: ReadText) -> None:
    answer = read_text(
        line("DCGM_FI_DEV_GPU_UTIL", 2, pod="a") + line("DCGM_FI_DEV_GPU_UTIL", 2, pod="b")
    )
    (finding,) = odd(answer)
    assert finding.data["pods"] == 2
    assert answer.causes == ()


def test_mig_instances_of_two_pods_are_not_sharing(read_text: ReadText) -> None:
    answer = read_text(
        line("DCGM_FI_DEV_GPU_TEMP", 40, pod="a", GPU_I_ID="1")
        + line("DCGM_FI_DEV_GPU_TEMP", 40, pod="b", GPU_I_ID="2")
    )
    assert [f.id for f in odd(answer)] == ["mig"]


def test_a_series_without_value_from_a_new_exporter_was_cut(read_text: ReadText) -> None:
    (finding,) = read_text('DCGM_FI_DEV_GPU_TEMP{gpu="0"}\n').findings
    assert finding.id == "no_value"
    assert "1.4" not in finding.says


@pytest.mark.parametrize(
    "text",
    [
        'func(a="b") 12',
        '{"a": "b"} 5',
        'level=info msg="x" value="3"',
        "train_loss 0.5 at step 12",
        'DCGM_FI_DEV_GPU_TEMP{gpu="0" 41',
    ],
)
def test_lookalikes_are_no_samples(text: str, read_text: ReadText) -> None:
    answer = read_text(text)
    assert answer.kinds == ()
    assert answer.unread_lines == 1


def test_too_much_text_is_judged_in_part_and_said(
    catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ExporterReader, "LIMIT", 1_000)
    answer = read((line("DCGM_FI_DEV_GPU_TEMP", 41) * 100).encode(), catalogue)
    assert any("gpuwhy sweep --metrics" in note for note in answer.notes)


@pytest.mark.parametrize("good", ["", line("DCGM_FI_DEV_GPU_TEMP", 60)])
def test_a_label_that_stands_twice_is_named_by_line(read_text: ReadText, good: str) -> None:
    doubled = 'DCGM_FI_DEV_GPU_TEMP{gpu="0",gpu="1"} 60\n'
    answer = read_text(doubled + good + doubled)
    said = "Line 1 is not read: label gpu of DCGM_FI_DEV_GPU_TEMP is given twice (and 1 more"
    assert any(said in note for note in answer.notes)
    assert answer.kinds == ("metrics",)
