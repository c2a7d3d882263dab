"""A real Prometheus with random samples, and the same samples as a frame."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import requests

from engine.condition import LabelProfile
from engine.samples import Frame, Matcher
from tests.engine.condition.world import A100, AT, H100, frame
from tests.support.servers import load_openmetrics, start_prometheus

HOSTS = [0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3]
MODELS = [H100, H100, A100, "NVIDIA H100 SXM5 80GB HBM3e", "NVIDIA Z9000"]
BLANK = 9223372036854775794
SIGNALS = {
    "gpu_util": "DCGM_FI_DEV_GPU_UTIL",
    "sm_active": "DCGM_FI_PROF_SM_ACTIVE",
    "sm_clock": "DCGM_FI_DEV_SM_CLOCK",
    "max_sm_clock": "DCGM_FI_DEV_MAX_SM_CLOCK",
    "gpu_temp": "DCGM_FI_DEV_GPU_TEMP",
    "gpu_max_op_temp": "DCGM_FI_DEV_GPU_MAX_OP_TEMP",
    "power_usage": "DCGM_FI_DEV_POWER_USAGE",
    "throttle_reasons": "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS",
    "xid": "DCGM_FI_DEV_XID_ERRORS",
    "pcie_replay": "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
    "power_violation": "DCGM_FI_DEV_POWER_VIOLATION",
    "hw_slowdown_events": 'DCGM_EXP_CLOCK_EVENTS_COUNT{clock_event="hw_slowdown"}',
}


@dataclass(frozen=True)
class Twin:
    """The same samples twice: in a running Prometheus, and in memory."""

    url: str
    frame: Frame
    uuids: list[str]

    def raw(self, query: str) -> dict:
        """Return the data of an instant query."""
        reply = requests.post(
            f"{self.url}/api/v1/query", data={"query": query, "time": str(AT)}, timeout=20
        ).json()
        assert reply["status"] == "success", (query, reply)
        return reply["data"]

    def ask(self, query: str) -> set[str]:
        """Return the UUIDs that an instant query finds."""
        found = [series["metric"] for series in self.raw(query)["result"]]
        assert all(set(labels) == {"UUID"} for labels in found), (query, found)
        return {labels["UUID"] for labels in found}

    @staticmethod
    def profile(variant: str) -> LabelProfile:
        """Return the labels of one variant: ``one`` or ``split`` series for each signal."""
        selector = (Matcher("variant", "=", variant),)
        return LabelProfile(selector=selector, one_series=variant == "one")


def _values(rng: random.Random, signal: str, count: int) -> list[float]:
    """Return random samples that look like the signal, with constant and changing stretches."""
    if signal == "xid":
        codes = [0.0] * rng.randint(0, count) if rng.random() < 0.7 else []
        while len(codes) < count:
            codes += [float(rng.choice([0, 13, 48, 79, 119]))] * rng.randint(2, count)
        return codes[:count]
    if signal == "throttle_reasons":
        sticky = rng.random() < 0.4
        value, out = float(rng.choice([0, 1, 4, 8, 136])), []
        for _ in range(count):
            out.append(value)
            if not sticky and rng.random() < 0.1:
                value = float(rng.choice([0, 1, 4, 5, 8, 136, 64, 128]))
        return out
    if signal in {"pcie_replay", "power_violation"}:
        value, out = float(rng.choice([0, 3, 5_000_000])), []
        quiet = rng.random() < 0.3
        for _ in range(count):
            out.append(value)
            if not quiet and rng.random() < 0.6:
                value += rng.randint(1, 1000)
            if rng.random() < 0.02:
                value = float(rng.randint(0, 2))
        return out
    low, high = {
        "gpu_util": (0, 100), "sm_active": (0, 1), "gpu_temp": (30, 95), "power_usage": (60, 700),
        "hw_slowdown_events": (0, 9),
    }.get(signal, (300, 1980))  # fmt: skip
    if signal.startswith(("max_", "gpu_max")) or rng.random() < 0.15:
        return [round(rng.uniform(low, high), 3)] * count
    centre, width = rng.uniform(low, high), (high - low) * rng.random() / 2
    return [round(min(max(rng.gauss(centre, width), low), high), 3) for _ in range(count)]


def _samples(rng: random.Random, signal: str) -> list[tuple[float, float]]:
    """Return samples 15 s apart that never lie on the edge of a window; some with gaps."""
    shape = rng.random()
    if shape < 0.1:
        return []
    phase = rng.randint(1, 14) + 0.137
    first, last = 180, 0
    if shape < 0.2:
        last = rng.choice([8, 15, 30, 50])
    elif shape < 0.3:
        first = rng.choice([5, 13, 30, 70])
    steps = range(first, last, -1)
    if shape > 0.85:
        steps = [k for k in steps if rng.random() < 0.3]
    elif shape > 0.75:
        hole = rng.randint(0, 60)
        steps = [k for k in steps if not hole <= k < hole + 24]
    values = _values(rng, signal, len(steps))
    return [(AT - 15 * k - phase + 15, v) for k, v in zip(steps, values, strict=True)]


def _lines(rng: random.Random, name: str, labels: dict[str, str], samples) -> list[str]:
    """Write samples as one series, or cut in two where a pod label changes."""
    name, _, match = name.partition("{")
    inner = ",".join(
        [*filter(None, [match.rstrip("}")]), *(f'{k}="{v}"' for k, v in labels.items())]
    )
    lines = [f'{name}{{{inner},variant="one"}} {v!r} {t}' for t, v in samples]
    cut, mixed = rng.randint(0, len(samples)), rng.random() < 0.2
    for k, (t, v) in enumerate(samples):
        pod = k % 2 if mixed else int(k < cut)
        lines.append(f'{name}{{{inner},pod="train-{pod}",variant="split"}} {v!r} {t}')
    return lines


@pytest.fixture(scope="session")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twin]:
    """Start Prometheus on random samples of twelve GPUs on four hosts."""
    rng = random.Random(20)
    given: list[dict[str, list[tuple[float, float]]]] = []
    by_name: dict[str, list[str]] = {}
    models = [MODELS[i % len(MODELS)] for i in range(len(HOSTS))]
    uuids = [f"GPU-{i:04d}" for i in range(len(HOSTS))]
    for i, host in enumerate(HOSTS):
        labels = {
            "UUID": uuids[i],
            "Hostname": f"node-{host}",
            "modelName": models[i],
            "gpu": str(i),
        }
        one = {}
        for signal, usual in SIGNALS.items():
            name, samples = usual, _samples(rng, signal)
            if signal == "sm_clock" and i % 3 == 0:
                name = "DCGM_FI_DEV_SM_CLOCK_HERTZ"
                raw = [(t, float(round(v * 1e6))) for t, v in samples]
                samples = [(t, v * 1e-6) for t, v in raw]
            else:
                raw = samples
            if samples:
                one[signal] = samples
            by_name.setdefault(name.partition("{")[0], []).extend(_lines(rng, name, labels, raw))
        given.append(one)
    temp, values = SIGNALS["gpu_temp"], {"GPU-all-blank": BLANK, "GPU-hot": 91.0, "GPU-cool": 50.0}
    for uuid, value in values.items():
        labels = f'UUID="{uuid}",Hostname="node-9",modelName="{H100}",variant="blank"'
        by_name[temp] += [
            f"{temp}{{{labels}}} {value} {AT - 15 * k - 3}" for k in reversed(range(60))
        ]
    text = "".join(
        f"# TYPE {name} gauge\n" + "".join(f"{line}\n" for line in _ordered(lines))
        for name, lines in by_name.items()
    )
    data = tmp_path_factory.mktemp("prometheus") / "data"
    load_openmetrics(text + "# EOF\n", data)
    with start_prometheus(data) as server:
        yield Twin(server.url, frame(given, hosts=HOSTS, models=models), uuids)


def _ordered(lines: list[str]) -> list[str]:
    """Bring the samples of each series together, as OpenMetrics wants."""
    return sorted(lines, key=lambda line: line[: line.index("}")])
