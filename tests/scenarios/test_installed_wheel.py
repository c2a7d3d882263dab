"""Somebody installs the wheel into an environment of their own, far from the checkout."""

import json
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CASES = ROOT / "tests" / "data" / "metrics"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    # Built from a copy: two builds at once in one checkout would get into each other's way.
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    for name in ("engine", "bot", "knowledge", "rules"):
        ignored = shutil.ignore_patterns("__pycache__", "_index")
        shutil.copytree(ROOT / name, source / name, ignore=ignored)
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    done = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--outdir", out, source],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return next(out.glob("gpuwhy-*.whl"))


@pytest.fixture(scope="module")
def gpuwhy(wheel, tmp_path_factory):
    """The installed command, in a clean environment that has only what the wheel asks for."""
    home = tmp_path_factory.mktemp("home")
    venv.create(home / "env", with_pip=True)
    python = home / "env" / "bin" / "python"
    flags = {"CPPFLAGS": "-DPyEval_CallObject=PyObject_CallObject"}
    env = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    install = [python, "-m", "pip", "install", "-q"]
    subprocess.run(
        [*install, "--no-binary", "durable-rules", "--no-cache-dir", "durable-rules==2.0.28"],
        check=True,
        capture_output=True,
        timeout=300,
        env={**env, **flags},
    )
    subprocess.run([*install, wheel], check=True, capture_output=True, timeout=600, env=env)

    def run(*args, stdin=None, status=0):
        done = subprocess.run(
            [home / "env" / "bin" / "gpuwhy", *args],
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
            cwd=home,
            input=stdin,
            env={**env, "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")},
        )
        assert done.returncode == status, done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout

    return run


def test_the_wheel_brings_four_packages_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert {t for t in tops if not t.endswith(".dist-info")} == {
        "engine",
        "bot",
        "knowledge",
        "rules",
    }
    for data in ("knowledge", "rules"):
        assert all(n.endswith(".yaml") for n in names if n.startswith(f"{data}/"))
    assert any(n.startswith("engine/catalogue/_index/knowledge-") for n in names)
    assert not [
        n for n in names if n.startswith(("engine/", "bot/")) and "test" in n.lower().split("/")
    ]


def test_decode_works_where_it_was_installed(gpuwhy):
    answer = json.loads(gpuwhy("decode", "xid", "79", "--json"))
    assert answer["candidates"][0]["items"][0]["id"] == "79"
    assert "off the bus" in gpuwhy("decode", "xid", "79")


def test_why_reads_a_metrics_file_and_runs_durable_rules(gpuwhy):
    file = CASES / "h100_locked_clock.prom"
    answer = json.loads(gpuwhy("why", "h100-5:5", "--metrics", str(file), "--json"))
    assert answer["diagnoses"][0]["cause"] == "clocks_locked"
    assert answer["engine"]["inference"] == "durable_rules"


def test_the_demo_runs_in_one_go(gpuwhy):
    text = gpuwhy("demo", "--batch")
    assert "power_brake" in text
    assert "durable_rules" in text
