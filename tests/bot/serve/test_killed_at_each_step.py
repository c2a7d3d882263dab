"""Killed between any two steps of an answer, the next process gives it, once."""

from __future__ import annotations

from pathlib import Path

import aiohttp
import pytest

from tests.bot.serve.process import Process
from tests.bot.serve.test_killed import all_done, answers, body
from tests.support.waiting import eventually

ROOT = Path(__file__).parents[3]
QUESTIONS = "bot.store.questions:Questions"
DELIVERIES = "bot.store.deliveries:Deliveries"
SLACK = "bot.delivery.slack:SlackMessenger"
WORKER = "bot.worker:Worker"
# In the order in which they come, from the request to the note that the answer was sent.
STEPS = [
    (f"{QUESTIONS}.add_question", "before"),
    (f"{QUESTIONS}.add_question", "after"),
    (f"{QUESTIONS}.claim_question", "after"),
    (f"{WORKER}._run", "before"),
    (f"{WORKER}._run", "after"),
    (f"{QUESTIONS}.finish_question", "before"),
    (f"{QUESTIONS}.finish_question", "after"),
    (f"{DELIVERIES}.claim_delivery", "after"),
    (f"{SLACK}.post", "before"),
    (f"{SLACK}.post", "after"),
    (f"{SLACK}.update", "before"),
    (f"{SLACK}.update", "after"),
    (f"{DELIVERIES}.mark_sent", "before"),
    (f"{DELIVERIES}.mark_sent", "after"),
]
# A slash command is taken and shown otherwise; what lies between knows nothing of it.
OF_A_SLASH = [(s, m) for s, m in STEPS if s.startswith(SLACK) or s.endswith("add_question")]
EACH = [(2, *step) for step in STEPS] + [(3, *step) for step in OF_A_SLASH]


def named(value: object) -> str:
    kinds = {2: "mention", 3: "slash"}
    return kinds[value] if isinstance(value, int) else str(value).rpartition(":")[2]


@pytest.mark.parametrize(("number", "step", "moment"), EACH, ids=named)
async def test_killed_at_a_step_the_answer_still_comes_once(number, step, moment, slack, tmp_path):
    request, kind, word = body(number)
    server = Process(tmp_path, slack)
    server.prelude = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        f"from tests.support.killing import kill_at; kill_at({step!r}, {moment!r})"
    )
    try:
        await server.start()
        async with aiohttp.ClientSession() as session:
            taken = await server.ask(session, request, kind)
            # The step was reached: nothing but the kill ends the process.
            assert await server.ended(60) == -9
            server.prelude = ""
            await server.start()
            if taken != 200:  # Slack sends again what was not acknowledged
                await server.insist(session, request, kind)
        await all_done(tmp_path)

        async def answered() -> bool:
            return answers(slack, word) == 1

        await eventually(answered, 30)
        assert await server.stop() == 0
    finally:
        server.end()
    assert answers(slack, word) == 1
    assert not slack.invalid
