"""Forward chaining with durable_rules 2.0.28. No other module imports the library.

What the library needs, and how it gets it:

- its Host starts two threads that poll: `_Host` starts none, and a lock keeps whole evaluations
  apart. The C part has no thread-local state and never releases the interpreter lock, so it does
  not matter which thread holds ours;
- a negation only sees facts stored before it is tried: a rule that negates anything begins with a
  gate fact, asserted alone once everything before its stratum has settled;
- exceptions in an action are swallowed: actions take one parameter and only append to a list;
- a fact that no rule refers to is refused, and so is the same fact again: only facts of the
  program are asserted, each once;
- its tables have fixed sizes (see `engine.inference.codes`);
- the memory of a state is set up only by the first action that runs in it: a probe does that when
  the ruleset is made, and one state lives at a time, so it always gets the same memory;
- its Host cannot unload a ruleset; the extension can, when ours is no longer used.
"""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable, Iterable
from itertools import count
from threading import Lock
from typing import Any

import durable_rules_engine
from durable import engine as library

from engine.errors import CatalogueError, Problem
from engine.inference.codes import PROBE, Codes, Conditions, encode
from engine.inference.compiled import CompiledRule, Program

# The library reads the clock by `utcfromtimestamp` around every action, only to limit actions to
# ten seconds. From Python 3.12 that is a DeprecationWarning each time, and a filter would have to
# be set and reset around every evaluation, for all threads at once.
library._unix_now = time.monotonic  # noqa: SLF001

Action = Callable[[Any], None]
Key = tuple[str, int]


class _Host(library.Host):  # type: ignore[misc]  # the library is untyped
    """The library's host without its polling threads: nothing here waits for a timer."""

    def _run(self) -> None:
        """Start nothing."""


class DurableEvaluator:
    """Evaluates a program with durable_rules, from any thread, also after a fork.

    Raises:
        CatalogueError: there are more facts or rules, or a pattern is longer, than the library
            holds.
    """

    name = "durable_rules"

    def __init__(self, program: Program) -> None:
        self._program = program
        self._codes, self._conditions = encode(program)
        self._ruleset = self._load()

    def _load(self) -> _Ruleset:
        return _Ruleset(self._program, self._codes, self._conditions)

    def evaluate(self, facts: Iterable[str]) -> set[Key]:
        """Return (cause, pattern index) of every rule that holds, given facts of `Program`."""
        while True:
            ruleset = self._ruleset
            # After a fork the copy may be in the middle of an evaluation, its lock held by a
            # thread that was left behind.
            if ruleset.pid == os.getpid():
                with ruleset.lock:
                    if not ruleset.stale:
                        return ruleset.evaluate(facts)
            self._ruleset = self._load()


class _Ruleset:
    """A program as loaded into the library.

    Attributes:
        lock: to be held by whoever evaluates.
        pid: the process that loaded it.
        stale: an evaluation was cut short; what the library now holds is not trusted.
    """

    def __init__(self, program: Program, codes: Codes, conditions: list[Conditions]) -> None:
        self.pid = os.getpid()
        self.stale = False
        self.lock = Lock()
        self._sids = count()
        self._codes = codes
        self._fired: list[CompiledRule] = []
        self._probed: list[str] = []
        self._name = f"causes-{codes.digest}"
        definition = self._definition(program, conditions)
        try:
            self._host = _Host({self._name: definition})
        except durable_rules_engine.error as error:
            message = f"durable_rules does not take the rules: {error}"
            hint = "disable causes that this site does not need"
            raise CatalogueError([Problem("rules", 1, 1, message, hint)]) from error
        handle = self._host.get_ruleset(self._name)._handle  # noqa: SLF001
        release = weakref.finalize(self, durable_rules_engine.delete_ruleset, handle)
        release.atexit = False
        self._probe()

    def _definition(self, program: Program, conditions: list[Conditions]) -> dict[str, Any]:
        rules = {
            f"r{index}": {"all": list(parts), "dist": 0, "run": _append(self._fired, rule)}
            for index, (rule, parts) in enumerate(zip(program.rules, conditions, strict=True))
        }
        probe = [{"c0": {"w": code}} for code in self._codes.of(PROBE)]
        return {**rules, "probe": {"all": probe, "run": _append(self._probed, PROBE)}}

    def _probe(self) -> None:
        """Fire one rule: sets up the memory of all later states, and shows that rules run."""
        self._run("probe", [self._codes.of(PROBE)])
        if self._probed != [PROBE] or self._fired or self.stale:
            msg = "durable_rules loaded the rules but does not run them"
            raise RuntimeError(msg)

    def evaluate(self, facts: Iterable[str]) -> set[Key]:
        given = [code for fact in facts for code in self._codes.of(fact)]
        return self._run(str(next(self._sids)), [given, *self._codes.gates])

    def _run(self, sid: str, batches: list[list[str]]) -> set[Key]:
        """Assert the batches one after the other, and after each what it lets follow."""
        held: set[Key] = set()
        known: set[str] = set()
        try:
            for batch in batches:
                pending = batch
                while pending:
                    self._assert(pending, sid)
                    held.update((rule.cause, rule.pattern) for rule in self._fired)
                    new = {rule.derives for rule in self._fired} - known
                    self._fired.clear()
                    known |= new
                    pending = [code for fact in sorted(new) for code in self._codes.of(fact)]
        except BaseException:
            self.stale = True
            raise
        finally:
            self._delete(sid)
        return held

    def _assert(self, codes: list[str], sid: str) -> None:
        state = self._host.assert_facts(
            self._name, [{"sid": sid, "id": code, "w": code} for code in codes]
        )
        if state and "exception" in state:
            msg = f"durable_rules lost an action: {state['exception']}"
            raise RuntimeError(msg)

    def _delete(self, sid: str) -> None:
        try:
            self._host.delete_state(self._name, sid)
        except durable_rules_engine.error:
            # Nothing was asserted yet, or the library lost the state: never reuse either.
            self.stale = True


def _append(target: list[Any], value: Any) -> Action:
    """Return an action that notes that its rule fired. The library counts its parameters."""

    def action(_context: Any) -> None:
        target.append(value)

    return action
