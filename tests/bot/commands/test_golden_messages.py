"""Every message as people see it, held by golden files that are read in review."""

from __future__ import annotations

import pytest

from bot.answer import Answer
from bot.commands import decode, read, sweep, why
from bot.render import json, plain, terminal
from tests.support import answers, golden

CORE = frozenset({"gpu_util", "sm_clock", "gpu_temp", "power_usage"})
ANSWERS: dict[str, Answer] = {
    **{f"why-{name}": why.answer(a, CORE) for name, a in answers.WHYS.items()},
    **{f"sweep-{name}": sweep.answer(a) for name, a in answers.SWEEPS.items()},
    **{f"decode-{name}": decode.answer(a) for name, a in answers.DECODES.items()},
    **{
        f"read-{name}": read.answer([read.Part("kern.log", a)], a.causes)
        for name, a in answers.READS.items()
    },
    "read-files": read.answer(
        [read.Part(name, a) for name, a in answers.READS.items()],
        list(dict.fromkeys(c for a in answers.READS.values() for c in a.causes)),
    ),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_plain_text(name):
    golden.check(f"plain/{name}.txt", plain.render(ANSWERS[name]))


@pytest.mark.parametrize("name", ["why-degraded", "sweep-incidents", "decode-mask", "read-xid"])
def test_terminal_without_colour(name):
    text = terminal.render(ANSWERS[name], width=80, colour=False)
    assert "\x1b" not in text
    wide = [x for x in text.splitlines() if len(x) > 80 and "DCGM_" not in x]
    assert not wide, "only what is there to be copied may be longer than the screen"
    golden.check(f"terminal/{name}.txt", text)


@pytest.mark.parametrize("name", ["why-degraded", "sweep-incidents", "decode-mask", "read-files"])
def test_json(name):
    golden.check(f"json/{name}.json", json.render(ANSWERS[name]))
