"""Physics of one NVIDIA GPU: from a load, limits and cooling to the fields that DCGM reads."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from engine.samples import Floats
from engine.simulate.scenarios.nvidia_boards import Board, Load
from engine.simulate.scenarios.shapes import counter, noisy, ratio, wobble

Flags = npt.NDArray[np.bool_]

# Clock event reasons (nvml.h).
IDLE_BIT, SETTING, POWER_CAP, HW_SLOWDOWN, SYNC_BOOST = 0x1, 0x2, 0x4, 0x8, 0x10
SW_THERMAL, HW_THERMAL, POWER_BRAKE = 0x20, 0x40, 0x80

# Dynamic power falls a little slower than with the square of the clock: voltage has a floor.
_POWER_EXPONENT = 1.8
# Degrees above the inlet at the default limit with usual cooling.
_RISE_C = 37.0
_RISE_TIME_S = 45.0


@dataclass(slots=True)
class Gpu:
    """One GPU: who it is, and its fields (legacy names without ``DCGM_FI_``) over time.

    ``labels`` are added to its series (``pod``, ``hpc_job`` …); from ``gone_at`` (Unix s) the
    exporter no longer sees it. ``more`` holds series with labels of their own: metric name, labels
    added, values. With ``views`` every field comes once for each of them, with its labels and its
    own values (NaN: not there), as for pods that share a GPU and for MIG instances.
    """

    host: str
    index: int
    uuid: str
    pci: str
    board: Board
    ts: Floats
    inlet_c: float
    warmth: float
    fields: dict[str, Floats | float] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    gone_at: float | None = None
    more: list[tuple[str, dict[str, str], Floats | float]] = field(default_factory=list)
    views: list[tuple[dict[str, str], dict[str, Floats | float]]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """HOST:INDEX, as a target."""
        return f"{self.host}:{self.index}"

    def run(
        self, rng: np.random.Generator, load: Load, *, cap_mhz: Floats | float | None = None,
        limit_w: float | None = None, cooling: Floats | float = 1.0,
        memory_cooling: Floats | float = 1.0, inlet_c: Floats | float | None = None,
        bits: Floats | int = 0,
    ) -> None:  # fmt: skip
        """Fill in the fields that follow from a load.

        Args:
            rng: where chance comes from.
            load: what the program does, constant or over time.
            cap_mhz: SM clock that a setting or a slowdown allows; None is the board's maximum.
            limit_w: power limit in force; None is the board's default.
            cooling: rise over the inlet, 1 is usual.
            memory_cooling: the same for memory over die.
            inlet_c: air or coolant temperature.
            bits: clock event reasons, apart from idle and power cap, which follow by themselves.
        """
        board, n = self.board, self.ts.size
        limit = board.tdp_w if limit_w is None else limit_w
        busy = np.broadcast_to(np.asarray(load.gr, dtype=np.float64), (n,)) > 0.01
        clock, power, capped = self._power(rng, load, cap_mhz, limit, busy)
        mask = np.broadcast_to(np.asarray(bits, dtype=np.int64), (n,)) | (capped * POWER_CAP)
        inlet = self.inlet_c if inlet_c is None else inlet_c
        rise = _RISE_C * (power / board.tdp_w) * cooling + self.warmth
        temp = _lag(self.ts, np.broadcast_to(inlet + rise, (n,)))
        over = (4.0 + 11.0 * np.asarray(load.dram)) * memory_cooling
        self.fields |= {
            "DEV_SM_CLOCK": np.round(clock),
            "DEV_MEM_CLOCK": board.mem_mhz,
            "DEV_MAX_SM_CLOCK": board.sm_mhz,
            "DEV_CLOCK_THROTTLE_REASONS": np.where(busy, mask, IDLE_BIT).astype(np.float64),
            "DEV_PSTATE": 0.0,
            "DEV_POWER_USAGE": np.round(power, 3),
            "DEV_POWER_MGMT_LIMIT": limit,
            "DEV_POWER_MGMT_LIMIT_DEF": board.tdp_w,
            "DEV_ENFORCED_POWER_LIMIT": limit,
            "DEV_TOTAL_ENERGY_CONSUMPTION": counter(
                rng, self.ts, power * 1e3, start=float(rng.integers(10**11, 10**12))
            ).round(),
            "DEV_GPU_TEMP": np.round(temp + wobble(rng, n, 0.6)),
            "DEV_GPU_MAX_OP_TEMP": board.max_op_c,
            "DEV_SLOWDOWN_TEMP": board.slowdown_c,
            "DEV_SHUTDOWN_TEMP": board.shutdown_c,
            "DEV_POWER_VIOLATION": self._ns(rng, capped),
            "DEV_THERMAL_VIOLATION": self._ns(rng, (mask & (SW_THERMAL | HW_THERMAL)) > 0),
        }
        if board.mem_max_op_c is not None:
            self.fields["DEV_MEMORY_TEMP"] = np.round(temp + over + wobble(rng, n, 0.7))
            self.fields["DEV_MEM_MAX_OP_TEMP"] = board.mem_max_op_c
        self._activity(rng, load)

    def _power(
        self, rng: np.random.Generator, load: Load, cap_mhz: Floats | float | None,
        limit: float, busy: Flags,
    ) -> tuple[Floats, Floats, Flags]:  # fmt: skip
        """Return SM clock (MHz), power (W) and whether the limit holds the clock."""
        board, n = self.board, self.ts.size
        cap = board.sm_mhz if cap_mhz is None else np.minimum(cap_mhz, board.sm_mhz)
        asked = np.maximum(np.asarray(load.power) * (1.0 + wobble(rng, n, 0.025)), 0.0)
        share = (np.broadcast_to(np.asarray(cap, dtype=np.float64), (n,)) / board.sm_mhz).copy()
        span = board.tdp_w - board.idle_w
        power = board.idle_w + span * asked * share**_POWER_EXPONENT
        capped = (power > limit) & busy
        room = np.maximum(limit - board.idle_w, 1.0) / np.maximum(span * asked, 1e-9)
        share = np.where(capped, np.minimum(share, room ** (1.0 / _POWER_EXPONENT)), share)
        held = limit * (0.99 + 0.006 * rng.standard_normal(n))
        power = np.where(capped, held, power * (1.0 + 0.01 * rng.standard_normal(n)))
        # A loaded board never falls below what its memory and leakage take.
        clock = np.where(busy, np.maximum(share * board.sm_mhz, board.idle_mhz), board.idle_mhz)
        # Clocks move in steps of 15 MHz.
        return np.round(clock / 15.0) * 15.0, power, capped

    def _activity(self, rng: np.random.Generator, load: Load) -> None:
        board, n = self.board, self.ts.size
        gr = ratio(rng, load.gr, n)
        # Busy in a sample period if any kernel ran: counts gaps between kernels as busy.
        util = np.where(gr > 0.02, np.minimum(gr * 1.12 + 0.03, 1.0), 0.0)
        used = np.round(board.fb_mib * np.broadcast_to(np.asarray(load.fb), (n,)))
        reserved = float(round(board.fb_mib * 0.008))
        dram = ratio(rng, load.dram, n, 0.05)
        busy_tx = noisy(rng, np.asarray(load.tx) * 1e9, n, 0.06 * float(np.mean(load.tx)) * 1e9)
        busy_rx = noisy(rng, np.asarray(load.rx) * 1e9, n, 0.06 * float(np.mean(load.rx)) * 1e9)
        self.fields |= {
            "DEV_GPU_UTIL": np.round(100.0 * util),
            "DEV_MEM_COPY_UTIL": np.round(100.0 * np.minimum(dram * 1.1, 1.0)),
            "DEV_FB_USED": used,
            "DEV_FB_FREE": np.maximum(board.fb_mib - reserved - used, 0.0),
            "DEV_FB_RESERVED": reserved,
            "PROF_GR_ENGINE_ACTIVE": gr.round(6),
            "PROF_SM_ACTIVE": np.minimum(ratio(rng, load.sm, n), gr).round(6),
            "PROF_SM_OCCUPANCY": ratio(rng, load.occ, n, 0.04).round(6),
            "PROF_PIPE_TENSOR_ACTIVE": ratio(rng, load.tensor, n, 0.05).round(6),
            "PROF_DRAM_ACTIVE": dram.round(6),
            "PROF_PIPE_FP64_ACTIVE": ratio(rng, load.fp64, n, 0.04).round(6),
            "PROF_PIPE_FP32_ACTIVE": ratio(rng, load.fp32, n, 0.04).round(6),
            "PROF_PIPE_FP16_ACTIVE": ratio(rng, load.fp16, n, 0.02).round(6),
            "PROF_PCIE_TX_BYTES": busy_tx.round(),
            "PROF_PCIE_RX_BYTES": busy_rx.round(),
        }
        if board.links:
            # Collectives move the same on all GPUs: little noise, however little is moved.
            share = np.asarray(load.link) * (1.0 + wobble(rng, n, 0.08))
            rate = np.clip(share, 0.0, 1.0) * board.link_gb
            self.fields["DEV_NVLINK_BANDWIDTH_TOTAL"] = np.round(2.0 * rate * 1e3)
            self.fields["PROF_NVLINK_TX_BYTES"] = np.round(rate * 1e9)
            self.fields["PROF_NVLINK_RX_BYTES"] = np.round(rate * 1e9 * 0.99)

    def _ns(self, rng: np.random.Generator, on: Flags) -> Floats:
        """Return a violation counter (ns) that runs while ``on``; it starts from old events."""
        old = float(rng.integers(0, 10**12)) if rng.random() < 0.7 else 0.0
        rate = np.where(on, 1e9, 0.0)
        return np.round(counter(rng, self.ts, rate, start=old))

    def hold(self, name: str, value: Floats | float) -> None:
        """Set a field to what it shows, constant or over time."""
        self.fields[name] = value


def _lag(ts: Floats, aim: Floats) -> Floats:
    """Return a temperature that follows ``aim`` with the time constant of a heat sink."""
    out = np.array(aim, dtype=np.float64)
    for k in range(1, out.size):
        share = 1.0 - np.exp(-(ts[k] - ts[k - 1]) / _RISE_TIME_S)
        out[k] = out[k - 1] + share * (aim[k] - out[k - 1])
    return out
