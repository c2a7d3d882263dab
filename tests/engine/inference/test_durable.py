"""The adapter's manners: threads, memory, forks, warnings, failures half-way."""

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from engine.catalogue.types import Pattern
from engine.inference.compiled import compile_rules
from engine.inference.durable import DurableEvaluator
from tests.support.causes import causes

ROOT = Path(__file__).parents[3]
RULES = causes(
    a=[Pattern(all=("s",))],
    b=[Pattern(all=("t",), unless=("cause/a",))],
    c=[Pattern(any=("cause/a", "cause/b"), none=("u",))],
)
A_AND_C = {("a", 0), ("c", 0)}
B_AND_C = {("b", 0), ("c", 0)}


@pytest.fixture
def evaluator():
    return DurableEvaluator(compile_rules(RULES))


def test_evaluations_do_not_touch_each_other(evaluator):
    for _ in range(3):
        assert evaluator.evaluate(["s", "t"]) == A_AND_C
        assert evaluator.evaluate(["t"]) == B_AND_C
        assert evaluator.evaluate(["t", "unknown/u"]) == {("b", 0)}


def test_no_threads_are_started(evaluator):
    before = set(threading.enumerate())
    DurableEvaluator(compile_rules(RULES)).evaluate(["s"])
    assert set(threading.enumerate()) == before


def test_facts_that_no_rule_knows_are_passed_over(evaluator):
    assert evaluator.evaluate(["s", "stranger"]) == A_AND_C


def resident_kib():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") // 1024


def test_five_thousand_evaluations_leave_nothing_behind(evaluator):
    for _ in range(500):
        evaluator.evaluate(["s", "t"])
    before = resident_kib()
    for _ in range(5000):
        evaluator.evaluate(["s", "t"])
    assert evaluator.evaluate(["t"]) == B_AND_C
    assert resident_kib() - before < 2048


def test_reloading_gives_the_memory_of_old_rules_back():
    program = compile_rules(causes(**{f"c{i}": [Pattern(all=(f"s{i}",))] for i in range(60)}))
    for _ in range(20):
        DurableEvaluator(program)
    before = resident_kib()
    for _ in range(200):
        DurableEvaluator(program)
    assert resident_kib() - before < 8192


def test_engines_with_other_rules_live_side_by_side(evaluator):
    other = DurableEvaluator(compile_rules(causes(a=[Pattern(all=("t",))])))
    assert evaluator.evaluate(["t"]) == B_AND_C
    assert other.evaluate(["t"]) == {("a", 0)}
    assert evaluator.evaluate(["s"]) == A_AND_C


def test_many_threads_at_once(evaluator):
    questions = [(["s", "t"], A_AND_C), (["t"], B_AND_C), (["t", "unknown/u"], {("b", 0)})] * 200
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda question: evaluator.evaluate(question[0]), questions))
    assert answers == [expected for _, expected in questions]


@pytest.mark.parametrize("failing_call", [1, 2])
def test_a_failure_half_way_leaves_no_state_and_spoils_no_later_answer(
    evaluator, monkeypatch, failing_call
):
    host = evaluator._ruleset._host
    name = evaluator._ruleset._name
    assert_facts, delete_state = host.assert_facts, host.delete_state
    calls, deleted = [], []

    def fail_once(*arguments):
        calls.append(arguments)
        if len(calls) == failing_call:
            raise KeyboardInterrupt
        return assert_facts(*arguments)

    def note(ruleset, sid):
        delete_state(ruleset, sid)
        deleted.append(sid)

    monkeypatch.setattr(host, "assert_facts", fail_once)
    monkeypatch.setattr(host, "delete_state", note)
    with pytest.raises(KeyboardInterrupt):
        evaluator.evaluate(["s", "t"])
    # Where the very first call failed there is no state to delete; the rules are loaded anew.
    assert len(deleted) == failing_call - 1
    with pytest.raises(Exception, match="error code"):
        delete_state(name, calls[0][1][0]["sid"])
    assert evaluator.evaluate(["t"]) == B_AND_C
    assert evaluator._ruleset._host is not host


def test_a_thread_that_waited_while_another_failed_does_not_use_what_it_left(evaluator):
    ruleset = evaluator._ruleset
    with ThreadPoolExecutor(1) as pool:
        with ruleset.lock:
            waiting = pool.submit(evaluator.evaluate, ["t"])
            ruleset._fired.append(ruleset._fired)  # would be an error if it were read
            ruleset.stale = True
        assert waiting.result(timeout=20) == B_AND_C
    assert evaluator._ruleset is not ruleset


def test_an_action_that_the_library_lost_is_an_error_not_a_wrong_answer(evaluator, monkeypatch):
    class Broken(list):
        def append(self, value):
            raise MemoryError

    ruleset = evaluator._ruleset
    ruleset._host.get_ruleset(ruleset._name)._actions["r0"]._func = Broken().append
    with pytest.raises(RuntimeError, match="durable_rules lost an action"):
        evaluator.evaluate(["s"])
    assert evaluator.evaluate(["s"]) == A_AND_C


@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_fork_in_the_middle_of_an_evaluation(evaluator):
    ruleset = evaluator._ruleset
    ruleset.lock.acquire()  # as held by a thread that the child does not have
    try:
        child = os.fork()
        if child == 0:
            signal.alarm(20)  # rather killed than waiting for ever
            os._exit(0 if evaluator.evaluate(["t"]) == B_AND_C else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        ruleset.lock.release()
    assert evaluator._ruleset is ruleset
    assert evaluator.evaluate(["s"]) == A_AND_C


def test_nothing_warns_in_a_fresh_process():
    # Not under pytest, whose own filters stand in for those a user has.
    script = """
from engine.catalogue.types import Pattern
from engine.inference import make_inferrer
from tests.support.causes import causes
inferrer = make_inferrer(causes(a=[Pattern(all=("s",))]), prefer="durable_rules")
print(inferrer.name, inferrer.infer({"s": "true"}))
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stderr, done.stdout) == (
        "",
        "durable_rules (Derived(cause='a', patterns=(0,)),)\n",
    )
