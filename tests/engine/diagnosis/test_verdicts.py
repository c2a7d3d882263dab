"""The one word: healthy only with the core readings in hand, unknown whenever they are not."""

from __future__ import annotations

import pytest

from engine.errors import SourceError
from engine.model import Confidence, Verdict
from engine.sources import FileSource
from tests.support.memory import MemorySource
from tests.support.readings import AT, FULL, IDLE, STOCK, causes, engine, gpu, node, up

ACTIVITY = ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_PROF_SM_ACTIVE")


async def ask(series, target="node-1:0", at=AT):
    return await engine().why(target, MemorySource(series), at=at)


def without(values, *names):
    return {k: v for k, v in values.items() if k not in names}


def blinds(answer):
    return [u.cause for u in answer.unknown]


async def test_healthy_with_all_core_readings():
    answer = await ask(gpu(FULL))
    assert answer.verdict is Verdict.HEALTHY
    assert answer.diagnoses == ()
    assert answer.waves == 1


async def test_idle_with_all_core_readings():
    assert (await ask(gpu(IDLE))).verdict is Verdict.IDLE


@pytest.mark.parametrize(
    ("missing", "needs"),
    [
        (ACTIVITY, "gpu_util"),
        (("DCGM_FI_DEV_SM_CLOCK",), "sm_clock"),
        (("DCGM_FI_DEV_GPU_TEMP",), "gpu_temp"),
        (("DCGM_FI_DEV_POWER_USAGE",), "power_usage"),
    ],
)
async def test_unknown_without_a_core_reading_which_is_named_first(missing, needs):
    answer = await ask(gpu(without(FULL, *missing)))
    assert answer.verdict is Verdict.UNKNOWN
    assert answer.unknown[0].needs == needs
    assert answer.unknown[0].fix


@pytest.mark.parametrize("kept", ACTIVITY)
async def test_any_reading_of_activity_will_do(kept):
    gone = [name for name in ACTIVITY if name != kept]
    assert (await ask(gpu(without(FULL, *gone)))).verdict is Verdict.HEALTHY


async def test_blank_core_readings_are_not_health():
    answer = await ask(gpu({**FULL, "DCGM_FI_DEV_GPU_TEMP": 2147483632}))
    assert answer.verdict is Verdict.UNKNOWN
    assert "blank" in answer.unknown[0].why


async def test_degraded_even_if_a_core_reading_is_missing():
    braked = without({**FULL, "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": 0x88}, "DCGM_FI_DEV_GPU_TEMP")
    answer = await ask(gpu(braked))
    assert answer.verdict is Verdict.DEGRADED
    assert causes(answer) == ["power_brake"]


# --- stale, gone, never there


async def test_readings_up_to_five_minutes_old_count():
    assert (await ask(gpu(FULL), at=AT + 299)).verdict is Verdict.HEALTHY


async def test_readings_older_than_five_minutes_are_stale():
    answer = await ask(gpu(FULL), at=AT + 315)
    assert answer.verdict is Verdict.UNKNOWN
    assert blinds(answer)[0] == "stale_data"
    assert causes(answer) == []


async def test_readings_only_before_the_window_are_stale_not_an_error():
    answer = await ask(gpu(FULL), at=AT + 7200)
    assert answer.verdict is Verdict.UNKNOWN
    assert blinds(answer)[0] == "stale_data"
    assert answer.target.name == "node-1:0"
    assert answer.waves <= 3


async def test_a_gpu_that_fell_silent_while_its_siblings_go_on_is_gone():
    lost = gpu(FULL, index=3, shift_s=-3600)
    others = [s for s in node(FULL) if s.labels["gpu"] != "3"]
    for target in ("node-1:3", "node-1", lost[0].labels["UUID"]):
        answer = await ask(lost + others, target)
        assert answer.verdict is Verdict.DEGRADED
        assert causes(answer) == ["gpu_off_bus"]
        assert answer.waves <= 4


async def test_a_gpu_that_fell_silent_with_an_xid_of_its_firmware_has_a_firmware_failure():
    """After a GSP time-out the host engine keeps the Xid and has no other reading."""
    silent = without(FULL, "DCGM_FI_DEV_XID_ERRORS")
    lost = gpu(silent, index=3, shift_s=-3600) + gpu({"DCGM_FI_DEV_XID_ERRORS": 119}, index=3)
    others = [s for s in node(FULL) if s.labels["gpu"] != "3"]
    for target in ("node-1:3", "node-1"):
        assert causes(await ask(lost + others, target)) == ["gsp_failure"]


@pytest.mark.parametrize("target", ["node-1:0", "node-1"])
@pytest.mark.parametrize("ago_s", [180, 480, 3600])
async def test_an_exporter_that_does_not_answer_is_unknown(target, ago_s):
    silent = [s for k in range(8) for s in gpu(FULL, index=k, shift_s=-ago_s)]
    answer = await ask([*silent, up({"was": 1, "now": 0, "ago": f"{min(ago_s, 800)}s"})], target)
    assert answer.verdict is Verdict.UNKNOWN
    assert blinds(answer)[0] == "exporter_down"
    assert causes(answer) == []


async def test_one_lost_scrape_is_not_a_dead_exporter():
    lost = up({"was": 1, "now": 0, "ago": "15s"})
    assert (await ask([*gpu(FULL), lost])).verdict is Verdict.HEALTHY


async def test_an_exporter_that_never_answered_is_not_an_error():
    answer = await ask([up(0)])
    assert answer.verdict is Verdict.UNKNOWN
    assert blinds(answer)[0] == "exporter_down"


@pytest.mark.parametrize("target", ["node-1:0", "node-1", "GPU-0000", "pod/ml/train-0", "fleet"])
async def test_an_empty_server_is_unknown_no_data(target):
    answer = await ask([], target)
    assert answer.verdict is Verdict.UNKNOWN
    assert blinds(answer)[0] == "no_data"
    assert answer.waves <= 3


async def test_a_source_that_cannot_be_reached_is_an_error():
    class Down(MemorySource):
        async def select(self, selections, *, at):
            raise SourceError("http://127.0.0.1:1 refuses connections")

    with pytest.raises(SourceError):
        await engine().why("node-1:0", Down([]), at=AT)


# --- one sample


async def test_one_sample_gives_a_verdict_that_is_only_possible(tmp_path):
    newest = {k: {"once": v[-1] if isinstance(v, list) else v} for k, v in FULL.items()}
    answer = await ask(gpu({**newest, "DCGM_FI_DEV_PCIE_LINK_WIDTH": {"once": 4}}))
    assert causes(answer) == ["pcie_degraded"]
    assert answer.diagnoses[0].confidence is Confidence.POSSIBLE
    assert (await ask(gpu(newest))).verdict is Verdict.HEALTHY


async def test_a_scrape_without_times_gives_a_verdict(tmp_path):
    file = tmp_path / "scrape.prom"
    labels = 'gpu="0",UUID="GPU-1",Hostname="node-1",modelName="NVIDIA H100 80GB HBM3"'
    values = {**STOCK, "DCGM_FI_DEV_SM_CLOCK": 1980, "DCGM_FI_DEV_XID_ERRORS": 79}
    file.write_text("".join(f"{name}{{{labels}}} {value}\n" for name, value in values.items()))
    answer = await engine().why("node-1:0", FileSource([file]))
    assert answer.at is None
    assert answer.verdict is Verdict.HEALTHY
    note = answer.notes[0]
    assert (note.cause, note.since) == ("xid_history", None)
    assert "unknown" in note.says


async def test_at_none_is_a_files_newest_sample(tmp_path):
    file = tmp_path / "old.prom"
    labels = 'gpu="0",UUID="GPU-1",Hostname="node-1",modelName="NVIDIA H100 80GB HBM3"'
    values = {**STOCK, "DCGM_FI_DEV_SM_CLOCK": 1980}
    lines = [f"{n}{{{labels}}} {v} {int(AT * 1000)}\n" for n, v in values.items()]
    file.write_text("".join(lines))
    answer = await engine().why("node-1:0", FileSource([file]))
    assert answer.at == AT
    assert answer.verdict is Verdict.HEALTHY


UNHEARD_OF = "NVIDIA X900 999GB"
BARE = {
    "DCGM_FI_DEV_GPU_UTIL": 100,
    "DCGM_FI_DEV_SM_CLOCK": 975,
    "DCGM_FI_DEV_GPU_TEMP": 60,
    "DCGM_FI_DEV_POWER_USAGE": 240,
}


async def test_a_busy_gpu_of_an_unknown_model_is_not_healthy_for_want_of_a_yardstick():
    answer = await ask(gpu(BARE, model=UNHEARD_OF))
    assert answer.verdict is Verdict.UNKNOWN
    assert UNHEARD_OF in answer.unknown[0].why
    assert answer.unknown[0].needs == "max_sm_clock"


@pytest.mark.parametrize(
    "more", [{"DCGM_FI_DEV_MAX_SM_CLOCK": 990}, {"DCGM_FI_DEV_CLOCKS_EVENT_REASONS": 0}]
)
async def test_one_yardstick_is_enough(more):
    assert (await ask(gpu({**BARE, **more}, model=UNHEARD_OF))).verdict is Verdict.HEALTHY


async def test_an_idle_gpu_of_an_unknown_model_is_idle():
    idle = {**BARE, "DCGM_FI_DEV_GPU_UTIL": 0, "DCGM_FI_DEV_SM_CLOCK": 345}
    assert (await ask(gpu(idle, model=UNHEARD_OF))).verdict is Verdict.IDLE


async def test_a_clock_far_ahead_does_not_make_the_others_the_past(tmp_path):
    file = tmp_path / "fleet.prom"
    lines = []
    for index in range(4):
        for one in gpu(FULL, index=index):
            labels = ",".join(f'{k}="{v}"' for k, v in one.labels.items())
            for t, v in zip(one.ts.tolist(), one.values.tolist(), strict=True):
                lines.append(f"{one.name}{{{labels}}} {v} {int(t * 1000)}\n")
    lines.append(f"{one.name}{{{labels}}} {v} 4102444800000\n")  # in 2100
    file.write_text("".join(lines))
    found = await engine().sweep(FileSource([file]))
    assert found.at == AT
    assert found.verdicts["healthy"] == 4


async def test_a_board_that_went_on_elsewhere_is_not_off_the_bus():
    before = gpu(FULL, index=3, uuid="GPU-moved", shift_s=-420.0)
    after = gpu(FULL, index=1, host="node-2", uuid="GPU-moved")
    rest = [s for s in node(FULL) if s.labels["gpu"] != "3"]
    answer = await ask([*before, *after, *rest], "node-1:3")
    assert "gpu_off_bus" not in causes(answer)
    assert any("moved from node-1:3 to node-2:1" in w for w in answer.warnings)
