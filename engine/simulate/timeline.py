"""The fleet's state over time: blocks of fixed steps, computed on demand, always the same.

The integrator runs from `Timeline.first` in blocks of `BLOCK` steps. Its state is kept at some
block borders, so that any moment can be computed again and yields the same numbers: a live scrape
and a file export agree.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from engine.simulate import noise
from engine.simulate import workloads as w
from engine.simulate.boards import Boards
from engine.simulate.environment import Environment
from engine.simulate.faults import Effect, Fault, Herring, Span
from engine.simulate.noise import Floats, Ints
from engine.simulate.observation import Rows, observe
from engine.simulate.physics import STEP_S, State, integrate
from engine.simulate.workloads import Workloads

BLOCK = 60
_SPIN_UP_BLOCKS = 2
_KEPT_BLOCKS = 3
_KEEP_EVERY = 12

Strike = tuple[Fault | Herring, Effect, slice]


class Timeline:
    """Readings of a fleet by step; see the module docstring."""

    def __init__(
        self, boards: Boards, work: Workloads, strikes: Sequence[Strike], start: float
    ) -> None:
        self._boards, self._work, self._strikes = boards, work, strikes
        self._first = int(start // STEP_S) // BLOCK - _SPIN_UP_BLOCKS
        self._states: dict[int, State] = {self._first: State.settled(boards)}
        self._blocks: OrderedDict[int, Rows] = OrderedDict()

    def rows(self, steps: Ints) -> Rows:
        """Return readings at ascending steps, float64[len(steps), G] by name.

        The first of them must not lie more than `_SPIN_UP_BLOCKS` before the start.
        """
        parts: list[Rows] = []
        index = steps // BLOCK
        for number in np.unique(index):
            block = self._block(int(number))
            where = steps[index == number] - number * BLOCK
            parts.append({name: block[name][where] for name in block})
        if len(parts) == 1:
            return parts[0]
        return {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}

    def _block(self, number: int) -> Rows:
        if number in self._blocks:
            self._blocks.move_to_end(number)
            return self._blocks[number]
        known = max(n for n in self._states if n <= number)
        rows: Rows = {}
        for n in range(known, number + 1):
            state = self._states[n].copy()
            rows = self._compute(n, state)
            self._states[n + 1] = state
            if (n - self._first) % _KEEP_EVERY:
                del self._states[n]
        self._blocks[number] = rows
        if len(self._blocks) > _KEPT_BLOCKS:
            self._blocks.popitem(last=False)
        return rows

    def _compute(self, number: int, state: State) -> Rows:
        steps = np.arange(number * BLOCK, (number + 1) * BLOCK, dtype=np.int64)
        env = self._environment(steps)
        activity = self._activity(env, steps)
        inlet = self._inlet(env, steps)
        rows = integrate(self._boards, state, steps, env=env, activity=activity, inlet_c=inlet)
        rows["inlet_c"] = inlet
        observe(self._boards, env, activity, steps, rows)
        return rows

    def _environment(self, steps: Ints) -> Environment:
        env = Environment.calm(len(steps), self._boards)
        at: Floats = np.multiply(steps, STEP_S, dtype=np.float64)
        for strike, effect, cols in self._strikes:
            lo, hi = np.searchsorted(at, (strike.since, strike.until))
            if lo < hi:
                when = at[lo:hi, None]
                span = Span(
                    slice(int(lo), int(hi)), cols, when - strike.since, when, strike, self._boards
                )
                effect.apply(env, span)
        return env

    def _activity(self, env: Environment, steps: Ints) -> Floats:
        rows = w.TABLE[self._work.phases(steps)]
        struck = env.phase >= 0.0
        if struck.any():
            other = w.TABLE[np.maximum(env.phase, 0.0).astype(np.int64)]
            blend = np.where(struck, env.blend, 0.0)[:, :, None]
            rows = rows * (1.0 - blend) + other * blend
        activity = self._work.activity(rows, steps)
        # Bursts: two steps of work, two of waiting.
        pause = (env.burst > 0.0) & (steps % 4 >= 2)[:, None]
        stopped = env.work <= 0.0
        fb = activity[:, :, w.FB].copy()
        activity *= np.where(pause, 0.0, env.work)[:, :, None]
        activity[:, :, w.NVLINK] *= env.nvlink
        fb = np.where(stopped, w.TABLE[w.phase("idle"), w.FB], fb)
        activity[:, :, w.FB] = np.where((env.fb >= 0.0) & ~stopped, env.fb, fb)
        return activity

    def _inlet(self, env: Environment, steps: Ints) -> Floats:
        boards = self._boards
        drift = noise.smooth(boards.seed, "inlet drift", boards.nodes, steps, period=360)
        return (boards.inlet_c + drift)[:, boards.node] + env.inlet_rise
