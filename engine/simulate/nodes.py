"""The simulated node_exporter of one node: load, CPU, memory, boot time, inlet temperature."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from engine.simulate import noise
from engine.simulate.boards import Boards
from engine.simulate.fields import Form
from engine.simulate.noise import Floats, Ints
from engine.simulate.observation import Rows
from engine.simulate.physics import STEP_S
from engine.simulate.series import Family, Series

CPUS = 32
_MEMORY_BYTES = 2.0 * 1024**4
_CPU_MODES = ("idle", "iowait", "system", "user")
# Runnable host threads per GPU: input pipeline and launch threads, or an inference engine.
_TASKS = {"training": 2.2, "ragged": 3.0, "warm_up": 2.6, "compute": 1.2, "decode": 1.1}
_FULL_FAN_RPM = 11800.0


@dataclass(frozen=True, slots=True)
class NodeExporter:
    """node_exporter (and the sensors of the service processor) on one node.

    Attributes:
        node: host name.
        boards: hardware of the whole fleet; ``index``: number of the node in it.
        workloads: workload of each GPU of the node.
        start: first moment of the simulation (Unix seconds).
        prometheus: labels a scrape adds (job, instance).
    """

    node: str
    boards: Boards
    index: int
    workloads: tuple[str, ...]
    start: float
    prometheus: Mapping[str, str]

    def families(self, rows: Rows, times: Floats, *, scraped: bool) -> Iterator[Family]:
        """Yield all families. ``rows`` holds float64[n, GPUs of the node], ``times`` float64[n]."""
        load = self._load(rows, times)
        booted = self.start - 86400.0 * (3.0 + np.floor(60.0 * self._constant("boot")))
        used = 0.12 + 0.10 * self._constant("memory")
        one = np.ones(len(times))
        plain = (
            ("node_load1", "1m load average.", load, Form.FP64),
            ("node_boot_time_seconds", "Node boot time, in unixtime.", booted * one, Form.INT64),
            ("node_time_seconds", "System time in seconds since epoch.", times, Form.FP64),
            ("node_memory_MemTotal_bytes", "Memory in all.", _MEMORY_BYTES * one, Form.INT64),
            ("node_memory_MemAvailable_bytes", "Memory that programs could get.",
             np.round(_MEMORY_BYTES * (1.0 - used)) * one, Form.INT64),
        )  # fmt: skip
        for name, what, values, form in plain:
            yield self._family(name, "gauge", what, [({}, values)], form, scraped=scraped)
        yield self._family(
            "node_uname_info", "gauge", "Kernel and host name.",
            [({"nodename": self.node, "release": "5.15.0-119-generic", "sysname": "Linux"}, one)],
            Form.INT64, scraped=scraped,
        )  # fmt: skip
        inlet = {"id": "4", "name": "Inlet Temp", "state": "nominal", "type": "Temperature"}
        yield self._family(
            "ipmi_temperature_celsius", "gauge", "Temperature reading in degree Celsius.",
            [(inlet, np.round(rows["inlet_c"][:, 0]))], Form.INT64, scraped=scraped,
        )  # fmt: skip
        fan = {"id": "9", "name": "GPU Fan Zone", "state": "nominal", "type": "Fan"}
        speed = np.round(_FULL_FAN_RPM * rows["airflow"][:, 0], -1)
        yield self._family(
            "ipmi_fan_speed_rpm", "gauge", "Fan speed in rotations per minute.", [(fan, speed)],
            Form.INT64, scraped=scraped,
        )  # fmt: skip
        yield self._cpu(rows, times, booted, scraped)

    def _cpu(self, rows: Rows, times: Floats, booted: float, scraped: bool) -> Family:
        """CPU seconds: the usual load spread evenly, and what a fault adds from its start on."""
        up = times - booted
        busy = np.minimum(self._usual_load() / CPUS * up + rows["host_busy_s"][:, 0], up)
        share = {"user": 0.82, "system": 0.16, "iowait": 0.02}
        series: list[tuple[dict[str, str], Floats]] = []
        for cpu in range(CPUS):
            tilt = 0.9 + 0.2 * self._constant(f"cpu {cpu}")
            taken = np.minimum(busy * tilt, up)
            for mode in _CPU_MODES:
                value = up - taken if mode == "idle" else taken * share[mode]
                series.append(({"cpu": str(cpu), "mode": mode}, value))
        return self._family(
            "node_cpu_seconds_total", "counter", "Seconds the CPUs spent in each mode.", series,
            Form.FP64, scraped=scraped,
        )  # fmt: skip

    def _usual_load(self) -> float:
        return 0.6 + sum(_TASKS.get(kind, 0.1) for kind in self.workloads)

    def _load(self, rows: Rows, times: Floats) -> Floats:
        steps: Ints = np.floor(times / STEP_S).astype(np.int64)
        one = self.boards.nodes[self.index : self.index + 1]
        wander = noise.smooth(self.boards.seed, "load1", one, steps, period=12)[:, 0]
        usual = self._usual_load() * (1.0 + 0.15 * wander)
        return np.asarray(np.round(usual + rows["host_load"][:, 0] * CPUS, 2))

    def _constant(self, channel: str) -> float:
        one = self.boards.nodes[self.index : self.index + 1]
        return float(noise.constant(self.boards.seed, channel, one)[0])

    def _family(
        self,
        name: str,
        kind: str,
        what: str,
        series: list[tuple[dict[str, str], Floats]],
        form: Form,
        *,
        scraped: bool,
    ) -> Family:
        add = dict(self.prometheus) if scraped else {}
        ok = np.ones(len(series[0][1]), dtype=bool)
        return Family(name, kind, what, [Series({**own, **add}, v, ok, form) for own, v in series])
