"""Many workers, replicas and processes on one database: nothing twice, nothing lost."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bot.store import QuestionState, Store
from tests.support.stores import LEASE_S, NOW, ask, claim, edit, post, send_next

ROOT = Path(__file__).parents[3]
QUESTIONS = 500
WORKERS = 8

# A process of its own: claims questions until there are none, and prints what it got.
CLAIM_ALL = """
import asyncio, sys
from bot.store import Store

async def main(url, worker, now):
    store = Store(url)
    await store.open()
    print("ready", flush=True)
    sys.stdin.readline()
    while question := await store.claim_question(worker, lease_s=60.0, now=now):
        await store.finish_question(question.id, worker, answer={"by": worker}, now=now)
        print(question.id, flush=True)
    await store.close()

asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3])))
"""
# Claims one question or delivery, or leaves a transaction open, says so, and hangs.
CLAIM_AND_HANG = """
import asyncio, sys
from bot.store import Store

async def main(url, what, now):
    store = Store(url)
    await store.open()
    if what == "question":
        found = await store.claim_question("lost", lease_s=60.0, now=now)
        print(found.id, flush=True)
    elif what == "delivery":
        found = await store.claim_delivery("lost", lease_s=60.0, pace_s=0.0, now=now)
        print(found.id, flush=True)
    else:
        async def work(connection):
            await connection.exec_driver_sql("UPDATE questions SET claimed_by = 'lost'")
            print("in the middle", flush=True)
            await asyncio.sleep(600)
        await store._write(work)
    await asyncio.sleep(600)

asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3])))
"""


def start(script: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


async def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = await asyncio.wait_for(asyncio.to_thread(process.stdout.readline), 60)
    assert line, "the process ended early"
    return line.strip()


async def kill(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    await asyncio.to_thread(process.communicate, None, 30)


@asynccontextmanager
async def replicas(url: str, count: int) -> AsyncIterator[list[Store]]:
    stores = [Store(url) for _ in range(count)]
    try:
        for store in stores:
            await store.open()
        yield stores
    finally:
        for store in stores:
            await store.close()


async def test_each_of_many_questions_is_claimed_once(url: str) -> None:
    async with replicas(url, 2) as stores:
        for n in range(QUESTIONS):
            await ask(stores[0], f"k{n}")

        async def work(worker: int) -> list[str]:
            store, name, got = stores[worker % 2], f"w{worker}", []
            while question := await claim(store, name):
                got.append(question.id)
                assert await store.finish_question(question.id, name, answer={}, now=NOW)
            return got

        claimed = await asyncio.gather(*(work(n) for n in range(WORKERS)))

        times = Counter(question_id for got in claimed for question_id in got)
        assert len(times) == QUESTIONS
        assert set(times.values()) == {1}
        assert await claim(stores[0], now=NOW + 9 * LEASE_S) is None


async def test_of_workers_after_one_question_one_gets_it(url: str) -> None:
    async with replicas(url, 4) as stores:
        for n in range(25):
            await ask(stores[0], f"k{n}")
            got = await asyncio.gather(*(claim(s, f"w{i}") for i, s in enumerate(stores)))
            assert sum(question is not None for question in got) == 1


async def test_a_request_delivered_many_times_at_once_is_one_question(url: str) -> None:
    async with replicas(url, 4) as stores:
        for n in range(10):
            added = await asyncio.gather(
                *(ask(s, f"k{n}", deliveries=[post("once")]) for s in stores * 4)
            )
            assert sum(a.is_new for a in added) == 1
            assert len({a.id for a in added}) == 1
            assert len(await stores[0].deliveries_of(added[0].id)) == 1


async def test_senders_keep_the_order_of_every_channel(url: str) -> None:
    async with replicas(url, 2) as stores:
        for n in range(200):
            await stores[n % 2].enqueue([post(f"{n:03}", f"C{n % 5}")], now=NOW)
        sent: dict[str, list[str]] = {f"C{n}": [] for n in range(5)}
        now_sending: Counter[str] = Counter()

        async def work(sender: int) -> None:
            store, idle, dice = stores[sender % 2], 0, random.Random(sender)
            while idle < 20:
                delivery = await send_next(store, f"s{sender}")
                if delivery is None:
                    idle += 1
                    await asyncio.sleep(0.005)
                    continue
                idle = 0
                now_sending[delivery.channel] += 1
                assert now_sending[delivery.channel] == 1
                await asyncio.sleep(dice.random() * 0.002)
                sent[delivery.channel].append(str(delivery.payload["text"]))
                now_sending[delivery.channel] -= 1
                await store.mark_sent(delivery.id, message_ts="1", now=NOW)

        await asyncio.gather(*(work(n) for n in range(6)))

        assert sent == {f"C{n}": [f"{m:03}" for m in range(n, 200, 5)] for n in range(5)}


async def test_the_last_edit_arrives_however_edits_and_sending_race(url: str) -> None:
    async with replicas(url, 2) as (writer, sender):
        await writer.enqueue([post("0", coalesce_key="m")], now=NOW)

        async def write() -> None:
            for n in range(1, 101):
                await writer.enqueue([edit(str(n), coalesce_key="m")], now=NOW)

        seen: list[int] = []

        async def send() -> None:
            while not seen or seen[-1] != 100:
                if delivery := await send_next(sender):
                    seen.append(int(str(delivery.payload["text"])))
                    await sender.mark_sent(delivery.id, message_ts="1", now=NOW)

        await asyncio.wait_for(asyncio.gather(write(), send()), 60)

        assert seen == sorted(seen)
        assert await send_next(sender) is None


async def test_two_processes_share_the_questions(url: str) -> None:
    async with replicas(url, 1) as (store,):
        for n in range(100):
            await ask(store, f"k{n}")
        processes = [start(CLAIM_ALL, url, name, NOW) for name in ("p1", "p2")]
        try:
            assert [await line_of(p) for p in processes] == ["ready", "ready"]
            for process in processes:
                assert process.stdin is not None
                process.stdin.write("go\n")
                process.stdin.flush()
            outputs = [
                await asyncio.to_thread(process.communicate, None, 60) for process in processes
            ]
        finally:
            for process in processes:
                process.kill()
        assert [process.returncode for process in processes] == [0, 0]
        times = Counter(question_id for out, _ in outputs for question_id in out.split())
        assert len(times) == 100
        assert set(times.values()) == {1}


@pytest.mark.parametrize("what", ["question", "delivery"])
async def test_what_a_killed_process_had_is_taken_over_after_the_lease(url: str, what: str) -> None:
    async with replicas(url, 1) as (store,):
        question_id, _ = await ask(store, deliveries=[post("hello")])
        process = start(CLAIM_AND_HANG, url, what, NOW)
        try:
            claimed_id = await line_of(process)
        finally:
            await kill(process)

        async def take(now: float) -> str | None:
            found = await (claim if what == "question" else send_next)(store, "heir", now=now)
            return found and found.id

        assert await take(NOW + LEASE_S - 1) is None
        assert await take(NOW + LEASE_S) == claimed_id
        if what == "question":
            assert claimed_id == question_id
            assert not await store.finish_question(question_id, "lost", answer={}, now=NOW)
            assert await store.finish_question(question_id, "heir", answer={}, now=NOW)


async def test_a_process_killed_in_a_transaction_leaves_nothing_behind(url: str) -> None:
    async with replicas(url, 1) as (store,):
        question_id, _ = await ask(store)
        process = start(CLAIM_AND_HANG, url, "transaction", NOW)
        try:
            assert await line_of(process) == "in the middle"
        finally:
            await kill(process)

        found = await store.get_question(question_id)
        assert found is not None
        assert found.claimed_by is None
        assert await claim(store) is not None


async def test_cancelled_uses_leave_the_store_whole(url: str) -> None:
    async with replicas(url, 1) as (store,):
        dice = random.Random(7)
        for n in range(40):
            await ask(store, f"k{n}")

        async def work(name: str) -> None:
            while question := await claim(store, name):
                await store.finish_question(
                    question.id, name, answer={}, deliveries=[post(channel=question.id)], now=NOW
                )

        for n in range(30):
            tasks = [asyncio.create_task(work(f"w{n}-{i}")) for i in range(4)]
            await asyncio.sleep(dice.random() * 0.01)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        later = NOW + LEASE_S  # what was claimed as its worker was cancelled
        while question := await claim(store, "last", now=later):
            await store.finish_question(
                question.id, "last", answer={}, deliveries=[post(channel=question.id)], now=later
            )
        everything = await store.list_questions(limit=100)
        assert len(everything) == 40
        for question in everything:
            assert question.state is QuestionState.ANSWERED
            assert len(await store.deliveries_of(question.id)) == 1
        assert len(await asyncio.gather(*(store.backlog() for _ in range(20)))) == 20
