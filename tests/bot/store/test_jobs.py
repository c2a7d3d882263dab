"""A job is decided once, run by one worker, and its journal outlives the worker."""

from __future__ import annotations

import asyncio

from bot.store import Job, JobState, Store
from tests.support.stores import LEASE_S, NOW, ask, post

PLAN = {"profiler": "nsys", "steps": [["nsys", "start", "--session=gpuwhy-5"]]}
ALICE = {"kind": "slack", "id": "U1"}
BOB = {"kind": "slack", "id": "U2"}


async def plan(store: Store, **more: object) -> str:
    given = {"kind": "capture", "plan": PLAN, "expires_at": NOW + 600, "now": NOW, **more}
    return await store.create_job(**given)  # type: ignore[arg-type]


async def approved(store: Store) -> str:
    job_id = await plan(store)
    assert await store.decide_job(job_id, approve=True, by=ALICE, now=NOW + 1)
    return job_id


async def run(store: Store, worker: str = "w1", *, now: float = NOW) -> Job | None:
    return await store.claim_job(worker, lease_s=LEASE_S, now=now)


async def state(store: Store, job_id: str) -> JobState:
    job = await store.get_job(job_id)
    assert job is not None
    return job.state


async def test_a_plan_waits_for_a_decision(store: Store) -> None:
    question_id, _ = await ask(store)
    job_id = await plan(store, question_id=question_id)

    assert await run(store) is None
    job = await store.get_job(job_id)
    assert job is not None
    assert (job.kind, job.plan, job.question_id) == ("capture", PLAN, question_id)
    assert (job.state, job.expires_at, job.decided_by) == (JobState.PLANNED, NOW + 600, None)
    assert await store.get_job("other") is None


async def test_the_first_decision_counts(store: Store) -> None:
    question_id, _ = await ask(store)
    job_id = await plan(store, question_id=question_id)

    assert await store.decide_job(
        job_id, approve=False, by=BOB, deliveries=[post("denied")], now=NOW + 1
    )
    assert not await store.decide_job(
        job_id, approve=True, by=ALICE, deliveries=[post("approved")], now=NOW + 2
    )

    job = await store.get_job(job_id)
    assert job is not None
    assert (job.state, job.decided_by, job.decided_at) == (JobState.DENIED, BOB, NOW + 1)
    assert [d.payload for d in await store.deliveries_of(question_id)] == [{"text": "denied"}]
    assert await run(store) is None
    assert not await store.decide_job("other", approve=True, by=ALICE, now=NOW)


async def test_of_many_who_decide_at_once_one_does(store: Store) -> None:
    job_id = await plan(store)

    said = await asyncio.gather(
        *(
            store.decide_job(job_id, approve=n % 2 == 0, by={"id": f"U{n}"}, now=NOW)
            for n in range(20)
        )
    )

    assert said.count(True) == 1
    job = await store.get_job(job_id)
    assert job is not None
    assert job.decided_by == {"id": f"U{said.index(True)}"}


async def test_a_plan_on_which_nobody_decided_expires(store: Store) -> None:
    job_id = await plan(store)
    later = await plan(store, expires_at=NOW + 601)

    assert await store.expire_jobs(now=NOW + 599.9) == ()
    assert not await store.decide_job(job_id, approve=True, by=ALICE, now=NOW + 600)
    expired = await store.expire_jobs(now=NOW + 600)

    assert [job.id for job in expired] == [job_id]
    assert expired[0].state is JobState.EXPIRED
    assert await store.expire_jobs(now=NOW + 600) == ()
    assert await state(store, later) is JobState.PLANNED


async def test_an_approved_job_runs_once_and_ends_with_its_result(store: Store) -> None:
    job_id = await approved(store)

    job = await run(store, "w1")
    assert job is not None
    assert (job.id, job.state, job.attempts) == (job_id, JobState.RUNNING, 1)
    assert await run(store, "w2") is None

    result = {"file": "x.nsys-rep", "size_bytes": 23}
    assert not await store.finish_job(job_id, "w2", done=True, result=result, now=NOW)
    assert await store.finish_job(job_id, "w1", done=True, result=result, now=NOW + 9)
    assert not await store.finish_job(job_id, "w1", done=False, result={}, now=NOW + 10)

    job = await store.get_job(job_id)
    assert job is not None
    assert (job.state, job.result, job.finished_at) == (JobState.DONE, result, NOW + 9)
    assert await run(store, now=NOW + 9 * LEASE_S) is None


async def test_a_failed_job_says_so(store: Store) -> None:
    job_id = await approved(store)
    await run(store)

    assert await store.finish_job(job_id, "w1", done=False, result={"error": "x"}, now=NOW)
    assert await state(store, job_id) is JobState.FAILED


async def test_the_result_comes_with_its_deliveries(store: Store) -> None:
    question_id, _ = await ask(store)
    job_id = await plan(store, question_id=question_id)
    await store.decide_job(job_id, approve=True, by=ALICE, now=NOW)
    await run(store)

    news = {"done": True, "result": {}, "deliveries": [post("file")], "now": NOW}
    assert not await store.finish_job(job_id, "w2", **news)
    assert await store.deliveries_of(question_id) == ()
    assert await store.finish_job(job_id, "w1", **news)
    assert len(await store.deliveries_of(question_id)) == 1


async def test_the_journal_tells_the_next_worker_how_far_the_lost_one_came(store: Store) -> None:
    job_id = await approved(store)
    await run(store, "w1")
    for n, step in enumerate(("start", "wait")):
        assert await store.append_journal(
            job_id, "w1", step=step, detail={"n": n, "text": "\0"}, now=NOW + n
        )

    assert await run(store, "w2", now=NOW + LEASE_S - 1) is None
    taken = await run(store, "w2", now=NOW + LEASE_S)

    assert taken is not None
    assert (taken.id, taken.attempts) == (job_id, 2)
    journal = await store.list_journal(job_id)
    assert [(e.seq, e.step, e.at) for e in journal] == [(1, "start", NOW), (2, "wait", NOW + 1)]
    assert journal[0].detail == {"n": 0, "text": "\0"}
    # The lost one wakes up: it must not take another step.
    assert not await store.append_journal(job_id, "w1", step="stop", detail={}, now=NOW + 90)
    assert not await store.renew_job(job_id, "w1", lease_s=LEASE_S, now=NOW + 90)
    assert await store.append_journal(job_id, "w2", step="undo", detail={}, now=NOW + 91)
    assert [e.step for e in await store.list_journal(job_id)] == ["start", "wait", "undo"]


async def test_a_renewed_job_is_kept(store: Store) -> None:
    job_id = await approved(store)
    await run(store, "w1")

    assert await store.renew_job(job_id, "w1", lease_s=LEASE_S, now=NOW + 50)
    assert await run(store, "w2", now=NOW + LEASE_S + 49) is None


async def test_steps_written_at_once_are_all_there(store: Store) -> None:
    job_id = await approved(store)
    await run(store)

    await asyncio.gather(
        *(store.append_journal(job_id, "w1", step=f"s{n}", detail={}, now=NOW) for n in range(20))
    )

    journal = await store.list_journal(job_id)
    assert [e.seq for e in journal] == list(range(1, 21))
    assert {e.step for e in journal} == {f"s{n}" for n in range(20)}
