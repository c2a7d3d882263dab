from __future__ import annotations

from pathlib import Path

import pytest

from bot.answer import Level
from bot.commands.read import Input, judged_by, run
from bot.render import plain
from engine.diagnosis import Engine
from engine.errors import InputError
from tests.support import packaged

XID = b"NVRM: Xid (PCI:0000:1a:00): 79, pid=1234, name=python, GPU has fallen off the bus.\n"


@pytest.fixture(scope="module")
def engine():
    return Engine(packaged.catalogue())


def exposition(gpu: int, mask: int, clock: int) -> bytes:
    labels = f'gpu="{gpu}",UUID="GPU-{gpu:08}-0000-4000-8000-000000000000",Hostname="node-9",modelName="NVIDIA H100 80GB HBM3"'
    readings = {
        "DCGM_FI_DEV_SM_CLOCK": clock,
        "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": mask,
        "DCGM_FI_DEV_GPU_UTIL": 99,
        "DCGM_FI_DEV_GPU_TEMP": 50,
        "DCGM_FI_DEV_POWER_USAGE": 220,
    }
    return "".join(f"{name}{{{labels}}} {value}\n" for name, value in readings.items()).encode()


def test_one_input_gives_the_document_of_the_contract(engine):
    answer = run([Input("stdin", [XID])], catalogue=engine.catalogue)
    assert answer.data["schema"] == "gpuwhy/read/1"
    assert answer.data["causes"][0] == "gpu_off_bus"
    assert answer.data["findings"][0]["line"] == 1
    assert answer.level is Level.CRITICAL


def test_several_inputs_keep_their_names_and_one_that_fails_does_not_stop_the_rest(
    engine, tmp_path
):
    log = tmp_path / "kern.log"
    log.write_bytes(b"nothing here\n" + XID)
    missing = tmp_path / "missing.log"
    answer = run(
        [Input("missing.log", missing), Input("kern.log", log), Input("other", [b"hello\n"])],
        catalogue=engine.catalogue,
    )
    assert [f["file"] for f in answer.data["findings"]] == ["kern.log"]
    assert answer.data["findings"][0]["line"] == 2
    assert answer.data["unread_lines"] == 2
    assert len(answer.errors) == 1
    assert answer.errors[0].exit_status == 2


def test_the_input_that_fails_is_named(engine):
    with pytest.raises(InputError, match=r"photo\.jpg: the input is binary"):
        run([Input("photo.jpg", [b"\xff\xd8\x00\x00"])], catalogue=engine.catalogue)


def test_if_nothing_can_be_read_it_is_an_error(engine, tmp_path):
    with pytest.raises(InputError):
        run([Input("missing", tmp_path / "missing")], catalogue=engine.catalogue)


def test_exporter_text_is_judged_by_the_rules(engine):
    text = exposition(0, 136, 345) + exposition(1, 0, 1900)
    answer = run([Input("metrics", [text])], catalogue=engine.catalogue, diagnose=judged_by(engine))
    assert answer.data["causes"][0] == "power_brake"
    assert answer.data["diagnoses"][0]["cause"] == "power_brake"
    assert "node-9" in plain.render(answer)


def test_what_is_not_recognised_is_no_health(engine):
    answer = run([Input("stdin", [b"lorem ipsum\n" * 3])], catalogue=engine.catalogue)
    assert answer.level is Level.UNKNOWN
    assert plain.render(answer).startswith(
        "Nothing recognised: 3 lines of no known kind; known are "
    )
    empty = run([Input("stdin", [])], catalogue=engine.catalogue)
    assert plain.render(empty).startswith("Nothing recognised: nothing to read\n")
    assert empty.level is Level.UNKNOWN


def test_benign_causes_stand_after_those_of_other_inputs(engine):
    idle = exposition(0, 1, 345).replace(b"} 99\n", b"} 0\n")
    inputs = [Input("a", [idle]), Input("b", [XID])]
    answer = run(inputs, catalogue=engine.catalogue, diagnose=judged_by(engine))
    assert answer.data["causes"][0] == "gpu_off_bus"
    assert answer.data["causes"][-1] == "idle"


def test_a_cause_in_a_later_file_may_stand_first(engine):
    """A rank that ran out of memory is why the others hang, whatever file stands first."""
    hang = (
        b"[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, "
        b"OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600010 milliseconds "
        b"before timing out.\n"
    )
    memory = (
        b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total "
        b"capacity of 79.15 GiB of which 1.10 GiB is free.\n"
    )
    inputs = [Input("rank0", [hang]), Input("rank1", [memory])]
    causes = run(inputs, catalogue=engine.catalogue).data["causes"]
    assert causes == ["gpu_memory_full", "collective_hang"]


def test_an_empty_name_is_no_folder(engine):
    with pytest.raises(InputError, match="name of the file is empty"):
        run([Input("", Path())], catalogue=engine.catalogue)


def test_the_places_of_the_title_are_those_of_what_is_wrong(engine):
    text = (
        b"index, name, temperature.gpu, power.draw [W], utilization.gpu [%]\n"
        b"0, NVIDIA H100 80GB HBM3, 60, 650 W, 99 %\n"
        b"1, NVIDIA H100 80GB HBM3, 89, 240 W, 99 %\n"
    )
    answer = run([Input("stdin", [text])], catalogue=engine.catalogue)
    assert "on GPU 1; cause: thermal_slowdown_sw" in plain.render(answer).splitlines()[0]
