"""The command line as a user meets it: words in, text and exit status out."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from bot.surfaces.cli import main as cli
from bot.surfaces.cli import why as why_command
from engine.errors import SourceError
from tests.support import answers

PYTHON = [sys.executable, "-c", "from bot.surfaces.cli.main import main; main()"]


@pytest.fixture(autouse=True)
def clean(monkeypatch, tmp_path):
    for name in list(os.environ):
        if name.startswith("GPUWHY_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


@pytest.fixture
def gpuwhy(capsys):
    def run(*words: str) -> tuple[int, str, str]:
        status = cli.run(words)
        return status, *capsys.readouterr()

    return run


@pytest.fixture
def answered(monkeypatch):
    """The engine is replaced: `why` answers with what is given, or raises it."""

    def setting(result):
        async def ask(*_):
            await asyncio.sleep(0)
            if isinstance(result, BaseException):
                raise result
            return result

        monkeypatch.setattr(why_command, "_ask", ask)

    return setting


def degraded():
    from bot.commands import why

    return why.answer(answers.why())


def test_version_and_help(gpuwhy):
    assert gpuwhy("--version") == (0, "gpuwhy 0.1.0\n", "")
    for words in ((), ("--help",), ("-h",)):
        status, out, err = gpuwhy(*words)
        assert (status, err) == (0, "")
        assert "decode" in out


@pytest.mark.parametrize(
    "command", ["why", "sweep", "decode", "read", "rules", "demo", "completion"]
)
def test_every_command_has_help(gpuwhy, command):
    status, out, err = gpuwhy(command, "--help")
    assert (status, err) == (0, "")
    assert out.startswith("Usage: gpuwhy")


def test_the_help_of_why_names_every_form_of_a_target(gpuwhy):
    _, out, _ = gpuwhy("why", "--help")
    said = " ".join(out.split())
    for form in ("job/ID/rank/N", "svc/MODEL,", "svc/MODEL#INSTANCE", "fs/MOUNT", "rack/NAME"):
        assert form in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("wy", "node-3:5"), "no command 'wy' in gpuwhy; did you mean 'why'?"),
        (("rules", "lst"), "no command 'lst' in gpuwhy rules; did you mean 'list'?"),
        (("frobnicate",), "use one of why, sweep"),
        (("why",), "Missing argument 'TARGET...'; see gpuwhy why --help"),
        (("why", "node-3:5"), "no source of readings; give --prometheus URL"),
        (("why", "a:1", "--jsno"), "No such option"),
        (
            ("why", "a:1", "--metrics", "f", "--scrape", "u"),
            "--metrics and --scrape were both given",
        ),
        (("why", "a:1", "--at", "soonish"), "cannot read 'soonish' as a time"),
        (("why", "a:1", "--window", "5"), "cannot read '5' as a length of time"),
        (("why", "a:1", "--window", "2s"), "window 2s is out of range; give 1m to 1d"),
        (("why", "a:1", "--fail-on", "hihg"), "no level 'hihg'; did you mean 'high'?"),
        (("sweep", "--where", "a"), "selector, column 2"),
        (("decode",), "Missing argument"),
        (("decode", "1", "--config", "missing.yaml"), "missing.yaml does not exist"),
        (("completion", "tcsh"), "tcsh"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_status_2(gpuwhy, words, said):
    status, out, err = gpuwhy(*words)
    assert status == 2
    assert out == ""
    assert err.startswith("gpuwhy: ")
    assert err.count("\n") == 1
    assert said in err


def test_errors_are_also_a_document_with_json(gpuwhy):
    status, out, err = gpuwhy("why", "node-3:5", "--json")
    assert status == 2
    error = json.loads(out)["error"]
    assert list(error) == ["code", "message", "hint"]
    assert error["code"] == "no_source"
    assert err.startswith("gpuwhy: no source")


def test_json_after_a_separator_is_a_word(gpuwhy):
    _, out, _ = gpuwhy("why", "--", "--json")
    assert out == ""


@pytest.mark.parametrize(
    ("level", "status"), [(None, 0), ("critical", 1), ("low", 1), ("unknown", 1), ("info", 1)]
)
def test_fail_on_decides_between_0_and_1(gpuwhy, answered, level, status):
    answered(degraded())
    words = ["why", "node-3:5", *(["--fail-on", level] if level else [])]
    assert gpuwhy(*words)[0] == status


def test_an_answer_below_the_level_is_0(gpuwhy, answered):
    from bot.commands import why
    from engine.model import Verdict

    answered(why.answer(answers.why(Verdict.UNKNOWN)))
    assert gpuwhy("why", "a:1", "--fail-on", "low")[0] == 0
    assert gpuwhy("why", "a:1", "--fail-on", "unknown")[0] == 1
    answered(why.answer(answers.why(Verdict.HEALTHY)))
    assert gpuwhy("why", "a:1", "--fail-on", "info")[0] == 0


def test_a_source_that_cannot_be_reached_is_3(gpuwhy, answered):
    answered(SourceError("http://prom:9090: connection refused", hint="check --prometheus"))
    status, out, err = gpuwhy("why", "node-3:5")
    assert (status, out) == (3, "")
    assert err == "gpuwhy: http://prom:9090: connection refused; check --prometheus\n"


def test_an_error_of_our_own_is_70_without_a_traceback(gpuwhy, answered, monkeypatch):
    answered(ZeroDivisionError("oops"))
    status, _, err = gpuwhy("why", "node-3:5")
    assert status == 70
    assert err.count("\n") == 1
    assert "internal error: ZeroDivisionError: oops; run with GPUWHY_DEBUG=1" in err
    monkeypatch.setenv("GPUWHY_DEBUG", "1")
    assert "Traceback" in gpuwhy("why", "node-3:5")[2]


def test_interruption_is_130(gpuwhy, answered):
    answered(KeyboardInterrupt())
    assert gpuwhy("why", "node-3:5")[0] == 130


def test_hostile_words_in_errors_are_not_obeyed(gpuwhy):
    _, _, err = gpuwhy("why", "a:1", "--at", "\x1b[2J\u202e\n")
    assert "\x1b" not in err
    assert "\u202e" not in err


def test_colour_is_for_terminals_or_on_demand(gpuwhy, answered):
    answered(degraded())
    assert "\x1b[" not in gpuwhy("why", "a:1")[1]
    assert "\x1b[" in gpuwhy("why", "a:1", "--color", "always")[1]
    assert "\x1b[" not in gpuwhy("why", "a:1", "--color", "never")[1]


def test_the_document_of_why(gpuwhy, answered):
    answered(degraded())
    status, out, err = gpuwhy("why", "node-3:5", "--json")
    assert (status, err) == (0, "")
    document = json.loads(out)
    assert document["schema"] == "gpuwhy/why/1"
    assert document["diagnoses"][0]["class"] == "fault"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(gpuwhy, shell):
    status, out, _ = gpuwhy("completion", shell)
    assert status == 0
    assert "_GPUWHY_COMPLETE" in out


def test_completion_offers_commands():
    environment = {
        **os.environ,
        "_GPUWHY_COMPLETE": "bash_complete",
        "COMP_WORDS": "gpuwhy sw",
        "COMP_CWORD": "1",
    }
    done = subprocess.run(PYTHON, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["plain,sweep"]


def test_decode_starts_without_anything_heavy():
    program = (
        "import sys; from bot.surfaces.cli.main import run; run(['decode', '0x48']); "
        "print(*sorted({m.partition('.')[0] for m in sys.modules}), file=sys.stderr)"
    )
    subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)  # index
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "hw_thermal" in done.stdout
    loaded = set(done.stderr.split())
    heavy = {"numpy", "aiohttp", "slack_bolt", "sqlalchemy", "pydantic", "rich", "yaml", "requests"}
    assert loaded & heavy == set()


def test_a_reader_that_goes_away_is_quiet():
    done = subprocess.run(
        f"{sys.executable} -c 'from bot.surfaces.cli.main import main; main()' decode 72 | :; "
        "echo ${PIPESTATUS[0]}",
        shell=True, executable="/bin/bash", capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stderr == ""
    assert done.stdout.strip() in {"141", "0"}


def test_text_that_the_locale_lacks_is_not_lost():
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [*PYTHON, "decode", "caf\u00e9"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "caf\\xe9" in done.stdout


def test_interrupting_a_real_process_leaves_no_traceback():
    process = subprocess.Popen(
        [*PYTHON, "why", "a:1", "--metrics", "-"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        time.sleep(3)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 130
        err = process.stderr.read()
    finally:
        process.kill()
        process.stdin.close()
        process.stderr.close()
        process.wait()
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("streams", "status"),
    [("<&-", 0), (">&-", 0), ("2>&-", 0), ("<&- >&- 2>&-", 0), (">/dev/full", 2)],
)
def test_streams_that_are_closed_or_full(streams, status):
    command = ["bash", "-c", f'exec "$0" "$@" {streams}', *PYTHON, "decode", "xid", "79", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == status
    if status:
        assert done.stderr.startswith("gpuwhy: the answer cannot be written: No space left")
    assert len(done.stderr.splitlines()) == (1 if status else 0)


def test_why_takes_a_question_in_words(capsys):
    from pathlib import Path

    from bot.surfaces.cli.main import run

    file = Path(__file__).parents[2] / "data" / "metrics" / "h100_locked_clock.prom"
    words = ["why", "why", "is", "gpu", "5", "on", "h100-5", "slow?", "--metrics", str(file)]
    assert run(words) == 0
    assert capsys.readouterr().out.startswith("h100-5:5 is degraded: SM clock locked low")
