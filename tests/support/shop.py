"""A tiny knowledge base, for messages that do not change with the real one."""

from __future__ import annotations

from engine.catalogue import Catalogue

ATTACH = {
    "id": "attach",
    "title": "attaching nsys to a running process",
    "kind": "command",
    "text": "nsys cannot attach. Start the program under `nsys launch` and trigger the session.",
    "vendor": "nvidia",
    "versions": "nsys 2021.4 or newer",
    "names": ["nsys attach"],
    "asked": ["can I attach nsys to a running job", "trace a process that already runs"],
    "tools": ["nsys"],
    "commands": [
        {
            "argv": ["nsys", "start", "--session={session}", "--output={output}"],
            "does": "starts the recording of an armed session",
            "risk": "disturbs",
            "privilege": "the user of the program",
            "overhead": "a few percent",
        },
        {
            "argv": ["ssh", "{host}", "nsys", "sessions", "list"],
            "show": "ssh {host} nsys sessions list | grep {gpu}",
            "does": "lists sessions",
        },
    ],
    "flags": [{"flag": "--session", "does": "names the session", "since": "2020.1"}],
    "metrics": [
        {
            "name": "SM_ACTIVE",
            "field": 1002,
            "unit": "ratio",
            "healthy": "above 0.8",
            "problem": "below 0.5",
        }
    ],
    "values": [{"name": "duration", "value": 30, "unit": "s", "note": "enough for most"}],
    "queries": [{"promql": "avg by (Hostname) (x)", "shows": "the mean", "unit": "ratio"}],
    "code": [{"language": "python", "text": "print(1)\n", "does": "prints"}],
    "steps": ["arm a session", "start it"],
    "caution": "A second copy of the program would use the GPU twice.",
    "instead": "nsys launch",
    "facts": {"can_attach": False},
    "source": ["a user guide"],
    "status": "single",
    "errata": [
        {
            "claim": "Common advice attaches with -p.",
            "right": "It cannot.",
            "why": "-p is something else",
        }
    ],
    "see": ["nsys/duration"],
}
DURATION = {
    "id": "duration",
    "title": "limit the length of an nsys recording",
    "kind": "flag",
    "text": "--duration ends the recording and, without --kill none, the program.",
    "names": ["--duration"],
    "asked": ["stop recording after a minute", "how long does nsys record"],
    "tools": ["nsys"],
    "source": ["a user guide"],
    "status": "confirmed",
}
CONCERN = {
    "id": "nsys",
    "title": "Nsight Systems",
    "group": "Tools",
    "text": "Commands and flags.",
    "source": ["us"],
    "status": "confirmed",
}


def shop() -> Catalogue:
    """Return the tiny knowledge base."""
    return Catalogue(
        hash="shop",
        entries={
            "nsys": {"attach": ATTACH, "duration": DURATION},
            "concerns": {"nsys": CONCERN},
            "vocabulary": {"record": {"id": "record", "words": ["recording", "trace"]}},
        },
        taxonomy={},
        signals={},
        models=(),
        origins={"nsys/attach": "knowledge/nsys.yaml", "nsys/duration": "knowledge/nsys.yaml"},
    )
