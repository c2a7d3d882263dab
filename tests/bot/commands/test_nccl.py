"""``gpuwhy nccl stats``: the message people see, the document, and what it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bot.answer import Answer, Level
from bot.commands import nccl
from bot.render import json as document
from bot.render import plain
from engine.nccl.files import Given
from tests.support import golden, inspector
from tests.support.contracts import conforms

GPUWHY = [sys.executable, "-c", "from bot.surfaces.cli.main import main; main()", "nccl"]
DEBUG_LOG = "node-1:4000:4242 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>\n"


def answer(*texts: str) -> Answer:
    return nccl.run([Given(f"f{i}", [text.encode()]) for i, text in enumerate(texts)])


def _two_communicators() -> str:
    own = inspector.text(inspector.job(30, late={5: 800}, comm_name="DP Group 0", comm="0x1"))
    other = inspector.job(20, ranks=4, comm_name="TP 0", comm="0x2", size=1 << 20, base_us=90)
    del other[3]
    sends = "".join(
        f"{inspector.record(0, n, 70, collective='Send', kind='p2p', size=3 << 20, comm='0x2')}\n"
        for n in range(5)
    )
    return own + inspector.text(other) + sends + inspector.record(0, 1, 1)[:-2] + "\n"


ANSWERS = {
    "straggler": lambda: answer(_two_communicators()),
    "equal": lambda: answer(inspector.text(inspector.job(30))),
    "one-rank": lambda: answer(inspector.text({0: inspector.job(30)[0]})),
    "averages": lambda: answer("".join(inspector.prom(g, 1000, 400) for g in range(8))),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_plain_text(name: str) -> None:
    golden.check(f"plain/nccl-stats-{name}.txt", plain.render(ANSWERS[name]()))


def test_json() -> None:
    made = ANSWERS["straggler"]()
    golden.check("json/nccl-stats-straggler.json", document.render(made))
    conforms(dict(made.data), "nccl-stats")


@pytest.mark.parametrize("name", ANSWERS)
def test_the_document_keeps_its_schema(name: str) -> None:
    conforms(dict(ANSWERS[name]().data), "nccl-stats")


def test_the_level_is_that_of_the_straggler() -> None:
    assert ANSWERS["straggler"]().level is Level.MEDIUM
    assert answer(inspector.text(inspector.job(3, late={1: 900}))).level is Level.LOW
    assert ANSWERS["equal"]().level is Level.CLEAR


def test_many_groups_are_cut_for_people_and_whole_for_programs() -> None:
    text = "".join(
        f"{inspector.record(rank, 1, 1000 + n, comm=f'0x{n:x}')}\n"
        for n in range(60)
        for rank in range(2)
    )
    made = answer(text)
    shown = plain.render(made)
    assert "36 more groups; --json has all" in shown
    assert len(made.data["groups"]) == 60


def test_a_hostile_name_is_only_text() -> None:
    text = inspector.record(0, 1, 10, comm_name="\x1b[31m<!channel>", host="h\nx")
    assert "\x1b" not in plain.render(answer(text + "\n"))


def gpuwhy(*words: str, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*GPUWHY, *words], input=given, capture_output=True, text=True, timeout=60, check=False
    )


def test_a_folder_on_the_command_line(tmp_path: Path) -> None:
    for rank, lines in inspector.job(30, late={2: 700}).items():
        (tmp_path / f"node-1-pid{rank}.log").write_text("\n".join(lines))
    done = gpuwhy("stats", str(tmp_path), "--fail-on", "medium")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("1 straggler: rank 2 on node-1 (240 records in 8 files)\n")


def test_standard_input() -> None:
    done = gpuwhy("stats", "-", "--json", given=inspector.text(inspector.job(3)))
    assert done.returncode == 0
    assert json.loads(done.stdout)["schema"] == "gpuwhy/nccl-stats/1"


def test_a_log_of_nccl_is_told_on_one_line_that_it_holds_no_durations(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(DEBUG_LOG)
    done = gpuwhy("stats", str(log))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    for word in ("no duration", "NCCL_PROFILER_PLUGIN", "NCCL_INSPECTOR_ENABLE=1", "nsys"):
        assert word in done.stderr


def test_without_a_command_the_help_is_printed_as_it_is() -> None:
    bare, asked = gpuwhy(), gpuwhy("--help")
    assert (bare.returncode, bare.stderr) == (0, "")
    assert bare.stdout == asked.stdout
    assert bare.stdout.count("\n") > 8


def test_one_bad_file_stops_no_other_and_is_told(tmp_path: Path) -> None:
    good = tmp_path / "a.log"
    good.write_text(inspector.text(inspector.job(3)))
    done = gpuwhy("stats", str(good), str(tmp_path / "none.log"))
    assert done.returncode == 2
    assert "No straggler" in done.stdout
    assert "none.log" in done.stderr


def test_it_reads_files_of_this_machine(tmp_path: Path) -> None:
    done = gpuwhy("stats", str(tmp_path), "--server", "http://127.0.0.1:1")
    assert done.returncode == 2
    assert "leave out --server" in done.stderr
