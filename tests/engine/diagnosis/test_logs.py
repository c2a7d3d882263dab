"""Xids of kernel logs beside metrics: they join the verdict, and what is unread is never health."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.diagnosis.logged import short_host
from engine.errors import SourceError
from engine.model import Verdict, to_json
from engine.sources.logs.port import LogEvent, Unread
from tests.support.memory import MemorySource
from tests.support.readings import (
    AT,
    FULL,
    causes,
    engine,
    gpu,
    incidents,
    needs,
    node,
    notes,
    up,
    uuid_of,
)

PCI = "0000:{:02x}:00"  # as `tests.support.readings.gpu` numbers them, from 0x10


class Logs:
    """A log source of given events."""

    name = "the log"
    needs_hosts = False
    queries = 0

    def __init__(self, *events, fails=None, wait=0.0, timeout_s=5.0, unread=(), hosts=False):
        self.given = list(events)
        self.fails = fails
        self.wait = wait
        self.timeout_s = timeout_s
        self.unread = list(unread)
        self.needs_hosts = hosts
        self.asked = []
        self.closed = 0

    async def events(self, hosts, start, end):
        self.asked.append((hosts, start, end))
        await asyncio.sleep(self.wait)
        if self.fails:
            raise self.fails
        return [e for e in self.given if start <= e.time <= end]

    def take_unread(self):
        taken, self.unread = self.unread, []
        return taken

    def take_warnings(self):
        return []

    async def aclose(self):
        self.closed += 1


def event(xid, ago, *, host="node-1", index=0, **more):
    where = more.pop("where", "kernel log x")
    return LogEvent(AT - ago, xid, host, PCI.format(16 + index), where=where, **more)


async def why(series, target, logs, **more):
    return await engine().why(target, MemorySource(series), at=AT, logs=logs, **more)


async def test_a_lost_gpu_that_only_the_log_knows_of():
    answer = await why(node(FULL), "node-1:2", Logs(event(79, 120, index=2)))
    assert answer.verdict is Verdict.DEGRADED
    assert causes(answer)[0] == "gpu_off_bus"
    said = [e for e in answer.diagnoses[0].evidence if e.op == "logged"]
    assert said[0].value == 79
    assert "the kernel log has Xid 79 at" in said[0].says
    assert said[0].source == "kernel log x"
    assert said[0].entity.name == "node-1:2"
    # No query of the metrics shows it.
    assert {e.query for e in answer.diagnoses[0].evidence if e.signal == "xid"} == {""}


async def test_a_sibling_is_not_blamed():
    answer = await why(node(FULL), "node-1:3", Logs(event(31, 120, index=2)))
    assert answer.verdict is Verdict.HEALTHY
    assert causes(answer) == []


@pytest.mark.parametrize("xid", [48, 63, 79, 94, 119])
async def test_the_gauge_misses_a_repeat_and_the_log_does_not(xid):
    held = {**FULL, "DCGM_FI_DEV_XID_ERRORS": xid}
    alone = await why(node(held), "node-1:0", None)
    assert "xid_history" in notes(alone)
    answer = await why(node(held), "node-1:0", Logs(event(xid, 300)))
    same = await why(
        node({**FULL, "DCGM_FI_DEV_XID_ERRORS": {"was": 0, "now": xid, "ago": "5m"}}),
        "node-1:0",
        None,
    )
    assert causes(answer)[:1] == causes(same)[:1]
    assert answer.verdict is same.verdict


async def test_an_older_code_of_the_gauge_does_not_come_back_after_the_event():
    """The gauge goes on showing 48 of last week; what came now is 13."""
    held = {**FULL, "DCGM_FI_DEV_XID_ERRORS": 48}
    answer = await why(node(held), "node-1:0", Logs(event(13, 300)))
    assert "ecc_uncorrectable" not in causes(answer)
    assert causes(answer) == ["app_fault_xid"]


async def test_one_line_in_two_logs_is_one_event():
    logs = Logs(event(79, 120.0), event(79, 119.5, where="Loki http://loki"), event(79, 60.0))
    answer = await why(node(FULL), "node-1:0", logs)
    (said,) = [e.says for e in answer.diagnoses[0].evidence if e.op == "logged"]
    assert ", 2 times since" in said


async def test_what_follows_from_a_fault_is_in_the_log_too():
    """The gauge of one scrape shows the last code, 45; the log has its reason."""
    shown = {**FULL, "DCGM_FI_DEV_XID_ERRORS": {"was": 0, "now": 45, "ago": "5m"}}
    logs = Logs(event(48, 302), event(45, 301), event(45, 300))
    answer = await why(node(shown), "node-1:0", logs)
    assert causes(answer)[0] == "ecc_uncorrectable"


async def test_an_event_outside_the_window_is_no_verdict():
    answer = await why(node(FULL), "node-1:0", Logs(event(79, 3600)))
    assert answer.verdict is Verdict.HEALTHY


async def test_a_gpu_that_went_silent_is_explained_by_the_log_of_before():
    """Its exporter lost it three hours ago; the log says why."""
    there = [s for s in node(FULL) if s.labels["gpu"] != "2"]
    gone = gpu(FULL, index=2, shift_s=-3 * 3600.0)
    logs = Logs(event(79, 3 * 3600 + 30, index=2))
    answer = await why([*there, *gone, up(1)], "node-1:2", logs)
    assert len(logs.asked) == 2
    told = " ".join(answer.warnings)
    assert "the kernel log has Xid 79 on node-1:2 at" in told
    assert "3 h" in told
    assert answer.verdict is not Verdict.HEALTHY


async def test_logs_by_uuid_need_no_address():
    series = node(FULL)
    for one in series:
        one.labels.pop("pci_bus_id")
    named = LogEvent(AT - 60, 79, "other-name", "0000:ff:00", uuid_of("node-1", 2))
    answer = await why(series, "node-1:2", Logs(named))
    assert causes(answer)[0] == "gpu_off_bus"
    lacking = await why(series, "node-1:2", Logs(event(79, 60, index=2)))
    assert causes(lacking) == []
    assert any("Xid 79 on GPU 0000:12:00" in w and "fits no GPU" in w for w in lacking.warnings)


@pytest.mark.parametrize("name", ["node-1.example.com", "NODE-1"])
async def test_a_host_may_be_written_long_or_short(name):
    answer = await why(node(FULL), "node-1:2", Logs(event(79, 60, host=name, index=2)))
    assert causes(answer)[0] == "gpu_off_bus"


async def test_hosts_of_one_first_label_are_kept_apart_by_nothing_but_their_address():
    assert short_host("10.20.11.119") == "10.20.11.119"
    assert short_host("fe80::1") == "fe80::1"


# --- sources that fail


@pytest.mark.parametrize(
    "logs",
    [
        Logs(fails=SourceError("Loki http://loki cannot be reached", hint="check it")),
        Logs(wait=30, timeout_s=0.05),
        Logs(unread=[Unread("ssh node-1", "Permission denied", "add the key")]),
        Logs(hosts=True, fails=SourceError("none", hint="check it")),
    ],
    ids=["fails", "slow", "partly", "by host"],
)
async def test_logs_that_cannot_be_read_are_unknown_and_nothing_breaks(logs):
    answer = await why(node(FULL), "node-1:2", logs)
    first = answer.unknown[0]
    assert (first.cause, first.needs) == ("metrics_missing", "kernel_log")
    assert first.why.startswith("logs could not be read: ")
    assert first.fix
    assert "gpu_off_bus" in first.blocks
    assert any(w.startswith("logs could not be read") for w in answer.warnings)
    sweep = await engine().sweep(MemorySource(node(FULL)), at=AT, logs=logs)
    assert sweep.incidents == ()


async def test_the_sweep_says_once_that_logs_could_not_be_read():
    logs = Logs(fails=SourceError("Loki http://loki cannot be reached", hint="check it"))
    series = [s for k in range(40) for s in node(FULL, host=f"node-{k}", gpus=1)]
    sweep = await engine().sweep(MemorySource(series), at=AT, logs=logs)
    assert list(needs(sweep)).count("kernel_log") == 1
    assert len([w for w in sweep.warnings if "logs could not be read" in w]) == 1
    assert len(logs.asked) == 1


async def test_a_source_that_needs_a_host_is_told_which():
    logs = Logs(event(79, 60, index=2), hosts=True)
    answer = await why(node(FULL), uuid_of("node-1", 2), logs)
    assert [hosts for hosts, _, _ in logs.asked] == [["node-1"]]
    assert causes(answer)[0] == "gpu_off_bus"


async def test_metrics_and_logs_are_asked_at_the_same_time():
    logs = Logs(event(79, 60, index=2), wait=0.3)

    class Slow(MemorySource):
        waves = 0

        async def select(self, *args, **more):
            self.waves += 1
            await asyncio.sleep(0.3)
            return await super().select(*args, **more)

    loop = asyncio.get_running_loop()
    began = loop.time()
    source = Slow(node(FULL))
    await engine().why("node-1:2", source, at=AT, logs=logs)
    # One wave, and another one for the last day of what is sick; the logs take no time of their own.
    assert source.waves == 2
    assert loop.time() - began < 0.85


async def test_a_source_that_fails_of_metrics_leaves_no_question_behind():
    logs = Logs(wait=30, timeout_s=60)

    class Down(MemorySource):
        async def select(self, *_args, **_more):
            await asyncio.sleep(0)
            raise SourceError("down")

    with pytest.raises(SourceError):
        await engine().why("node-1:2", Down([]), at=AT, logs=logs)
    others = [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]
    assert others == []


async def test_without_a_log_source_nothing_changes():
    series = node(FULL)
    assert to_json(await why(series, "node-1:2", None)) == to_json(
        await engine().why("node-1:2", MemorySource(series), at=AT)
    )
    quiet = await why(series, "node-1:2", Logs())
    assert to_json(quiet) == to_json(await why(series, "node-1:2", None))


# --- sweep


async def test_a_sweep_finds_what_only_logs_have():
    series = [s for k in (1, 2) for s in node(FULL, host=f"node-{k}", gpus=4)]
    logs = Logs(event(79, 60, index=2), event(63, 60, host="node-2", index=1))
    sweep = await engine().sweep(MemorySource(series), at=AT, logs=logs)
    found = incidents(sweep)
    assert ("gpu_off_bus", "node-1:2") in found
    assert any(entity == "node-2:1" for _, entity in found)
    assert len(found) == 2


async def test_a_sweep_names_hosts_that_only_logs_know():
    logs = Logs(event(79, 60, host="node-9"))
    sweep = await engine().sweep(MemorySource(node(FULL)), at=AT, logs=logs)
    assert any("hosts without metrics: node-9" in w for w in sweep.warnings)


# --- properties


@settings(max_examples=25, deadline=None)
@given(
    found=st.lists(
        st.builds(
            LogEvent,
            time=st.floats(AT - 2000, AT + 2000),
            xid=st.integers(0, 200),
            host=st.sampled_from(["node-1", None, "", "node-1.x", "é", "-x", "a" * 300]),
            pci=st.sampled_from([None, "", "0000:10:00", "0000:11:00", "zz", "10:00.0"]),
            uuid=st.sampled_from([None, "", uuid_of("node-1", 1), "GPU-0"]),
        ),
        max_size=12,
    )
)
def test_any_events_are_taken_without_error(found):
    answer = asyncio.run(why(node(FULL, gpus=2), "node-1", Logs(*found)))
    assert to_json(answer)
    mine = [e for e in found if AT - 900 <= e.time <= AT]
    if not mine:
        assert causes(answer) == []


def both(event_codes, gauge):
    """A node whose gauge holds a code, and a log with codes a second apart, 12 minutes ago."""
    held = {**FULL, "DCGM_FI_DEV_XID_ERRORS": gauge}
    return (
        node(held),
        "node-1:0",
        Logs(*(event(code, 720 - k) for k, code in enumerate(event_codes))),
    )


async def test_the_code_that_decided_is_named_and_what_the_gauge_holds():
    answer = await why(*both([62, 45], 79))
    first = answer.diagnoses[0]
    assert first.cause == "firmware_hang"
    assert "stopped answering: Xid 62 (" in first.says
    assert "The Xid gauge holds 79 (" in first.says
    (said,) = [e for e in first.evidence if e.signal == "xid"]
    assert (said.op, said.value) == ("logged", 62)
    (note,) = [n for n in answer.notes if n.cause == "xid_history"]
    assert "The kernel log has Xid 45 (" in note.says
    assert "The Xid gauge of node-1:0 holds last Xid 79 (" in note.says
    assert "last Xid 45" not in note.says
    assert {(e.op, e.value) for e in note.evidence} == {(">", 79), ("logged", 45)}


async def test_a_gauge_without_a_code_is_not_said_to_hold_one():
    answer = await why(*both([45], 0))
    (note,) = [n for n in answer.notes if n.cause == "xid_history"]
    assert note.says.startswith("The kernel log has Xid 45 (")
    assert "gauge" not in note.says
    assert "has not changed" not in note.says


async def test_a_gauge_that_moved_by_itself_is_evidence_beside_the_log():
    answer = await why(*both([62], {"was": 0, "now": 62, "ago": "5m"}))
    ops = [e.op for e in answer.diagnoses[0].evidence if e.signal == "xid"]
    assert ops == ["changed_to", "logged"]
    assert "last Xid 62 (" in answer.diagnoses[0].says
    assert "The Xid gauge holds" not in answer.diagnoses[0].says


@pytest.mark.parametrize("held", [0, 79, 62])
async def test_no_evidence_says_that_a_gauge_changed_which_did_not(held):
    answer = await why(*both([62, 45], held))
    told = [e for d in (*answer.diagnoses, *answer.notes) for e in d.evidence if e.signal == "xid"]
    assert any(e.op == "logged" for e in told)
    assert not [e.says for e in told if "changed" in e.says]


async def test_events_of_other_hosts_are_told():
    logs = Logs(event(79, 120, host="node-9"), event(79, 90, host="node-8"))
    answer = await why(node(FULL), "node-1:0", logs)
    (warning,) = [w for w in answer.warnings if "kernel log" in w]
    assert warning.endswith("not about: node-8, node-9")
    assert answer.verdict is Verdict.HEALTHY
