"""The map of a site: what it says, and one clear line where it cannot be used."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import UsageError
from engine.sitemap import SiteFile, parse

HERE = Path("sitemap.yaml")
TEXT = """
jobs:
  train-llama: ["node-[8-10]", "node-2:0-1,5", login-1]
  other: [node-2]
job_labels: [pod_label_app]
job_of_pod: '(?P<job>.+)-worker-[0-9]+'
racks:
  r1: ["node-[01-03]"]
"""


def test_hosts_ranges_and_gpus():
    site = parse(TEXT, HERE)
    assert list(site.jobs["train-llama"]) == ["node-8", "node-9", "node-10", "node-2", "login-1"]
    assert site.jobs["train-llama"]["node-2"] == {0, 1, 5}
    assert site.job_at("node-9", 7) == "train-llama"
    assert site.job_at("node-2", 5) == "train-llama"
    assert site.job_at("node-2", 6) == "other"
    assert site.job_at("node-3", 0) is None
    assert site.racks == {"node-01": "r1", "node-02": "r1", "node-03": "r1"}


def test_an_empty_map_says_nothing():
    assert parse("", HERE).jobs == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("jobs: [a]", "jobs: must map names to lists of hosts"),
        ("jobs: {a: node-1}", "'a' must be a list of hosts"),
        ("jobs: {a: ['node-[3-1]']}", "no range of hosts"),
        ("jobs: {a: ['node-1:0-99']}", "no GPU indexes"),
        ("jobs: {a: ['$(reboot)']}", "is no host"),
        ("job_of_pod: '(.+)-worker'", "needs a group named job"),
        ("job_of_pod: '(?P<job>'", "job_of_pod:"),
        ("job_labels: ['a b']", "list of label names"),
        ("job_of_pod: '" + "a" * 600 + "(?P<job>.)'", "longer than"),
        ("jobs: {a: ['node-1:7-3']}", "no GPU indexes"),
        (
            "x: &x ['n-[0-9999]']\njobs: {"
            + ", ".join(f"j{k}: ['n-[0-9999]']" for k in range(20))
            + "}",
            "known are",
        ),
        ("jobs: {" + ", ".join(f"j{k}: ['n-[0-9999]']" for k in range(20)) + "}", "more than"),
        ("rack: {}", "unknown key 'rack'"),
        ("- a", "it is no mapping"),
        ("a: [", "cannot be used: it is not readable YAML at line 2"),
        ("jobs: {a: ['node-[0-999999]', 'm-[0-999999]']}", "more than"),
    ],
)
def test_what_is_wrong_is_one_line(text, said):
    with pytest.raises(UsageError) as caught:
        parse(text, HERE)
    assert said in caught.value.one_line()
    assert "\n" not in caught.value.one_line()


@given(st.text(max_size=200))
def test_any_text_is_a_map_or_an_error(text):
    with contextlib.suppress(UsageError):
        parse(text, HERE)


def test_a_hostile_pattern_takes_no_longer_than_another():
    pattern = parse("job_of_pod: '(?P<job>(a+)+)b'", HERE).job_of_pod
    assert pattern is not None
    assert pattern.fullmatch("a" * 5000 + "!") is None


def test_a_file_is_read_again_when_it_has_changed(tmp_path):
    file = tmp_path / "map.yaml"
    file.write_text("jobs: {a: [node-1]}")
    site = SiteFile(file)
    assert site.current().job_at("node-1", 0) == "a"
    file.write_text("jobs: {b: [node-1]}")
    os.utime(file, ns=(1, 1))
    assert site.current().job_at("node-1", 0) == "b"
    file.unlink()
    with pytest.raises(UsageError, match=r"map\.yaml cannot be used: no such file; check what"):
        site.current()
    with pytest.raises(UsageError, match=r"cannot be used: it is a folder;"):
        SiteFile(tmp_path).current()
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match=r"cannot be used: it is no text in UTF-8;"):
        site.current()


def test_a_gpu_in_two_jobs_counts_for_the_first_and_is_told():
    site = parse(TEXT, HERE)
    assert site.warnings == (
        (
            "the map of the site sitemap.yaml: node-2:0 stands in the jobs train-llama and other; "
            "the first counts"
        ),
    )
    whole = parse("jobs: {a: ['node-[1-3]'], b: ['node-[2-9]']}", HERE)
    assert whole.job_at("node-2", 0) == "a"
    assert whole.warnings == (
        (
            "the map of the site sitemap.yaml: node-2 stands in the jobs a and b (and 1 more); "
            "the first counts"
        ),
    )
    assert parse("jobs: {a: ['node-1:0-3'], b: ['node-1:4-7']}", HERE).warnings == ()


def test_a_node_in_two_racks_counts_for_the_last_and_is_told():
    site = parse("racks: {r1: ['node-[1-2]', node-1], r2: [node-2]}", HERE)
    assert site.racks == {"node-1": "r1", "node-2": "r2"}
    assert site.warnings == (
        "the map of the site sitemap.yaml: node-2 stands in the racks r1 and r2; the last counts",
    )


def test_gpus_of_a_host_that_a_job_names_twice_are_added():
    site = parse("jobs: {a: ['node-1:0-1', 'node-1:4']}", HERE)
    assert site.jobs["a"]["node-1"] == {0, 1, 4}
    assert site.job_at("node-1", 0) == "a"


def test_a_key_that_stands_twice_is_refused_with_its_line():
    text = "racks:\n  r1: [node-1]\n  r2: [node-3]\n  r1: [node-2]\n"
    with pytest.raises(UsageError, match=r"'r1' stands twice, again in line 4"):
        parse(text, Path("map.yaml"))


def test_names_are_text_whatever_yaml_would_make_of_them():
    site = parse("jobs: {0123: [node-1], 12:30: [node-2], on: [node-3]}", Path("map.yaml"))
    assert set(site.jobs) == {"0123", "12:30", "on"}
