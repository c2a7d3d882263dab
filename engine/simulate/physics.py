"""Power, heat and clocks: how activity turns into what a GPU reports.

The model, per GPU and second:

    power  = leakage(die temperature) + dynamic(activity) * x * (0.55 + 0.45 x)^2
    x      = SM clock as a ratio of maximum, the lowest of all limiters below
    d(die) = (power - (die - inlet) / resistance) / heat capacity

Limiters, with the bits they set in the clock event mask (NVML): software power cap 0x4 (x such
that power meets the enforced limit), software thermal slowdown 0x20 (the driver steps down while
die or memory are at their maximum operating temperature), hardware thermal slowdown 0x8 | 0x40
(half the clock or less from the slowdown temperature on), external power brake 0x8 | 0x80 (half),
sync boost 0x10, and a pinned clock, which sets no bit. Without work clocks fall and 0x1 is set.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.simulate import noise
from engine.simulate import workloads as w
from engine.simulate.boards import Boards, dynamic_power
from engine.simulate.environment import Environment
from engine.simulate.noise import Flags, Floats, Ints

STEP_S = 5.0
_INNER_S = 1.0
_INNER = int(STEP_S / _INNER_S)
_NS = 1e9

IDLE, POWER_CAP, HW_SLOWDOWN, SYNC_BOOST = 0x1, 0x4, 0x8, 0x10
SW_THERMAL, HW_THERMAL, POWER_BRAKE = 0x20, 0x40, 0x80

_RATIOS = np.linspace(0.0, 1.0, 257)
_POWER_AT = _RATIOS * (0.55 + 0.45 * _RATIOS) ** 2
_LOWEST_RATIO = 0.12

# Counters carried from step to step, all starting at a lifetime value or zero.
# Time counters: nanoseconds during which any of these bits was set.
_TIMED = {
    "power_ns": POWER_CAP, "sync_ns": SYNC_BOOST, "sw_thermal_ns": SW_THERMAL,
    "hw_thermal_ns": HW_THERMAL, "thermal_ns": SW_THERMAL | HW_THERMAL,
    "brake_ns": POWER_BRAKE, "low_util_ns": IDLE,
}  # fmt: skip
_RATES = {
    "sbe": "sbe_rate", "replay": "replay_rate", "pcie_errors": "pcie_error_rate",
    "flit": "flit_rate", "data": "data_rate", "nv_replay": "nv_replay_rate",
    "nv_recovery": "nv_recovery_rate",
}  # fmt: skip
# Counters carried from block to block.
COUNTERS = ("energy_mj", *_TIMED, *_RATES, "host_busy_s")


@dataclass(slots=True)
class State:
    """What the integrator carries from step to step, float64[G] each.

    Attributes:
        die, memory: temperatures (degC).
        driver: clock ratio that software thermal slowdown allows.
        hard: 1.0 while hardware thermal slowdown holds.
        ratio: SM clock as a ratio of maximum.
        power: watts of the last second.
        counters: by name of `COUNTERS`.
    """

    die: Floats
    memory: Floats
    driver: Floats
    hard: Floats
    ratio: Floats
    power: Floats
    counters: dict[str, Floats]

    @classmethod
    def settled(cls, boards: Boards) -> State:
        """Return the state of a fleet that has run its usual work for a while."""
        die = boards.inlet_c[boards.node] + boards.typical_w * boards.resistance
        one = np.ones(len(boards))
        counters = {name: np.zeros(len(boards)) for name in COUNTERS}
        counters["energy_mj"] = np.floor(
            2e12 * (0.2 + noise.constant(boards.seed, "energy", boards.gpus))
        )
        return cls(die, die + 6.0, one, 0.0 * one, one, boards.typical_w.copy(), counters)

    def copy(self) -> State:
        """Return an independent copy."""
        return State(
            self.die.copy(), self.memory.copy(), self.driver.copy(), self.hard.copy(),
            self.ratio.copy(), self.power.copy(), {k: v.copy() for k, v in self.counters.items()},
        )  # fmt: skip


def power_share(ratio: Floats) -> Floats:
    """Return dynamic power at a clock ratio, as a share of that at full clocks."""
    return np.asarray(ratio * (0.55 + 0.45 * ratio) ** 2)


def clock_for(share: Floats) -> Floats:
    """Return the highest clock ratio whose dynamic power stays within a share of full."""
    return np.interp(share, _POWER_AT, _RATIOS)


def integrate(
    boards: Boards,
    state: State,
    steps: Ints,
    *,
    env: Environment,
    activity: Floats,
    inlet_c: Floats,
) -> dict[str, Floats]:
    """Advance ``state`` over consecutive steps and return readings by name, float64[S, G].

    Args:
        boards: the hardware.
        state: advanced in place.
        steps: step numbers (time / `STEP_S`), consecutive.
        env: conditions, [S, G].
        activity: asked-for activity at full clocks, [S, G, columns].
        inlet_c: inlet temperature at each GPU, [S, G].
    """
    shape = (len(steps), len(boards))
    out = {name: np.zeros(shape) for name in ("ratio", "power_w", "die_c", "memory_c")}
    masks = np.zeros((shape[0], _INNER, shape[1]), dtype=np.int64)
    full_w = dynamic_power(boards, activity)
    busy = activity[:, :, w.GR] > 0.01
    gpus_per_node = np.bincount(boards.node)
    for i in range(len(steps)):
        # Fans follow the load of the node.
        load = np.bincount(boards.node, weights=state.power / boards.tdp_w) / gpus_per_node
        fans = 0.72 + 0.28 * np.clip(load, 0.0, 1.0)[boards.node]
        now = _Now(
            full_w=full_w[i],
            busy=busy[i],
            limit_w=env.enforced_w[i],
            cap=env.clock_cap[i],
            brake=env.brake[i] > 0.0,
            boost=busy[i] & (env.sync_boost[i] > 0.0),
            floor=env.driver_floor[i],
            slew=env.slew[i],
            resistance=boards.resistance * env.resistance[i] / (env.airflow[i] * fans),
            inlet_c=inlet_c[i],
            dram=activity[i, :, w.DRAM],
            mem_rise=env.mem_rise[i],
        )
        ratio_sum, power_sum = np.zeros(shape[1]), np.zeros(shape[1])
        for second in range(_INNER):
            masks[i, second] = _second(boards, now, state)
            ratio_sum += state.ratio
            power_sum += state.power
        out["ratio"][i], out["power_w"][i] = ratio_sum / _INNER, power_sum / _INNER
        out["die_c"][i], out["memory_c"][i] = state.die, state.memory
    out["busy"], out["mask"] = busy.astype(np.float64), masks[:, -1].astype(np.float64)
    gained = _gained(boards, env, steps, masks, out["power_w"])
    for name, more in gained.items():
        out[name] = state.counters[name] + np.cumsum(more, axis=0)
        state.counters[name] = out[name][-1].copy()
    return out


@dataclass(slots=True)
class _Now:
    """Conditions that hold for one step, [G] each; names as in `Environment`."""

    full_w: Floats
    busy: Flags
    limit_w: Floats
    cap: Floats
    brake: Flags
    boost: Flags
    floor: Floats
    slew: Floats
    resistance: Floats
    inlet_c: Floats
    dram: Floats
    mem_rise: Floats


def _second(boards: Boards, now: _Now, state: State) -> Ints:
    """Advance every GPU by one second and return its clock event mask."""
    leak = boards.idle_w * (1.0 + 0.004 * (state.die - 40.0))
    by_power = clock_for((now.limit_w - leak) / np.maximum(now.full_w, 1.0))
    bins = np.floor(np.maximum(state.die - 70.0, 0.0) / 8.0)
    others = np.minimum(now.cap, 1.0 - bins * boards.sm_step / boards.max_sm)
    others = np.minimum(others, state.driver)
    halved = np.where(state.die >= boards.slowdown_c + 1.5, 0.25, 0.5)
    others = np.where(state.hard > 0.0, np.minimum(others, halved), others)
    others = np.where(now.brake, np.minimum(others, 0.5), others)
    ratio = np.maximum(np.minimum(others, by_power), _LOWEST_RATIO)
    # Clocks fall at once and rise no faster than the slew.
    ratio = np.minimum(ratio, state.ratio + now.slew * _INNER_S)
    ratio = np.where(now.busy, ratio, boards.idle_sm / boards.max_sm)
    power = leak + now.full_w * power_share(ratio)

    state.ratio, state.power = ratio, power
    lost = (state.die - now.inlet_c) / now.resistance
    state.die = state.die + (power - lost) / boards.heat * _INNER_S
    warm = state.die + 2.0 + 9.0 * now.dram * ratio + now.mem_rise * now.busy
    state.memory = state.memory + (warm - state.memory) / 40.0 * _INNER_S

    capped = now.busy & (by_power < others)
    slowed = now.busy & (state.driver < 1.0)
    hot = state.hard > 0.0
    _step_thermal_limits(boards, now, state)
    return np.asarray(
        IDLE * ~now.busy + POWER_CAP * capped + SYNC_BOOST * now.boost + SW_THERMAL * slowed
        + HW_SLOWDOWN * (hot | now.brake) + HW_THERMAL * hot + POWER_BRAKE * now.brake,
        dtype=np.int64,
    )  # fmt: skip


def _step_thermal_limits(boards: Boards, now: _Now, state: State) -> None:
    """Let driver and hardware react to the temperatures just reached."""
    # The driver holds the die just above its limit, as boards short of cooling are seen to sit.
    over = (state.die > boards.max_op_c + 1.0) | (state.memory > boards.mem_max_op_c)
    cool = (state.die < boards.max_op_c + 0.4) & (state.memory < boards.mem_max_op_c - 1.0)
    state.driver = np.where(over, state.driver - 0.05, state.driver + 0.005 * cool)
    state.driver = np.clip(state.driver, now.floor, 1.0)
    # Released two kelvin below the driver's own limit, so that it does not flutter.
    state.hard = np.where(
        state.die >= boards.slowdown_c,
        1.0,
        np.where(state.die < boards.max_op_c - 2.0, 0.0, state.hard),
    )


def _gained(
    boards: Boards, env: Environment, steps: Ints, masks: Ints, power_w: Floats
) -> dict[str, Floats]:
    """Return what every counter gains at each step, float64[S, G] by name of `COUNTERS`.

    Errors come at their expected number each step, rounded up or down by chance.
    """
    gained = {"energy_mj": power_w * (STEP_S * 1e3)}
    for name, bits in _TIMED.items():
        gained[name] = np.count_nonzero(masks & bits, axis=1) * (_INNER_S * _NS)
    for name, rate in _RATES.items():
        chance = noise.uniform(boards.seed, name, boards.gpus, steps)
        gained[name] = np.floor(getattr(env, rate) * STEP_S + chance)
    gained["host_busy_s"] = np.minimum(env.host_load, 0.9) * STEP_S
    return gained
