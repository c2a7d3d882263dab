"""``gpuwhy capture`` as a user meets it, without a server."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bot.surfaces.cli import main as cli
from tests.support import nsys as nsys_support

PYTHON = [sys.executable, "-c", "from bot.surfaces.cli.main import main; main()"]


@pytest.fixture(autouse=True)
def clean(monkeypatch, tmp_path):
    for name in list(os.environ):
        if name.startswith("GPUWHY_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


@pytest.fixture
def pretended(tmp_path):
    return nsys_support.pretend(tmp_path)


@pytest.fixture
def options(pretended, tmp_path):
    importer = pretended.folder / "QdstrmImporter"
    words = ["--via", "local", "--nsys", pretended.command, "--importer", importer]
    return [str(word) for word in (*words, "--folder", tmp_path / "captures")]


@pytest.fixture
def gpuwhy(capsys):
    def run(*words: str) -> tuple[int, str, str]:
        status = cli.run(words)
        return status, *capsys.readouterr()

    return run


def wait(until, seconds=20.0):
    deadline = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.02)


def start(*words):
    return subprocess.Popen([*PYTHON, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_a_plan_is_shown_and_nothing_is_run(gpuwhy, options, pretended):
    status, out, err = gpuwhy("capture", "plan", "nsys", "node-3:5", "10s", *options)
    assert (status, err) == (0, "")
    assert out.startswith("Plan: record node-3:5 for 10 s with nsys; nothing has been run yet\n")
    for said in (
        "session:  gpuwhy-5 on node-3, by local",
        "costs:    between under 1 %",
        "start --session=101744 --output=/tmp/gpuwhy-",
        "--sample=none --cpuctxsw=none",
        "taken back by",
        "node-3-gpu5.nsys-rep",
    ):
        assert said in out
    assert pretended.state == "Launched"


def test_a_plan_as_a_document(gpuwhy, options):
    status, out, _ = gpuwhy("capture", "plan", "nsys", "node-3:5", "10s", "--json", *options)
    plan = json.loads(out)
    assert status == 0
    assert next(iter(plan)) == "schema"
    assert plan["schema"] == "gpuwhy/capture-plan/1"
    assert plan["target"] == {"kind": "gpu", "name": "node-3:5", "host": "node-3", "gpu": 5}
    assert plan["duration_s"] == 10.0
    assert [step["id"] for step in plan["steps"]][:3] == ["check", "folder", "start"]


def test_a_run_says_where_the_file_is(gpuwhy, options, tmp_path):
    words = ("capture", "run", "nsys", "node-3:5", "200ms", "--yes", *options)
    status, out, err = gpuwhy(*words)
    assert (status, err) == (0, "")
    assert out.startswith("Captured node-3:5: 0.2 s, 0.0006 MB, ")
    files = list((tmp_path / "captures").glob("*/node-3-gpu5.nsys-rep"))
    assert [f.stat().st_size for f in files] == [600]
    assert f"nsys stats {files[0]}" in out


def test_a_run_as_a_document(gpuwhy, options, tmp_path):
    words = ("capture", "run", "nsys", "node-3:5", "200ms", "--yes", "--json", *options)
    status, out, _ = gpuwhy(*words)
    run = json.loads(out)
    assert status == 0
    assert list(run) == ["schema", "plan", "result"]
    assert run["schema"] == "gpuwhy/capture-run/1"
    assert run["plan"]["schema"] == "gpuwhy/capture-plan/1"
    assert run["result"]["size_bytes"] == Path(run["result"]["file"]).stat().st_size == 600
    assert run["result"]["duration_s"] >= 0.2
    assert run["result"]["log"] == []


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_without_yes_nobody_is_asked_in_a_pipe(gpuwhy, options, pretended, more):
    words = ("capture", "run", "nsys", "node-3:5", "1s", *options, *more)
    status, _, err = gpuwhy(*words)
    assert status == 2
    assert err == "gpuwhy: nobody can be asked whether to run it; add --yes\n"
    assert pretended.state == "Launched"


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("typed", "status", "files"), [("y\n", 0, 1), ("n\n", 130, 0), ("", 130, 0)]
)
def test_at_a_terminal_the_plan_is_shown_and_asked_about(
    gpuwhy, options, tmp_path, monkeypatch, typed, status, files
):
    monkeypatch.setattr("sys.stdin", Terminal(typed))
    ended, out, err = gpuwhy("capture", "run", "nsys", "node-3:5", "200ms", *options)
    assert ended == status
    assert out.startswith("Plan: record node-3:5")
    assert "Run it? [y/N]" in err
    assert len(list((tmp_path / "captures").glob("*/*.nsys-rep"))) == files


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("nsys", "node-3:4", "1s"),
            "no program for node-3:4 runs under nsys on node-3 (there are",
        ),
        (("nsys", "node-3:5", "2m"), "cannot record for 2 min; give at most 1 min"),
        (("nsys", "node-3:5", "10"), "cannot read '10' as a length of time"),
        (("nsys", "job/42", "1s"), "cannot capture on 'job/42': its host is not known"),
        (("nsys", "GPU-3a4f", "1s"), "cannot capture on 'GPU-3a4f': its host is not known"),
        (("nsys", "$(id):5", "1s"), "cannot tell what '$(id):5' names"),
        (("nsys", "a b:5", "1s"), "cannot tell what 'a b:5' names"),
        (("perf", "node-3:5", "1s"), "no profiler 'perf'; use nsys"),
        (("nsys", "node-3:5"), "Missing argument 'DURATION'"),
    ],
)
def test_wrong_usage_is_one_line(gpuwhy, options, words, said):
    status, out, err = gpuwhy("capture", "run", *words, "--yes", *options)
    assert (status, out) == (2, "")
    assert err.startswith("gpuwhy: ")
    assert err.count("\n") == 1
    assert said in err


def test_a_host_that_could_be_an_option_is_refused(gpuwhy, options):
    status, _, err = gpuwhy("capture", "plan", *options, "nsys", "--", "-oProxyCommand=x:5", "1s")
    assert status == 2
    assert "cannot tell what '-oProxyCommand=x:5' names" in err


def test_an_unreachable_host_is_status_3(gpuwhy, tmp_path):
    words = ("--via", "ssh", "--ssh-option", "HostName=127.0.0.1", "--ssh-port", "1")
    words = (*words, "--ssh-config", "/dev/null", "--folder", str(tmp_path))
    status, out, err = gpuwhy("capture", "plan", "nsys", "node-3:5", "1s", "--json", *words)
    assert status == 3
    assert json.loads(out)["error"]["code"] == "target_unreachable"
    assert err.startswith("gpuwhy: cannot reach node-3 by ssh: ")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_undoes_the_capture_first(number, options, pretended, tmp_path):
    process = start("capture", "run", "nsys", "node-3:5", "30s", "--yes", *options)
    wait(lambda: pretended.state == "Collection")
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err.strip()) == (130, b"", b"")
    assert pretended.state == "Launched"
    assert not list((tmp_path / "captures").rglob("*.part"))


def test_what_a_killed_run_left_recording_is_stopped_by_the_next(tmp_path):
    nsys = nsys_support.installed()
    index = nsys.free_gpu()
    session = f"gpuwhy-{index}"
    options = ("--via", "local", "--folder", str(tmp_path), "--yes")
    with nsys.armed(session, until=tmp_path / "until"):
        process = start("capture", "run", "nsys", f"node-3:{index}", "30s", *options)
        wait(lambda: nsys.sessions().get(session) == "Collection")
        process.kill()
        process.communicate()
        assert nsys.sessions()[session] == "Collection"

        again = [*PYTHON, "capture", "run", "nsys", "node-3:none", "1s", *options]
        done = subprocess.run(again, capture_output=True, text=True, check=False, timeout=60)
        assert f"of node-3:{index} had been cut off and was undone" in done.stderr
        assert nsys.sessions()[session] == "Launched"
    # The folder on the target went with it.
    plan = json.loads(next(tmp_path.glob("*/finished.jsonl")).read_text().splitlines()[0])
    assert not Path(plan["steps"][1]["argv"][-1]).exists()


def test_a_capture_does_not_go_past_a_server(capsys):
    from bot.surfaces.cli.main import run

    words = ["capture", "plan", "nsys", "node-3:5", "10s", "--server", "http://127.0.0.1:1"]
    assert run(words) == 2
    assert "not through a server" in capsys.readouterr().err
