"""Readers of storage tools: every sample is known, damage and noise do no harm."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.catalogue import Catalogue
from engine.readers.storage import STORAGE_READERS
from tests.engine.readers.conftest import ReadText
from tests.support.listings import SAMPLES, faults_of_damage, said_of

# Sample in tests/data/read, the kind it is of, and its first cause.
KNOWN = {
    "fio.txt": ("fio", None),
    "fio.json": ("fio", None),
    "fio-terse.txt": ("fio", None),
    "lfs-df.txt": ("lfs_df", "storage_full"),
    "lfs-df-i.txt": ("lfs_df", "storage_full"),
    "lfs-getstripe.txt": ("lfs_getstripe", None),
    "lfs-check.txt": ("lfs_check", "storage_slow"),
    "lctl-get-param.txt": ("lctl", "storage_slow"),
    "lctl-rpc-stats.txt": ("lctl", None),
    "lctl-stats.txt": ("lctl", None),
    "lctl-dl.txt": ("lctl_dl", None),
    "mmdiag-waiters.txt": ("mmdiag", "storage_slow"),
    "mmdiag-network.txt": ("mmdiag", None),
    "mmdiag-config.txt": ("mmdiag", None),
    "mmhealth-node-show.txt": ("mmhealth", "ib_link_down"),
    "mmgetstate.txt": ("mmgetstate", "storage_slow"),
    "mmlsdisk.txt": ("mmlsdisk", "storage_slow"),
    "mmdf.txt": ("mmdf", "storage_full"),
    "nfsstat-c.txt": ("nfsstat", None),
    "nfsstat-m.txt": ("nfs_mount", "host_misconfigured"),
    "mount-nfs.txt": ("nfs_mount", None),
    "proc-mountstats.txt": ("mountstats", "storage_slow"),
    "mountstats.txt": ("mountstats", "storage_slow"),
    "nfsiostat.txt": ("nfsiostat", "storage_slow"),
    "df.txt": ("df", "storage_full"),
    "iostat-x.txt": ("iostat", "storage_slow"),
    "gdscheck.txt": ("gdscheck", None),
    "nvidia-fs-stats.txt": ("nvidia_fs", None),
    "cufile-log.txt": ("cufile_log", None),
    "gdsio.txt": ("gdsio", None),
    "dd.txt": ("transfer", "storage_slow"),
    "ior.txt": ("transfer", None),
    "lfs-quota.txt": ("quota", "storage_full"),
}


@pytest.mark.parametrize("name", KNOWN)
def test_a_sample_is_known_by_its_kind_alone(name: str, read_text: ReadText) -> None:
    kind, cause = KNOWN[name]
    answer = read_text((SAMPLES / name).read_text(encoding="utf-8"))
    assert answer.kinds == (kind,)
    assert answer.causes[:1] == ((cause,) if cause else ())
    assert answer.unread_lines <= 5


@pytest.mark.parametrize("name", [n for n in KNOWN if n.endswith(".txt")])
def test_a_damaged_sample_is_read_as_far_as_it_goes(name: str, catalogue: Catalogue) -> None:
    assert faults_of_damage(STORAGE_READERS, name, catalogue) == []


@given(lines=st.lists(st.text(max_size=80), max_size=30))
def test_random_text_has_no_finding(lines: list[str], catalogue: Catalogue) -> None:
    assert said_of(STORAGE_READERS, lines, catalogue) == []


def test_hosts_of_a_parallel_shell_are_told_apart(read_text: ReadText) -> None:
    text = (SAMPLES / "mmdiag-waiters.txt").read_text(encoding="utf-8")
    sound = "=== mmdiag: waiters ===\nWaiting 0.0409 sec since 10:24:00, monitored, thread 2 A: b\n"
    mixed = [f"nsd01: {line}" for line in text.splitlines()]
    mixed += [f"nsd02: {line}" for line in sound.splitlines()]
    answer = read_text("\n".join(mixed))
    assert answer.causes == ("storage_slow",)
    entity = answer.findings[0].entity
    assert entity is not None
    assert entity.name == "nsd01"


def test_more_records_than_are_kept_are_counted(read_text: ReadText) -> None:
    line = "Waiting 64.3890 sec since 17:55:45, monitored, thread 7 NSDThread: for I/O completion\n"
    answer = read_text("=== mmdiag: waiters ===\n" + line * 5_000)
    assert answer.causes == ("storage_slow",)
    assert any("counted only" in note for note in answer.notes)
