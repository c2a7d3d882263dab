"""The words of the slash command."""

import pytest

from bot.router import parse_words
from engine.errors import UsageError

NSYS = {"profiler": "nsys", "target": "node-3:5", "duration_s": 10.0}


@pytest.mark.parametrize(
    ("words", "command", "args"),
    [
        ("", "help", {}),
        ("  ?  ", "help", {}),
        ("help", "help", {}),
        ("help Capture", "help", {"topic": "capture"}),
        ("why node-3:5", "why", {"target": "node-3:5"}),
        ("WHY node-3:5?", "why", {"target": "node-3:5"}),
        ("why alpha", "why", {"target": "alpha"}),
        ("why fleet", "why", {"target": "fleet"}),
        ("why prod::node-3", "why", {"target": "prod::node-3"}),
        ("why node-3:5 --window 5m", "why", {"target": "node-3:5", "window": "5m"}),
        ("why --window=5m node-3:5", "why", {"target": "node-3:5", "window": "5m"}),
        ("why node-3:5 —window 5m", "why", {"target": "node-3:5", "window": "5m"}),
        ("why node-3:5 --at 03:12", "why", {"target": "node-3:5", "at": "03:12"}),
        ("why node-3:5 --at 2h ago", "why", {"target": "node-3:5", "at": "2h ago"}),
        ('why node-3:5 --at "2h ago"', "why", {"target": "node-3:5", "at": "2h ago"}),
        ("why node-3:5 --at “2h ago”", "why", {"target": "node-3:5", "at": "2h ago"}),
        (
            "why node-3:5 --at 2026-01-31 03:12",
            "why",
            {"target": "node-3:5", "at": "2026-01-31 03:12"},
        ),
        ('why "gpu 5 on node-3"', "why", {"target": "node-3:5"}),
        ("why gpu 5 on node-3", "why", {"target": "node-3:5"}),
        ("why is gpu 5 on node-3 slow?", "why", {"target": "node-3:5"}),
        ("why <http://node-3.lab:9400|node-3.lab:9400>", "why", {"target": "node-3.lab"}),
        ("node-3:5", "why", {"target": "node-3:5"}),
        ("is node-3 ok?", "why", {"target": "node-3"}),
        ("sweep", "sweep", {}),
        ("sweep cluster=a", "sweep", {"where": "cluster=a"}),
        ("sweep cluster=a instance=~n.*", "sweep", {"where": "cluster=a,instance=~n.*"}),
        ("sweep --where cluster=a", "sweep", {"where": "cluster=a"}),
        (
            """sweep --where 'Hostname=~"node-.*",cluster="a"'""",
            "sweep",
            {"where": 'Hostname=~"node-.*",cluster="a"'},
        ),
        ('sweep --where=cluster="a b"', "sweep", {"where": 'cluster="a b"'}),
        ("sweep --at 03:12 --window 1h", "sweep", {"at": "03:12", "window": "1h"}),
        ("anything broken?", "sweep", {}),
        ("export prometheus", "export", {"format": "prometheus"}),
        (
            "export Prometheus --runbooks https://x.example/kb/",
            "export",
            {"format": "prometheus", "runbooks": "https://x.example/kb/"},
        ),
        ("decode 0x48", "decode", {"text": "0x48"}),
        ("decode `0x48`", "decode", {"text": "0x48"}),
        ("decode xid  79?", "decode", {"text": "xid 79"}),
        ("decode a&amp;b", "decode", {"text": "a&b"}),
        ("decode &amp;lt;", "decode", {"text": "&lt;"}),
        ("0x48", "decode", {"text": "0x48"}),
        ("read one\ntwo", "read", {"text": "one\ntwo"}),
        ("read ```\n  one &lt;\n  two\n```", "read", {"text": "  one <\n  two"}),
        (
            "NVRM: Xid (PCI:0000:1a:00): 79, x",
            "read",
            {"text": "NVRM: Xid (PCI:0000:1a:00): 79, x"},
        ),
        ("capture nsys node-3:5 10s", "capture", NSYS),
        ("capture nsys node-3:5", "capture", NSYS),
        ("capture node-3:5 10s", "capture", NSYS),
        ("capture run nsys node-3:5 10s", "capture", NSYS),
        ("capture nsys gpu 5 on node-3 for 10 seconds", "capture", NSYS),
        ("capture nsys node-3:5 1m30s", "capture", NSYS | {"duration_s": 90.0}),
        ('why "job/llama 3"', "why", {"target": "job/llama 3"}),
        ('why is "job/llama 3" slow?', "why", {"target": "job/llama 3"}),
        ("why is svc/a%20b slow?", "why", {"target": "svc/a%20b"}),
        ("capture NSYS job/47 10s", "capture", NSYS | {"target": "job/47"}),
        ("capture py-spy node-3:5 10s", "capture", NSYS | {"profiler": "py-spy"}),
        ("rules", "rules", {"action": "list"}),
        ("rules list", "rules", {"action": "list"}),
        ("rules power_brake", "rules", {"action": "show", "name": "power_brake"}),
        ("rules show power_brake", "rules", {"action": "show", "name": "power_brake"}),
        ("rules test power_brake", "rules", {"action": "test", "name": "power_brake"}),
        ("rules lint", "rules", {"action": "lint"}),
    ],
)
def test_words_are_read(words, command, args):
    found = parse_words(words)
    assert (found.command, found.args) == (command, args)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("wyh node-3:5", "no command 'wyh'; did you mean 'why'?"),
        ("swep", "no command 'swep'; did you mean 'sweep'?"),
        ("cpature nsys node-3:5 10s", "no command 'cpature'; did you mean 'capture'?"),
        ("hlep", "did you mean 'help'?"),
        (
            "bogus",
            "no command 'bogus'; use one of why, sweep, decode, ask, read, calc, kb, export, capture, rules, help",
        ),
        ("don't profile node-3:5", "no command"),
        ("help captrue", "did you mean 'capture'?"),
        ("why", "why needs a target"),
        ("why node-3:5 --windw 5m", "why has no option --windw here; did you mean '--window'?"),
        ("why node-3:5 --json", "why has no option --json here"),
        ("why node-3:5 --window", "--window needs a value"),
        ("why node-3:5 --window --at 03:12", "--window needs a value"),
        ("why node-3:5 --window 5m --window 6m", "--window is given twice"),
        ("why node-3:5 --window 5", "cannot read '5' as a length of time"),
        ("why node-3:5 --at soon", "cannot read 'soon' as a time"),
        ("why &lt;!channel&gt;", "cannot tell what '<!channel>' names"),
        ("why " + "x" * 600, "target is longer than 512 characters"),
        ("sweep node-3", "cannot tell what 'node-3' selects"),
        ("sweep the floor", "cannot tell what 'the' selects"),
        ("decode", "decode needs something"),
        ("read", "read needs text"),
        ("read ```\n```", "read needs text"),
        ("capture", "capture needs a target"),
        ("capture nsys", "capture needs a target"),
        ("capture nsys fleet 10s", "not of the fleet"),
        ("capture nsy node-3:5 10s", "no profiler 'nsy'; did you mean 'nsys'?"),
        ("capture perf node-3:5 10s", "no profiler 'perf'"),
        ("capture nsys node-3:5 10", "10 has no unit; write it with one, such as 10s"),
        ("capture nsys node-3:5 0s", "out of range"),
        ("capture nsys node-3:5 10s tomorrow", "cannot tell what"),
        ("capture list", "capture list is not offered here"),
        ("rules show", "rules show needs a name"),
        ("rules list power_brake", "too many words"),
    ],
)
def test_wrong_words_are_refused_with_the_way_out(words, said):
    with pytest.raises(UsageError) as refused:
        parse_words(words)
    assert said in refused.value.one_line()


def test_what_was_typed_comes_back_in_short():
    assert parse_words("why node-3:5 &amp;").text == "why node-3:5 &"
    assert len(parse_words("read " + "x" * 40_000).text) == 300
