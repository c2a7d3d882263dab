"""What ROCm's device-metrics-exporter publishes of AMD GPUs.

Names, labels and quirks: ROCm/device-metrics-exporter ``docs/configuration/metricslist.md`` and
release notes to v1.5.2. Everything is a gauge, accumulators and error totals included; readings
that a platform does not have are all-ones numbers; only partition 0 of a GPU has sensors.
"""

from __future__ import annotations

import numpy as np

from engine.samples import Floats, RawSeries
from engine.simulate.scenarios import shapes
from engine.simulate.scenarios.amd_boards import Board, Gpu
from engine.simulate.scenarios.recorder import Recorder

Level = Floats | float

# What amdsmi gives for "not supported" in 64 bits; exporters have let it through.
ALL_ONES = float(2**64 - 1)
# Violation accumulators count milliseconds-like ticks; only ratios of their deltas mean something.
_TICKS_PER_S = 1000.0
_RISE_C = 42.0


_BLOCKS = ("sdma", "gfx", "mmhub", "bif", "xgmi_wafl", "umc")
_PCIE = ("pcie_replay_count", "pcie_recovery_count", "pcie_replay_rollover_count",
         "pcie_nack_sent_count", "pcie_nack_received_count")  # fmt: skip
_VIOLATIONS = ("processor_hot", "ppt", "socket_thermal", "vr_thermal", "hbm_thermal")


class Exporter:
    """One node's device-metrics-exporter.

    Args:
        rng: where chance comes from; it also chooses labels, prefix and scrape interval.
        host: label ``hostname``.
        board: what the node is built of.
        mode: compute partitioning (label ``gpu_compute_partition_type``).
        violations: False leaves out everything called violation, as in a virtual machine.
        step_s: scrape interval (s); None chooses one.
    """

    def __init__(
        self, rng: np.random.Generator, host: str, board: Board, *, mode: str = "spx",
        violations: bool = True, step_s: float | None = None,
    ) -> None:  # fmt: skip
        self.rng = rng
        self.host = host
        self.board = board
        self.mode = mode
        self.violations = violations
        # Names of clock types were those of the protocol before they were made plain.
        old = rng.random() < 0.25
        self.system = "GPU_CLOCK_TYPE_SYSTEM" if old else "system"
        self.memory = "GPU_CLOCK_TYPE_MEMORY" if old else "memory"
        self.prefix = "amd_" if rng.random() < 0.35 else ""
        self.percentages = rng.random() < 0.7
        self.sentinels = rng.random() < 0.5
        labels = {"job": "amd-metrics-exporter", "instance": f"{host}:5000", "hostname": host}
        self.record = Recorder(rng, shapes.scrapes(rng, step_s=step_s), labels)
        self.inlet_c = float(rng.uniform(22.0, 29.0))

    @property
    def ts(self) -> Floats:
        """Scrape times (Unix s)."""
        return self.record.ts

    @property
    def series(self) -> list[RawSeries]:
        """What was published so far."""
        return self.record.series

    def publish(self, gpu: Gpu, *, pod: str | None = None) -> None:
        """Add all series of one GPU or partition."""
        labels = {
            "gpu_id": str(gpu.index), "serial_number": f"69234{gpu.index:04d}",
            "card_model": self.board.product.removeprefix("AMD "),
            "gpu_partition_id": str(gpu.partition), "deployment_mode": "baremetal",
            "gpu_compute_partition_type": self.mode, "gpu_memory_partition_type": "nps1",
        }  # fmt: skip
        if pod is not None:
            labels |= {"pod": pod, "namespace": "ml", "container": "trainer"}
        self._memory(gpu, labels)
        if gpu.partition == 0:
            self._sensors(gpu, labels)
            self._errors(gpu, labels)
            if self.board.family == "MI3xx" and self.violations:
                self._violations(gpu, labels)
        else:
            # No sensor of its own: power reads 0, the rest is not there.
            self._set("gpu_package_power", 0.0, labels)
            self._set("gpu_power_usage", 0.0, labels)
        for name, value in gpu.extra.items():
            self._set(name, value, labels)

    def _set(self, name: str, value: Level, labels: dict[str, str]) -> None:
        self.record.gauge(self.prefix + name, value, labels)

    def _noisy(self, name: str, value: Level, labels: dict[str, str], sd: float,
               hi: float = np.inf) -> None:  # fmt: skip
        values = np.clip(self.record.wide(value) + shapes.wobble(self.rng, self.ts.size, sd), 0, hi)
        self._set(name, np.round(values), labels)

    def _total(self, name: str, per_s: Level, labels: dict[str, str], start: float = 0.0) -> None:
        values = shapes.counter(self.rng, self.ts, per_s, start=start, whole=True)
        self._set(name, values, labels)

    def _memory(self, gpu: Gpu, labels: dict[str, str]) -> None:
        parts = {"spx": 1.0, "dpx": 2.0, "qpx": 4.0, "cpx": 8.0}[self.mode]
        total = self.board.hbm_mb / parts
        used = np.round(total * self.record.wide(gpu.work.vram))
        self._set("gpu_total_vram", total, labels)
        self._set("gpu_used_vram", used, labels)
        self._set("gpu_free_vram", total - used, labels)

    def _sensors(self, gpu: Gpu, labels: dict[str, str]) -> None:
        board, n = self.board, self.ts.size
        busy = self.record.wide(gpu.work.gfx) > 1.0
        self._noisy("gpu_gfx_activity", gpu.work.gfx, labels, 1.5 if busy.any() else 0.0, 100.0)
        self._noisy("gpu_umc_activity", gpu.work.umc, labels, 1.5 if busy.any() else 0.0, 100.0)
        clock = self.record.wide(gpu.clock)
        asked = board.idle_w + (board.power_w - board.idle_w) * self.record.wide(gpu.work.power)
        # Dynamic power falls somewhat slower than with the square of the clock.
        power = board.idle_w + (asked - board.idle_w) * (clock / 0.93) ** 1.7
        if gpu.cap_w is not None:
            power = np.minimum(power, gpu.cap_w)
        power = np.asarray(power * (1.0 + 0.012 * self.rng.standard_normal(n)), dtype=np.float64)
        name = "gpu_package_power" if board.family == "MI3xx" else "gpu_average_package_power"
        for metric in (name, "gpu_power_usage"):
            self._set(metric, np.round(power), labels)
        energy = shapes.counter(self.rng, self.ts, power * 1e6, start=3.1e13)
        self._set("gpu_energy_consumed", np.round(energy), labels)
        self._temperatures(gpu, labels, power)
        for xcd in range(board.xcds):
            mhz = self.rng.normal(np.where(busy, clock * board.gfx_mhz, 132.0), 6.0)
            self._set("gpu_clock", np.clip(mhz, 90.0, board.gfx_mhz).round(),
                      {**labels, "clock_type": self.system, "clock_index": str(xcd)})  # fmt: skip
        memory = np.where(busy, board.mem_mhz, 900.0).astype(np.float64)
        self._set("gpu_clock", memory, {**labels, "clock_type": self.memory, "clock_index": "8"})
        self._set("gpu_max_clock", board.gfx_mhz, {**labels, "clock_type": self.system})
        self._set("gpu_min_clock", 132.0, {**labels, "clock_type": self.system})
        self._set("gpu_health", 1.0, labels)
        for link in range(8):
            rate = 0.0 if link == gpu.index else gpu.work.xgmi_kb
            for way in ("tx", "rx"):
                sent = shapes.counter(self.rng, self.ts, rate, start=4e11 * (link != gpu.index))
                self._set(f"gpu_xgmi_link_{way}", np.round(sent),
                          {**labels, "link_index": str(link)})  # fmt: skip

    def _temperatures(self, gpu: Gpu, labels: dict[str, str], power: Floats) -> None:
        heat = self.inlet_c + _RISE_C * power / self.board.power_w + self.rng.normal(0.0, 1.0)
        junction = heat + self.board.full_c - 70.0 + gpu.junction_c
        memory = heat - 9.0 + gpu.memory_c
        if gpu.held_c is not None:
            junction = self.record.wide(gpu.held_c)
            memory = junction - 16.0
        if gpu.held_hbm_c is not None:
            memory = self.record.wide(gpu.held_hbm_c)
        mi300 = self.board.family == "MI3xx"
        which = "gpu_junction_temperature" if mi300 else "gpu_edge_temperature"
        self._noisy(which, junction, labels, 0.6)
        self._noisy("gpu_memory_temperature", memory, labels, 0.6)

    def _errors(self, gpu: Gpu, labels: dict[str, str]) -> None:
        rates = {f"{kind}_{block}": gpu.ecc.get(f"{kind}_{block}", 0.0)
                 for kind in ("correct", "uncorrect", "deferred") for block in _BLOCKS}  # fmt: skip
        for kind in ("correct", "uncorrect", "deferred"):
            total = np.zeros(self.ts.size)
            for block in _BLOCKS:
                # Now and then a correctable error or some of long ago.
                seen = kind == "correct" and self.rng.random() < 0.04
                old = float(self.rng.integers(1, 40)) if seen else 0.0
                values = shapes.counter(self.rng, self.ts, rates[f"{kind}_{block}"], start=old,
                                        whole=True)  # fmt: skip
                self._set(f"gpu_ecc_{kind}_{block}", values, labels)
                total += values
            self._set(f"gpu_ecc_{kind}_total", total, labels)
        if self.board.family == "MI3xx":
            top = 32.0
            self._noisy("pcie_bandwidth", gpu.work.pcie_mb, labels, 300.0)
            for name in _PCIE:
                self._total(name, gpu.pcie.get(name, 0.0), labels,
                            start=float(self.rng.integers(0, 20)))  # fmt: skip
        else:
            top = 16.0
            if self.sentinels:
                for name in _PCIE:
                    self._set(name, ALL_ONES, labels)
        self._set("pcie_max_speed", top, labels)
        self._set("pcie_speed", top if gpu.pcie_speed is None else gpu.pcie_speed, labels)

    def _violations(self, gpu: Gpu, labels: dict[str, str]) -> None:
        start = float(self.rng.integers(10**8, 10**9))
        clock = shapes.counter(self.rng, self.ts, _TICKS_PER_S, start=start)
        self._set("gpu_violation_current_accumulated_counter", np.round(clock), labels)
        for name in _VIOLATIONS:
            self._residency(f"{name}_residency", gpu.violation.get(name, 0.0), labels)
        total = np.zeros(self.ts.size)
        for name in ("power", "thermal"):
            share = self.record.wide(gpu.below.get(name, 0.0))
            total = np.maximum(total, share)
            self._residency(f"gfx_clock_below_host_limit_{name}", share, labels)
        self._residency("gfx_clock_below_host_limit_total", total, labels)
        busy = self.record.wide(gpu.work.gfx) > 1.0
        self._residency("low_utilization", (~busy).astype(np.float64), labels)

    def _residency(self, name: str, share: Level, labels: dict[str, str]) -> None:
        """Add one violation: ticks accumulated, and per cent of the last window."""
        wide = self.record.wide(share)
        ticks = shapes.counter(self.rng, self.ts, wide * _TICKS_PER_S,
                               start=float(self.rng.integers(0, 10**6)))  # fmt: skip
        self._set(f"gpu_violation_{name}_accumulated", np.round(ticks), labels)
        if self.percentages:
            noise = np.where(wide > 0, shapes.wobble(self.rng, wide.size, 4.0), 0.0)
            self._set(f"gpu_violation_{name}_percentage",
                      np.clip(100.0 * wide + noise, 0.0, 100.0).round(), labels)  # fmt: skip
        elif self.sentinels:
            self._set(f"gpu_violation_{name}_percentage", ALL_ONES, labels)
