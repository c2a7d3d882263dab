"""``gpuwhy watch``: what it is told wrongly, and how events read."""

from __future__ import annotations

import json
import os

import pytest

from bot.announce import Announcer
from bot.commands import watch
from bot.policy import Policy, PolicyRule
from bot.render import plain
from bot.render.blockkit import validate
from bot.store import DeliveryKind
from bot.surfaces.cli import main as cli
from engine.history import Event, EventKind
from tests.support.contracts import conforms
from tests.support.sightings import NOW, WATCH, incident

ID = "6ca476c8473b"


@pytest.fixture(autouse=True)
def clean(monkeypatch, tmp_path):
    for name in list(os.environ):
        if name.startswith("GPUWHY_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "no source of readings; give --prometheus URL"),
        (("--every", "10ms"), "interval 10ms is out of range; give 1s to 1d"),
        (("--every", "soon"), "cannot read 'soon' as a length of time"),
        (("--for", "-1s"), "cannot read '-1s' as a length of time"),
        (("--metrics", "-"), "standard input can be read only once; give a file"),
        (("--once", "--for", "1m"), "--once cannot wait for --for; add --state FILE"),
        (("--server", "http://x"), "a server watches by itself; set watch.every"),
        (("--where", "a", "--metrics", "f"), "selector, column 2"),
        (("--metrics", "missing.prom"), "missing.prom"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_status_2(words, said, capsys):
    assert cli.run(["watch", *words]) == 2
    out, err = capsys.readouterr()
    assert out.count("\n") <= 1  # that it watches, where only the first look shows the mistake
    assert err.startswith("gpuwhy: ")
    assert err.count("\n") == 1
    assert said in err


def test_a_state_that_is_no_database_is_said_in_one_line(tmp_path, capsys):
    file = tmp_path / "state"
    file.write_text("this is text, and no database\n" * 100)
    metrics = tmp_path / "m.prom"
    metrics.write_text('DCGM_FI_DEV_GPU_TEMP{gpu="0",Hostname="a"} 60\n')
    words = ["watch", "--once", "--state", str(file), "--metrics", str(metrics), "--json"]
    assert cli.run(words) == 3
    out, err = capsys.readouterr()
    assert json.loads(out)["error"]["code"] == "store_damaged"
    assert err.count("\n") == 1


def test_a_look_once_at_nothing_is_blind(tmp_path, capsys):
    metrics = tmp_path / "m.prom"
    metrics.write_text('DCGM_FI_DEV_GPU_TEMP{gpu="0",Hostname="a"} 60\n')
    words = ["watch", "--once", "--metrics", str(metrics)]
    assert cli.run(words) == 0
    assert capsys.readouterr() == ("", "")
    assert cli.run([*words, "--where", 'Hostname="nope"']) == 3
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert 'nothing could be checked: no series that fits Hostname="nope" has readings' in err
    metrics.write_text("# EOF\n")
    assert cli.run(words) == 3
    assert "no readings of a GPU or a host" in capsys.readouterr().err


def test_what_fails_once_is_said_once(tmp_path, capsys):
    words = ["watch", "--once", "--metrics", str(tmp_path / "missing.prom")]
    assert cli.run(words) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert cli.run([*words, "--json"]) == 2
    blind, error = capsys.readouterr().out.splitlines()
    assert json.loads(blind)["event"] == "blind"
    assert json.loads(error)["error"]["code"] == "unreadable_input"


def event(kind=EventKind.OPENED, **more):
    about = {"id": ID, "times": 1, "revision": 1, "incident": incident(), "opened_at": NOW}
    return Event(kind, NOW, WATCH, **{**about, **more})


@pytest.mark.parametrize(
    ("made", "line"),
    [
        (
            event(),
            (
                "2027-01-15T08:00:00Z opened power brake on node-1:0"
                f" (power_brake, high, certain) [{ID}]"
            ),
        ),
        (
            event(EventKind.CHANGED, changes=("severity critical, was high", "also on node-1:1")),
            (
                "2027-01-15T08:00:00Z changed power brake on node-1:0 (power_brake, high, certain):"
                f" severity critical, was high; also on node-1:1 [{ID}]"
            ),
        ),
        (
            event(EventKind.CLOSED, times=2, closed_at=NOW, says="not found for 5 min"),
            (
                "2027-01-15T08:00:00Z closed power brake on node-1:0 (power_brake, high, certain),"
                f" time 2: not found for 5 min [{ID}]"
            ),
        ),
        (
            Event(EventKind.BLIND, NOW, WATCH, says=f"{WATCH}: no answer"),
            f"2027-01-15T08:00:00Z blind {WATCH}: no answer",
        ),
    ],
)
def test_an_event_is_one_line_and_a_document(made, line):
    answer = watch.told(made)
    assert plain.render(answer) == f"{line}\n"
    conforms(answer.data, "watch")


def test_labels_from_outside_stay_text():
    hostile = event(incident=incident("<!channel>\x1b[2J\u202e:0", says="`*_~> <@U1> \n\n" * 900))
    assert "\x1b" not in plain.render(watch.told(hostile))
    for kind in (EventKind.OPENED, EventKind.CHANGED, EventKind.CLOSED, EventKind.REOPENED):
        (delivery,) = Announcer("C0", Policy())([event(kind, incident=hostile.incident, times=2)])
        parts = [delivery.payload["message"], *delivery.payload["more"]]
        for message in parts:
            assert not validate(message)
            assert "<!channel>" not in json.dumps(message)
            assert "<@U1>" not in json.dumps(message)


def test_what_happens_to_an_incident_goes_to_one_message():
    kinds = (EventKind.OPENED, EventKind.CHANGED, EventKind.CLOSED, EventKind.REOPENED)
    deliveries = Announcer("C0", Policy())([event(kind) for kind in kinds])
    assert {d.coalesce_key for d in deliveries} == {f"incident/{ID}"}
    assert [d.kind for d in deliveries] == [DeliveryKind.POST, *[DeliveryKind.UPDATE] * 3]
    assert [len(d.payload["more"]) for d in deliveries] == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        (PolicyRule(False, targets=("node-1",)), False),
        (PolicyRule(False, targets=("NODE-2:3",)), False),
        (PolicyRule(False, targets=("node-3",)), True),
        (PolicyRule(False, channels=("C0",), targets=("node-1",)), False),
        (PolicyRule(False, channels=("C9",), targets=("node-1",)), True),
        (PolicyRule(False, who=("group:S1",), targets=("node-1",)), False),
        (PolicyRule(False, who=("user:U1",), targets=("node-1",)), True),
        (PolicyRule(False, commands=("capture",), targets=("node-1",)), True),
    ],
)
def test_what_the_policy_denies_to_a_channel_is_not_announced_there(rule, told):
    found = incident(members=("node-1:0", "node-2:3"))
    announce = Announcer("C0", Policy([rule]))
    assert len(announce([event(incident=found)])) == told
    assert len(announce([Event(EventKind.BLIND, NOW, WATCH, says="no answer")])) == 1
