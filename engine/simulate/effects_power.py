"""Faults of power, heat and clocks."""

from __future__ import annotations

import numpy as np

from engine.simulate.environment import Environment
from engine.simulate.faults import Effect, Span
from engine.simulate.noise import Floats
from engine.simulate.physics import power_share
from engine.simulate.workloads import phase

_HALF_CLOCK_POWER = power_share(np.array(0.5))


def _loaded_w(span: Span) -> Floats:
    """Return the power a bad cooler has to cope with: that of the usual work, or half of TDP."""
    boards = span.boards
    return np.maximum(boards.typical_w[span.cols], 0.5 * boards.tdp_w[span.cols])


def _resistance_for(span: Span, die_c: Floats) -> Floats:
    """Return the factor on thermal resistance that settles the die at ``die_c`` under load."""
    boards = span.boards
    inlet = boards.inlet_c[boards.node][span.cols]
    rise = _loaded_w(span) * boards.resistance[span.cols]
    return np.asarray((die_c - inlet) / rise, dtype=np.float64)


def _power_limit_lowered(env: Environment, span: Span) -> None:
    boards = span.boards
    top, low = boards.tdp_w[span.cols], 1.15 * boards.power_min_w[span.cols]
    limit = np.round(top - span.severity * (top - low))
    span.set(env.requested_w, limit)
    span.set(env.enforced_w, limit)


def _platform_power_cap(env: Environment, span: Span) -> None:
    # The service processor caps through the board, not through the driver: the limit that was
    # requested stays at its default while the one enforced drops.
    boards = span.boards
    top, low = boards.tdp_w[span.cols], 1.3 * boards.power_min_w[span.cols]
    span.set(env.enforced_w, np.round(top - span.severity * (top - low)))


def _power_bound(env: Environment, span: Span) -> None:
    span.set(env.phase, phase("power_bound"))
    span.set(env.blend, 0.6 + 0.4 * span.severity)


def _power_brake(env: Environment, span: Span) -> None:
    span.set(env.brake, 1.0)


def _thermal_slowdown_sw(env: Environment, span: Span) -> None:
    # Ten to twenty kelvin beyond the limit if the driver did nothing: it has to act.
    beyond = 10.0 + 10.0 * span.severity
    target = _resistance_for(span, span.boards.max_op_c[span.cols] + beyond)
    span.set(env.resistance, 1.0 + (target - 1.0) * span.grown(150.0))


def _thermal_slowdown_hw(env: Environment, span: Span) -> None:
    # A cooler that has come loose: at the slowdown temperature even with clocks halved, and
    # faster there than the driver's own slowdown can follow.
    boards = span.boards
    leak = 1.2 * boards.idle_w[span.cols]
    full = _loaded_w(span)
    halved = (leak + (full - boards.idle_w[span.cols]) * _HALF_CLOCK_POWER) / full
    hot = boards.slowdown_c[span.cols] + 0.5 + 1.5 * span.severity
    inlet = boards.inlet_c[boards.node][span.cols]
    target = _resistance_for(span, inlet + (hot - inlet) / halved)
    span.set(env.resistance, 1.0 + (target - 1.0) * span.grown(150.0))
    span.set(env.driver_floor, 0.85)


def _memory_overheat(env: Environment, span: Span) -> None:
    # A bad contact over the stacks: the memory warms, the die does not.
    span.set(env.mem_rise, (32.0 + 18.0 * span.severity) * span.grown(180.0))
    span.set(env.driver_floor, 0.75)


def _cooling_outlier(env: Environment, span: Span) -> None:
    boards = span.boards
    inlet = boards.inlet_c[boards.node][span.cols]
    usual = inlet + boards.typical_w[span.cols] * boards.resistance[span.cols]
    hot = np.minimum(usual + 8.0 + 10.0 * span.severity, boards.max_op_c[span.cols] - 4.0)
    target = np.maximum(_resistance_for(span, hot), 1.0)
    span.set(env.resistance, 1.0 + (target - 1.0) * span.grown(150.0))


def _node_airflow(env: Environment, span: Span) -> None:
    # One fan wall down: the GPU that runs hottest ends just above its limit, all others near it.
    inlet_rise = 6.0 * span.severity
    hot = span.boards.max_op_c[span.cols] - 10.0 + 12.0 * span.severity - inlet_rise
    factor = float(np.max(_resistance_for(span, hot)))
    span.set(env.airflow, 1.0 / (1.0 + (max(factor, 1.0) - 1.0) * span.grown(180.0)))
    span.set(env.inlet_rise, inlet_rise * span.grown(180.0))


def _clocks_locked(env: Environment, span: Span) -> None:
    cap = 1.0 - (0.1 + 0.4 * span.severity)
    if span.fault.value is not None:
        cap = span.fault.value / float(span.boards.max_sm[span.cols].max())
    span.set(env.clock_cap, cap)


def _clock_ramp(env: Environment, span: Span) -> None:
    span.set(env.phase, phase("burst"))
    span.set(env.blend, 1.0)
    span.set(env.burst, 1.0)
    span.set(env.slew, 0.10 - 0.06 * span.severity)


def _pstate_stuck(env: Environment, span: Span) -> None:
    span.set(env.pstate, 8.0 if span.severity >= 0.5 else 5.0)
    span.set(env.clock_cap, 0.55 - 0.3 * span.severity)


def _sync_boost_held(env: Environment, span: Span) -> None:
    span.set(env.sync_boost, 1.0)
    span.set(env.clock_cap, 1.0 - (0.1 + 0.35 * span.severity))


EFFECTS = {
    "power_limit_lowered": Effect(_power_limit_lowered),
    "power_bound": Effect(_power_bound),
    "power_brake": Effect(_power_brake, node=True),
    "platform_power_cap": Effect(_platform_power_cap, node=True),
    "thermal_slowdown_sw": Effect(_thermal_slowdown_sw),
    "thermal_slowdown_hw": Effect(_thermal_slowdown_hw),
    "memory_overheat": Effect(_memory_overheat),
    "cooling_outlier": Effect(_cooling_outlier),
    "node_airflow": Effect(_node_airflow, node=True),
    "clocks_locked": Effect(_clocks_locked),
    "clock_ramp": Effect(_clock_ramp),
    "pstate_stuck": Effect(_pstate_stuck),
    "sync_boost_held": Effect(_sync_boost_held),
}
