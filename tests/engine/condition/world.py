"""A small catalogue written by hand, and frames built from plain lists of samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from engine.catalogue.types import Catalogue, CauseInfo, GpuModel, Place, Signal, Spelling
from engine.condition import Condition, Memo, compile_condition
from engine.model import Class, Entity, Kind
from engine.samples import Column, Dropped, Frame

AT = 1764432000.0
PLACE = Place("rules/symptoms/power/x.yaml", 6, 7)
H100 = "NVIDIA H100 80GB HBM3"
A100 = "NVIDIA A100-SXM4-80GB"

Samples = Sequence[tuple[float, float]]


def _signal(
    id_, title, unit, kind, *spellings, low=0.0, high=None, scope="gpu", core=False, bits=None
):
    made = tuple(s if isinstance(s, Spelling) else Spelling(s, unit) for s in spellings)
    return Signal(id_, title, unit, kind, scope, made, low, high, core, bits)


SIGNALS = [
    _signal("gpu_util", "GPU utilisation", "percent", "gauge", "DCGM_FI_DEV_GPU_UTIL", high=100.0, core=True),
    _signal("sm_active", "SM activity", "ratio", "gauge", "DCGM_FI_PROF_SM_ACTIVE", high=1.0),
    _signal("sm_clock", "SM clock", "MHz", "gauge", "DCGM_FI_DEV_SM_CLOCK",
            Spelling("DCGM_FI_DEV_SM_CLOCK_HERTZ", "Hz", 1e-6), high=10000.0, core=True),
    _signal("max_sm_clock", "Maximum SM clock", "MHz", "static", "DCGM_FI_DEV_MAX_SM_CLOCK", high=10000.0),
    _signal("gpu_temp", "GPU temperature", "celsius", "gauge", "DCGM_FI_DEV_GPU_TEMP", high=150.0, core=True),
    _signal("gpu_max_op_temp", "Maximum operating temperature", "celsius", "static",
            "DCGM_FI_DEV_GPU_MAX_OP_TEMP", high=150.0),
    _signal("power_usage", "Power draw", "W", "gauge", "DCGM_FI_DEV_POWER_USAGE", high=3000.0, core=True),
    _signal("throttle_reasons", "Throttle reasons", "bitmask", "mask", "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS",
            high=65535.0, bits="throttle_reasons"),
    _signal("xid", "Xid", "code", "code", "DCGM_FI_DEV_XID_ERRORS", high=1000.0),
    _signal("pcie_replay", "PCIe replays", "count", "counter", "DCGM_FI_DEV_PCIE_REPLAY_COUNTER"),
    _signal("power_violation", "Time capped by power", "ns", "counter", "DCGM_FI_DEV_POWER_VIOLATION"),
    _signal("pcie_tx_bytes", "PCIe sent", "B/s", "gauge", "DCGM_FI_PROF_PCIE_TX_BYTES"),
    _signal("hw_slowdown_events", "Hardware slowdown events", "count", "gauge",
            Spelling("DCGM_EXP_CLOCK_EVENTS_COUNT", "count", match={"clock_event": "hw_slowdown"})),
    _signal("exporter_up", "Exporter up", "count", "gauge", "up", high=1.0, scope="node"),
    _signal("pods", "Pods", "count", "gauge"),
]  # fmt: skip

BITS = {
    "gpu_idle": 1, "clocks_setting": 2, "sw_power_cap": 4, "hw_slowdown": 8, "sync_boost": 16,
    "sw_thermal": 32, "hw_thermal": 64, "hw_power_brake": 128,
}  # fmt: skip

LIMITS = {
    "busy": (0.5, "ratio"), "slow": (0.8, "ratio"), "ahead": (1.25, "ratio"), "hot": (85.0, "celsius"),
    "margin": (2.0, "celsius"), "replays": (8.0, "count/min"),
}  # fmt: skip


def catalogue() -> Catalogue:
    """Return a catalogue with a dozen signals and two GPU models."""
    return Catalogue(
        hash="test",
        entries={
            "throttle_reasons": {k: {"id": k, "bit": v, "title": k} for k, v in BITS.items()},
            "xid": {str(n): {"id": n, "taxonomy": cause} for n, cause in
                    ((79, "gpu_off_bus"), (119, "gsp_timeout"), (48, "ecc"), (63, "ecc"))},
            "thresholds": {k: {"id": k, "title": k, "value": value, "unit": unit, "source": ["site default: ours"],
                               "site_default": True} for k, (value, unit) in LIMITS.items()},
        },
        taxonomy={
            name: CauseInfo(name, Class.FAULT, "gpu", name, name)
            for name in ("gpu_off_bus", "gsp_timeout", "ecc", "straggler")
        },
        signals={signal.id: signal for signal in SIGNALS},
        models=(
            GpuModel("h100_sxm", "H100", (H100,), r"NVIDIA H100( SXM5)? 80GB.*", "nvidia", "hopper",
                     {"tdp_w": 700.0, "max_op_temp_c": 87.0, "max_sm_clock_mhz": 1980.0}),
            GpuModel("a100_sxm", "A100", (A100,), r"NVIDIA A100-SXM4-.*", "nvidia", "ampere",
                     {"tdp_w": 400.0, "max_sm_clock_mhz": 1410.0}),
        ),
    )  # fmt: skip


CATALOGUE = catalogue()


def compiled(text: str) -> Condition:
    """Compile against the catalogue above."""
    return compile_condition(text, CATALOGUE, PLACE)


def constant(
    value: float, *, step: float = 15, count: int = 61, at: float = AT
) -> list[tuple[float, float]]:
    """Return ``count`` samples of one value, the newest at ``at``."""
    return [(at - step * k, value) for k in reversed(range(count))]


def series(
    values: Sequence[float], *, step: float = 15, at: float = AT
) -> list[tuple[float, float]]:
    """Return the values ``step`` seconds apart, the newest at ``at``."""
    return [(at - step * k, v) for k, v in zip(reversed(range(len(values))), values, strict=True)]


def frame(
    given: Sequence[Mapping[str, Samples]],
    *,
    hosts: Sequence[int] | None = None,
    models: Sequence[str | None] | None = None,
    timed: bool = True,
    dropped: Mapping[tuple[str, int], Dropped] | None = None,
    at: float = AT,
) -> Frame:
    """Return a frame with one entity for each mapping of signal to samples."""
    n = len(given)
    hosts = [0] * n if hosts is None else hosts
    models = [None] * n if models is None else models
    columns = {}
    for signal in sorted({name for one in given for name in one}):
        rows = [sorted(one.get(signal, ()), key=lambda s: s[0]) for one in given]
        flat = [sample for row in rows for sample in row]
        columns[signal] = Column(
            np.array([t if timed else 0.0 for t, _ in flat], dtype=float),
            np.array([v for _, v in flat], dtype=float),
            np.cumsum([0, *(len(row) for row in rows)], dtype=np.int64),
        )
    known = [CATALOGUE.model_for(model) for model in models]
    names = {name for model in CATALOGUE.models for name in model.attrs}
    attrs = {
        name: np.array([m.attrs.get(name, np.nan) if m else np.nan for m in known])
        for name in names
    }
    entities = [
        Entity(Kind.GPU, f"node-{h}:{i}", host=f"node-{h}", gpu=i) for i, h in enumerate(hosts)
    ]
    return Frame(
        entities,
        at if timed else 0.0,
        timed,
        columns,
        attrs,
        np.array(hosts, dtype=np.int64),
        dict(dropped or {}),
    )


def judge(text: str, given: Mapping[str, Samples], **kwargs) -> int:
    """Evaluate a condition on one entity, both ways; they must agree."""
    made = frame([given], **kwargs)
    condition = compiled(text)
    one = int(condition.evaluate(made, Memo(made))[0])
    many = int(condition._fleet(Memo(made).fleet(made.at))[0])
    assert one == many, (text, one, many)
    return one


def judge_all(condition: Condition, made: Frame) -> tuple[list[int], list[int]]:
    """Evaluate every entity one by one and all at once."""
    memo = Memo(made)
    ones = [condition._one(memo.one(i, made.at)) for i in range(len(made))]
    with np.errstate(all="ignore"):
        return ones, condition._fleet(Memo(made).fleet(made.at)).tolist()
