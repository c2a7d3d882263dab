"""Answers built by hand, as the engine would give them; shared by tests of commands and renderers."""

from __future__ import annotations

from engine.model import (
    Alternative,
    Candidate,
    Class,
    Confidence,
    Coverage,
    Decode,
    Diagnosis,
    Effect,
    EngineInfo,
    Entity,
    Evidence,
    Finding,
    Incident,
    Item,
    Kind,
    Read,
    Severity,
    Step,
    Sweep,
    Unknown,
    Verdict,
    Why,
)

AT = 1764432000.0
GPU = Entity(
    Kind.GPU,
    "node-3:5",
    host="node-3",
    gpu=5,
    uuid="GPU-3aee3597-e367-4fa6-afb7-33020d47171b",
    pci="0000:5d:00",
    model="NVIDIA H100 80GB HBM3",
)
NODE = Entity(Kind.NODE, "node-3", host="node-3")
JOB = Entity(Kind.JOB, "job/4711", job="4711")
ENGINE = EngineInfo("0.1.0", "8f3a2c", "durable_rules")

BRAKE_BIT = Evidence(
    signal="throttle_reasons",
    says="throttle_reasons = 0x88 (hw_slowdown, hw_power_brake) has hw_power_brake",
    value=136,
    unit="bitmask",
    op="has",
    threshold=128,
    window_s=300.0,
    query='DCGM_FI_DEV_CLOCKS_EVENT_REASONS{UUID="GPU-3aee3597-e367-4fa6-afb7-33020d47171b"}',
    source="NVML nvmlClocksEventReasonHwPowerBrakeSlowdown",
    entity=GPU,
)
LOW_CLOCK = Evidence(
    signal="sm_clock",
    says="SM clock is 345 MHz, below 990 MHz (50 % of maximum SM clock)",
    value=345.0,
    unit="MHz",
    op="<",
    threshold=990.0,
    window_s=None,
    query="",
    source="site default: half of the maximum",
    entity=GPU,
)
COOL = Evidence(
    signal="gpu_temp",
    says="die temperature is 41 °C, below 87 °C",
    value=41,
    unit="celsius",
    op="<",
    threshold=87,
    window_s=None,
    query="",
    source="DCGM field 152",
    entity=Entity(Kind.GPU, "node-3:6", host="node-3", gpu=6),
)
BRAKE = Diagnosis(
    cause="power_brake",
    title="external power brake asserted",
    class_=Class.FAULT,
    entity=GPU,
    severity=Severity.CRITICAL,
    confidence=Confidence.CERTAIN,
    says="The power brake on node-3:5 is asserted: the board holds the SM clock at 345 MHz.",
    evidence=(BRAKE_BIT, LOW_CLOCK),
    against=(COOL,),
    effects=(Effect("straggler", JOB, (Effect("collective_wait", JOB),)),),
    alternatives=(
        Alternative(
            "thermal_slowdown_hw", "the hw_thermal bit", "nvidia-smi -i 5 -q -d PERFORMANCE"
        ),
        Alternative("platform_power_cap", "all GPUs of the node are braked at once"),
    ),
    next=(
        Step("read the clock event reasons", "nvidia-smi -i 5 -q -d PERFORMANCE"),
        Step(
            "drain the node and check PSU and power cabling",
            "kubectl drain node-3",
            risk="disrupts",
        ),
    ),
    since=AT - 600,
    rule="power_brake@3",
    references=("NVML API reference, nvmlClocksEventReasons",),
)
CAPPED = Diagnosis(
    cause="power_limit_lowered",
    title="power limit below the default",
    class_=Class.LIMIT,
    entity=NODE,
    severity=Severity.LOW,
    confidence=Confidence.POSSIBLE,
    says="The power limit of node-3 is 500 W of 700 W.",
    evidence=(),
    rule="power_limit_lowered@1",
)
OLD_XID = Diagnosis(
    cause="xid_history",
    title="an Xid from before the window",
    class_=Class.BENIGN,
    entity=GPU,
    severity=Severity.INFO,
    confidence=Confidence.LIKELY,
    says="The last Xid of node-3:5 is 43; it did not change in the window.",
    evidence=(),
    rule="xid_history@1",
)
UNSEEN = (
    Unknown(
        "metrics_missing",
        "sm_active",
        "not exported",
        "DCGM_FI_PROF_SM_ACTIVE, gauge, The ratio of cycles an SM has at least 1 warp assigned.",
        ("memory_bound", "low_occupancy"),
    ),
    Unknown(
        "metrics_missing",
        "ecc_dbe_volatile",
        "not exported",
        "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL, counter, Total number of double-bit volatile ECC errors.",
        ("ecc_uncorrectable",),
    ),
    Unknown(
        "metrics_missing",
        "node_load1",
        "not exported",
        "run node_exporter on the host",
        ("cpu_starved",),
    ),
)
SEEN = Coverage(rules=61, checked=41, fired=1, unseen=20)


def why(verdict: Verdict = Verdict.DEGRADED, **changes: object) -> Why:
    """Return an answer to ``why``; keyword arguments replace fields."""
    diagnoses = (BRAKE,) if verdict is Verdict.DEGRADED else ()
    values: dict[str, object] = {
        "target": GPU,
        "at": AT,
        "window_s": 900.0,
        "verdict": verdict,
        "diagnoses": diagnoses,
        "notes": (),
        "unknown": UNSEEN,
        "coverage": SEEN,
        "engine": ENGINE,
        "queries": 3,
        "waves": 2,
    }
    return Why(**{**values, **changes})  # type: ignore[arg-type]


STALE = Unknown("stale_data", "sm_clock", "newest reading is 2 h old", "check the exporter")

WHYS = {
    "degraded": why(),
    "several": why(
        diagnoses=(BRAKE, CAPPED), notes=(OLD_XID,), warnings=("1 of 2 stores did not answer",)
    ),
    "healthy": why(Verdict.HEALTHY),
    "idle": why(Verdict.IDLE, at=None),
    "unknown": why(Verdict.UNKNOWN, unknown=(STALE, *UNSEEN)),
    "node": why(target=NODE, members=(GPU, COOL.entity), unknown=()),
}
SWEEPS = {
    "incidents": Sweep(
        at=AT,
        window_s=900.0,
        incidents=(Incident(BRAKE, (GPU, COOL.entity)), Incident(CAPPED, (NODE,))),
        checked={"gpu": 64, "node": 8},
        verdicts={"degraded": 3, "healthy": 60, "idle": 0, "unknown": 1},
        unknown=UNSEEN[:1],
        engine=ENGINE,
        queries=41,
        waves=3,
        unseen=(Entity(Kind.GPU, "node-7:0"),),
    ),
    "quiet": Sweep(AT, 900.0, (), {"gpu": 1}, {"healthy": 1}, (), ENGINE, 1, 1),
    "empty": Sweep(None, 900.0, (), {}, {}, (), ENGINE, 1, 1),
}
HW_SLOWDOWN = Item(
    "hw_slowdown", "HW slowdown", "the hardware cut the clocks", "fault", "high", "look why", 8
)
HW_THERMAL = Item(
    "hw_thermal", "HW thermal", "too hot", "fault", "high", "check cooling", 64, extra={"nvml": "x"}
)
XID_72 = Item("72", "Xid 72", "no longer used", extra={"retired": True, "see": ["xid/79"]})
DECODES = {
    "mask": Decode(
        "72",
        (
            Candidate(
                "throttle",
                72,
                (HW_SLOWDOWN, HW_THERMAL),
                0,
                ("Often told otherwise: Common advice says 0x4. In fact: 0x8.",),
                ("NVML",),
            ),
            Candidate("xid", 72, (XID_72,)),
        ),
    ),
    "xid": Decode("xid 72", (Candidate("xid", 72, (XID_72,), sources=("NVIDIA Xid catalog",)),)),
    "bits": Decode("0x8008", (Candidate("throttle", 0x8008, (HW_SLOWDOWN,), 0x8000),)),
    "nothing": Decode("fild 1003", (), ("field 1003",)),
}
READS = {
    "xid": Read(
        kinds=("xid",),
        findings=(
            Finding(
                kind="xid",
                id="79",
                severity=Severity.CRITICAL,
                says="Xid 79: the GPU has fallen off the bus",
                action="drain the node; a cold start brings it back or shows that it is gone",
                entity=Entity(Kind.GPU, "GPU 0000:1a:00", pci="0000:1a:00"),
                line=3,
                cause="gpu_off_bus",
                data={"xid": 79, "pci": "0000:1a:00", "pid": None, "known": True},
                sources=("NVIDIA Xid catalog",),
            ),
        ),
        causes=("gpu_off_bus", "xid_history"),
        unread_lines=2,
        errata=("Common advice calls 79 a driver error. In fact: The bus lost the GPU.",),
        unknown=UNSEEN[2:],
    ),
    "nothing": Read((), (), (), 12),
}
