"""Device faults: memory errors, repairs, Xids, GPUs that fall off the bus."""

from __future__ import annotations

import numpy as np

from engine.samples import RawSeries
from engine.simulate.scenarios.base import AT, Make, Scenario, Severity
from engine.simulate.scenarios.nvidia_boards import (
    A100_80,
    DECODE,
    H100,
    H200,
    HBM,
    IDLE,
    L40S,
    PARKED,
    SXM,
    T4,
    TRAIN,
    mix,
)
from engine.simulate.scenarios.nvidia_gpu import Gpu
from engine.simulate.scenarios.nvidia_nodes import settle
from engine.simulate.scenarios.nvidia_stage import TARGET, stage
from engine.simulate.scenarios.shapes import counter, since


def _struck(rng: np.random.Generator) -> float:
    """Return a moment (Unix s) in the last quarter of an hour, with scrapes on both sides."""
    return AT - float(rng.uniform(150.0, 700.0))


def _xid(rng: np.random.Generator, gpu: Gpu, code: int, *, stops: bool) -> float:
    """Let the Xid gauge change; the program dies if it ``stops``. Return when it was (Unix s)."""
    struck = _struck(rng)
    if stops:
        gpu.run(rng, mix(TRAIN, IDLE, since(gpu.ts, struck, 0.0, 1.0)))
        settle(rng, gpu)
    gpu.hold("DEV_XID_ERRORS", since(gpu.ts, struck, 0.0, float(code)))
    return struck


def _rise(gpu: Gpu, field: str, struck: float, by: float) -> None:
    gpu.hold(field, np.asarray(gpu.fields[field]) + since(gpu.ts, struck, 0.0, by))


def _double_bits(gpu: Gpu, struck: float, count: float) -> None:
    _rise(gpu, "DEV_ECC_DBE_VOL_TOTAL", struck, count)
    _rise(gpu, "DEV_ECC_DBE_AGG_TOTAL", struck, count)


def _uncorrectable(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    play = stage(rng, (A100_80, H100, H200), TRAIN)
    struck = _xid(rng, play.gpu, 48, stops=severity is not Severity.MILD)
    _double_bits(play.gpu, struck, severity.pick(1.0, 2.0, 7.0))
    _rise(play.gpu, "DEV_UNCORRECTABLE_REMAPPED_ROWS", struck, 1.0)
    return play.publish()


def _uncorrectable_counters(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    # Newer exporters have no Xid series before the first Xid; here it never came.
    play = stage(rng, (A100_80, L40S), TRAIN)
    _double_bits(play.gpu, _struck(rng), severity.pick(1.0, 3.0, 12.0))
    for gpu in (gpu for item in play.nodes for gpu in item.gpus):
        del gpu.fields["DEV_XID_ERRORS"]
    return play.publish()


def _event(*codes: int, stops: bool = True) -> Make:
    """Return the maker of a scenario in which one of some Xids comes up, all else being sound."""

    def make(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
        play = stage(rng, HBM, TRAIN, stock=True)
        dies = stops and severity is not Severity.MILD
        _xid(rng, play.gpu, int(rng.choice(codes)), stops=dies)
        return play.publish()

    return make


def _storm(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    play = stage(rng, (A100_80, H100, H200, L40S), TRAIN)
    gpu = play.gpu
    found = counter(rng, gpu.ts, severity.pick(0.3, 2.0, 20.0), start=40.0, whole=True)
    gpu.hold("DEV_ECC_SBE_VOL_TOTAL", found)
    gpu.hold("DEV_ECC_SBE_AGG_TOTAL", found + 300.0)
    if severity is Severity.SEVERE:
        gpu.hold("DEV_XID_ERRORS", since(gpu.ts, _struck(rng), 0.0, 92.0))
    return play.publish()


def _remap_pending(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    play = stage(rng, SXM, TRAIN)
    struck = _struck(rng)
    # Mild: found at the end of a job days ago and forgotten. Severe: with its Xid, just now.
    since_when = 0.0 if severity is Severity.MILD else struck
    play.gpu.hold("DEV_ROW_REMAP_PENDING", since(play.ts, since_when, 0.0, 1.0))
    rows = since(play.ts, since_when, 0.0, severity.pick(1.0, 2.0, 6.0))
    play.gpu.hold("DEV_UNCORRECTABLE_REMAPPED_ROWS", rows)
    if severity is Severity.SEVERE:
        play.gpu.hold("DEV_XID_ERRORS", since(play.ts, struck, 0.0, 63.0))
    return play.publish()


def _page_pending(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    play = stage(rng, (T4,), DECODE)
    gpu = play.gpu
    gpu.hold("DEV_RETIRED_DBE", severity.pick(1.0, 4.0, 20.0))
    gpu.hold("DEV_RETIRED_SBE", severity.pick(0.0, 6.0, 30.0))
    gpu.hold("DEV_RETIRED_PENDING", severity.pick(1.0, 1.0, 2.0))
    return play.publish()


def _remap_failure(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    play = stage(rng, SXM, TRAIN, stock=True)
    gpu, struck = play.gpu, _struck(rng)
    gpu.hold("DEV_ROW_REMAP_FAILURE", 1.0)
    gpu.hold("DEV_UNCORRECTABLE_REMAPPED_ROWS", severity.pick(3.0, 40.0, 512.0))
    if severity is Severity.SEVERE:
        gpu.hold("DEV_XID_ERRORS", since(gpu.ts, struck, 0.0, 64.0))
    return play.publish()


def _off_bus(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    # First the Xid, one or two scrapes later nothing more of this GPU; its siblings go on.
    play = stage(rng, HBM, TRAIN, stock=True, step_s=15.0)
    struck = _xid(rng, play.gpu, 79, stops=True)
    play.gpu.gone_at = struck + severity.pick(130.0, 70.0, 40.0)
    return play.publish()


def _vanished(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    # The exporter never saw the Xid: the GPU is simply no longer listed.
    play = stage(rng, HBM, TRAIN, stock=True)
    play.gpu.gone_at = AT - severity.pick(420.0, 540.0, 720.0)
    return play.publish()


def _counted(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    # The gauge held 74 already, so that it shows no change; the exporter's own count does.
    play = stage(rng, (A100_80, H100, H200), TRAIN)
    gpu, struck = play.gpu, _struck(rng)
    gpu.hold("DEV_XID_ERRORS", 74.0)
    count = since(gpu.ts, struck, 1.0, 1.0 + severity.pick(1.0, 4.0, 25.0))
    gpu.more.append(("DCGM_EXP_XID_ERRORS_TOTAL", {"xid": "74"}, count))
    return play.publish()


def _hang(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
    # The firmware no longer answers; readings that need it stay where they were.
    play = stage(rng, (A100_80, H100, H200), TRAIN, stock=True)
    gpu = play.gpu
    struck = _xid(rng, gpu, int(rng.choice([119, 120])), stops=False)
    gpu.run(rng, mix(TRAIN, PARKED, since(gpu.ts, struck, 0.0, severity.pick(0.7, 1.0, 1.0))))
    return play.publish()


SCENARIOS = (
    Scenario("ecc-uncorrectable", "A double-bit error, with its Xid", "memory", TARGET,
             ("ecc_uncorrectable",), _uncorrectable),
    Scenario("ecc-uncorrectable-counters", "Double-bit errors that only the counters show",
             "memory", TARGET, ("ecc_uncorrectable",), _uncorrectable_counters),
    Scenario("ecc-contained", "A contained memory error", "memory", TARGET, ("ecc_contained",),
             _event(94)),
    Scenario("ecc-uncontained", "An uncontained memory error", "memory", TARGET,
             ("ecc_uncontained",), _event(95)),
    Scenario("ecc-correctable-storm", "Correctable errors pour in on one GPU", "memory", TARGET,
             ("ecc_correctable_storm",), _storm),
    Scenario("row-remap-pending", "A remapped row waits for a reset", "memory", TARGET,
             ("row_remap_pending",), _remap_pending),
    Scenario("page-retirement-pending", "A retired page of an older board waits for a reset",
             "memory", TARGET, ("row_remap_pending",), _page_pending),
    Scenario("row-remap-failure", "A row could not be remapped", "memory", TARGET,
             ("row_remap_failure",), _remap_failure),
    Scenario("gpu-off-bus", "A GPU falls off the bus, with its Xid", "device", TARGET,
             ("gpu_off_bus",), _off_bus),
    Scenario("gpu-vanished", "A GPU is gone from its exporter, its siblings are not", "device",
             TARGET, ("gpu_off_bus",), _vanished),
    Scenario("gsp-failure", "The GPU's firmware stops answering", "device", TARGET,
             ("gsp_failure",), _hang),
    Scenario("gpu-needs-reset", "An Xid whose remedy is a reset", "device", TARGET,
             ("gpu_needs_reset",), _event(46, 143, 158)),
    Scenario("gpu-microcontroller-halt", "A micro-controller of the GPU halts", "device", TARGET,
             ("gpu_needs_reset", "firmware_hang"), _event(62)),
    Scenario("driver-xid", "An Xid that points at the driver", "device", TARGET,
             ("driver_or_firmware_xid",), _event(38, 39, 44)),
    Scenario("app-xid", "The program faults", "device", TARGET, ("app_fault_xid",),
             _event(13, 31, 43)),
    Scenario("nvlink-xid-repeated", "The same NVLink Xid again, seen only in the exporter's count",
             "device", TARGET, ("nvlink_down", "nvlink_errors"), _counted),
)  # fmt: skip
