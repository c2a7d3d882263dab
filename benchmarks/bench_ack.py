"""Acknowledging slash commands: 20 a second over 100 channels, while each one is answered.

The server is a process of its own, over HTTP, with its SQLite store. Every question is a ``why``
on a Prometheus that holds 2,000 GPUs with 40 series each, and its answer goes to a Slack that only
records. Slack gives up on a command that is not acknowledged within three seconds.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlencode

import aiohttp

from benchmarks.fleets import forty_series, moment
from benchmarks.harness import Row, ms
from bot.demo.prometheus import serving
from engine.simulate import Fault, Fleet
from tests.bot.serve.process import Process
from tests.support.slackrequests import FORM, command
from tests.support.slackserver import SlackServer
from tests.support.waiting import until

NODES, CHANNELS, A_SECOND, SECONDS = 250, 100, 20, 20
TARGET_S = 0.2
# Every command asks about one of these.
ASKED = tuple(f"node-{n}" for n in range(1, 9))


def rows() -> list[Row]:
    """Measure acknowledgements and answers."""
    return asyncio.run(_rows())


async def _rows() -> list[Row]:
    start = Fleet(nodes=1).start + 3600.0
    fleet = Fleet(
        nodes=NODES, gpus=8, faults=(Fault("thermal_slowdown_hw", "node-2:3", start - 1500.0),)
    )
    slack = SlackServer()
    await slack.start()
    try:
        async with serving(forty_series(fleet, ASKED)) as url:
            with tempfile.TemporaryDirectory() as folder:
                server = Process(
                    Path(folder),
                    slack,
                    prometheus=url,
                    GPUWHY_SERVER_LEASE="30s",
                    GPUWHY_SLACK_TIMEOUT="15s",
                )
                try:
                    await server.start()
                    return await _measured(server, slack, moment(fleet))
                finally:
                    server.end()
    finally:
        await slack.stop()


async def _measured(server: Process, slack: SlackServer, at: float) -> list[Row]:
    total = A_SECOND * SECONDS
    async with aiohttp.ClientSession() as session, asyncio.TaskGroup() as group:
        begun = time.perf_counter()
        asking = []
        for number in range(total):
            await asyncio.sleep(max(0.0, begun + number / A_SECOND - time.perf_counter()))
            asking.append(group.create_task(_ask(server, session, number, at)))
    acks = sorted(task.result() for task in asking)
    lagging = time.perf_counter()
    await until(lambda: _answered(slack) == total, 120)
    behind = time.perf_counter() - lagging
    return [
        Row(
            f"acknowledge /gpu why, {A_SECOND} a second, p99",
            ms(_at(acks, 0.99)),
            f"p50 {ms(_at(acks, 0.5))}, longest {ms(acks[-1])}",
            "",
            f"< {ms(TARGET_S)}",
            _at(acks, 0.99) < TARGET_S,
        ),
        Row(f"the last of {total} answers after the last question", f"{behind:.1f} s"),
    ]


async def _ask(server: Process, session: aiohttp.ClientSession, number: int, at: float) -> float:
    """Send one command; return how long its acknowledgement took (s)."""
    target = f"{ASKED[number % len(ASKED)]}:{number % 8}"
    body = urlencode(
        command(
            f"why {target} --at {at:.0f}",
            channel_id=f"C{number % CHANNELS}",
            trigger_id=f"t{number}",
        )
    )
    begun = time.perf_counter()
    status = await server.ask(session, body, FORM)
    took = time.perf_counter() - begun
    if status != 200:
        message = f"a command was answered with {status}"
        raise RuntimeError(message)
    return took


def _answered(slack: SlackServer) -> int:
    return sum(" is " in message.content["text"] for message in slack.messages.values())


def _at(values: Sequence[float], share: float) -> float:
    return values[min(len(values) - 1, int(len(values) * share))]
