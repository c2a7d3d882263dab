"""``help``: what can be asked, with an example that works as it stands."""

from __future__ import annotations

from dataclasses import dataclass

from bot.answer import Answer, Block, Bullets, Text, bullets, code, line, strong
from engine.catalogue.nearest import did_you_mean
from engine.errors import UsageError


@dataclass(frozen=True, slots=True)
class Topic:
    """One command: what it does, and words that show it."""

    name: str
    does: str
    examples: tuple[str, ...]


TOPICS = (
    Topic(
        "why",
        "say why a GPU, node, pod or job is slow, with the readings that prove it",
        ("why node-3:5", 'why node-3 --at "03:12" --window 30m', "why is gpu 5 on node-3 slow?"),
    ),
    Topic(
        "sweep",
        "find everything that is sick, worst first, by root cause",
        ("sweep", 'sweep --where Hostname=~"node-.*"', "anything sick?"),
    ),
    Topic(
        "decode",
        "say what a throttle mask, Xid, SXid, DCGM field or metric means",
        ("decode 0x48", "decode xid 79", "what is 0x48"),
    ),
    Topic(
        "ask",
        "say which tool, which command, which threshold, or what something means",
        ("ask which tool shows gaps between kernels", "ask how do I see PCIe traffic per GPU"),
    ),
    Topic(
        "calc",
        "work out bus bandwidth, checkpoint time, roofline, KV cache or MFU",
        ("calc busbw algbw=188.5 ranks=8",),
    ),
    Topic("kb", "list, show or search the knowledge base", ("kb show xid/79",)),
    Topic(
        "export",
        "make rules for Prometheus, a Grafana dashboard or Alertmanager routes",
        ("export prometheus",),
    ),
    Topic(
        "read",
        "say what a pasted kernel log, nvidia-smi output or exporter text shows",
        ("read NVRM: Xid (PCI:0000:1a:00): 79, GPU has fallen off the bus.",),
    ),
    Topic(
        "capture",
        "plan a profile of a running program; it runs once somebody approves it",
        ("capture nsys node-3:5 10s",),
    ),
    Topic(
        "rules",
        "list the rules, show one with its thresholds, or say why one did not fire",
        ("rules list", "rules why-not power_brake node-3:5"),
    ),
    Topic("help", "show this, or more about one command", ("help why",)),
)


def run(topic: str = "") -> Answer:
    """Return the list of commands, or what one of them does.

    Raises:
        UsageError: there is no such command.
    """
    known = {one.name: one for one in TOPICS}
    if topic and topic not in known:
        hint = did_you_mean(topic, known, otherwise=f"use one of {', '.join(known)}")
        raise UsageError(f"no command {topic!r}", hint=hint, code="unknown_command")
    shown = [known[topic]] if topic else list(TOPICS)
    blocks: tuple[Block, ...] = tuple(_blocks(shown, alone=bool(topic)))
    title = line(strong(topic), f": {known[topic].does}") if topic else line(strong("What to ask"))
    return Answer(
        title=title,
        blocks=blocks,
        data={
            "schema": "gpuwhy/help/1",
            "commands": [
                {"name": one.name, "does": one.does, "examples": list(one.examples)}
                for one in shown
            ],
        },
    )


def _blocks(shown: list[Topic], *, alone: bool) -> list[Block]:
    if alone:
        examples: Bullets = bullets(line(code(words)) for words in shown[0].examples)
        return [Text(line("For example:")), examples]
    lines = [line(code(one.examples[0]), f"  {one.does}") for one in shown]
    plain_words = line("Plain words do too: ", code("why is gpu 5 on node-3 slow?"))
    return [bullets(lines), Text(plain_words)]
