"""What the metrics of one AMD board mean: errors, limits that hold it, health, its neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median

from engine.model import Finding, Severity
from engine.readers.amd_gpu import BUSY, VIOLATIONS, AmdGpu, finding, hot_spot, power
from engine.readers.value_oddities import listed
from engine.units import number

# Share of the window, as AMD reads it: up to 25 light, up to 50 moderate, above heavy.
_LIGHT, _MODERATE = 25.0, 50.0
# AMD's hint for a thermal limit together with violations (Celsius).
_HOT_C = 95.0
_HOTTER_C = 10.0
_ALIKE = 0.15
_SLOW = 0.9


def errors(gpu: AmdGpu) -> Iterator[Finding]:
    """Yield ECC totals since the driver was loaded, with the blocks that they come from."""
    for kind, words, severity in (
        ("uncorrect", "uncorrectable", Severity.HIGH),
        ("deferred", "deferred (poisoned, not yet consumed)", Severity.MEDIUM),
    ):
        start = f"gpu_ecc_{kind}_"
        blocks = {
            name.removeprefix(start): value
            for name, value in gpu.now.items()
            if name.startswith(start) and value > 0
        }
        total = blocks.pop("total", 0.0) or sum(blocks.values())
        if not total:
            continue
        links = "xgmi_wafl" in blocks
        where = f" in {listed(blocks)}" if blocks else ""
        yield finding(
            f"amd_ecc_{kind}",
            severity,
            f"{gpu.entity.name} counted {number(total)} {words} ECC errors{where} since its driver "
            "was loaded. One sample cannot tell when.",
            "Drain the node, look for the RAS lines in dmesg and for retired pages (amd-smi "
            "bad-pages); a reset clears the counters, errors that come back mean an RMA.",
            gpu.line,
            {f"ecc_{kind}_total": int(total), "blocks": list(blocks)[:64]},
            entity=gpu.entity,
            cause="xgmi_errors" if links and len(blocks) == 1 else "ecc_uncorrectable",
        )


_LIMITS: Mapping[str, tuple[str, str | None]] = {
    "socket_thermal": ("the socket's temperature limit", "thermal_slowdown_sw"),
    "hbm_thermal": ("the HBM temperature limit", "memory_overheat"),
    "vr_thermal": ("the voltage regulators' temperature limit", "thermal_slowdown_sw"),
    "processor_hot": ("PROCHOT, the emergency brake", "thermal_slowdown_hw"),
    "ppt": ("the package power limit", "power_bound"),
}


def violations(gpu: AmdGpu) -> Iterator[Finding]:
    """Yield the share of the time in which the clocks were held, by reason."""
    for kind, (words, cause) in _LIMITS.items():
        share = next(
            (
                value
                for name, value in gpu.now.items()
                if name.startswith(f"gpu_violation_{kind}") and name.endswith("_percentage")
            ),
            0.0,
        )
        if not 0 < share <= 100:
            continue
        degree = "light" if share <= _LIGHT else "moderate" if share <= _MODERATE else "heavy"
        hot = hot_spot(gpu)
        near = f", hot spot {number(hot)} °C" if hot is not None else ""
        named = cause
        if kind == "processor_hot" and hot is not None and hot < _HOT_C:
            named = "power_brake"
        benign = kind == "ppt"
        yield finding(
            f"amd_violation_{kind}",
            Severity.INFO if benign else Severity.LOW if degree == "light" else Severity.HIGH,
            f"{gpu.entity.name} was held by {words} for {number(share)} % of the window "
            f"({degree}{near})" + (": as designed under a heavy load." if benign else "."),
            "Compare with the other GPUs of the node: one alone means a lowered cap or a bad board."
            if benign
            else "Check fans, airflow or coolant, and the limits: amd-smi static --limit; watch "
            "amd-smi monitor -V -t -p under load.",
            gpu.line,
            {"violation": kind, "percent": share, "hot_spot_c": hot},
            entity=gpu.entity,
            cause=named,
            sources=(VIOLATIONS,),
        )


def health(gpu: AmdGpu) -> Iterator[Finding]:
    """Yield the exporter's own judgement, the last RAS event, and a slow PCIe link."""
    if gpu.now.get("gpu_health") == 0:
        yield finding(
            "amd_unhealthy",
            Severity.MEDIUM,
            f"The exporter calls {gpu.entity.name} unhealthy (gpu_health 0): errors above its "
            "thresholds.",
            "amdgpuhealth on the node says which; look at the ECC totals and at dmesg.",
            gpu.line,
            {"gpu_health": 0},
            entity=gpu.entity,
        )
    for severity, value in gpu.afids.items():
        if value > 0:
            yield finding(
                "amd_afid",
                Severity.MEDIUM,
                f"{gpu.entity.name}: its last RAS event has the AMD field id {number(value)}"
                + (f", severity {severity[:40]}" if severity else "")
                + ". These are not Xids, and the gauge keeps the last one.",
                "amd-smi ras --cper shows the record and its time; amd-smi ras --afid decodes it.",
                gpu.line,
                {"afid": int(value), "afid_severity": severity[:40]},
                entity=gpu.entity,
            )
    speed, most = gpu.now.get("pcie_speed"), gpu.now.get("pcie_max_speed")
    if speed and most and speed < most and gpu.now.get("gpu_gfx_activity", 0.0) >= BUSY:
        yield finding(
            "amd_pcie_speed",
            Severity.LOW,
            f"The PCIe link of {gpu.entity.name} runs at {number(speed)} of {number(most)} GT/s "
            "under load.",
            "lspci -vv -s BDF shows LnkSta against LnkCap; reseat the board, look for AER errors.",
            gpu.line,
            {"pcie_speed_gts": speed, "pcie_max_speed_gts": most},
            entity=gpu.entity,
            cause="pcie_degraded",
        )


def outliers(gpus: list[AmdGpu]) -> Iterator[Finding]:
    """Yield GPUs that differ from their neighbours at the same load."""
    busy = [g for g in gpus if g.now.get("gpu_gfx_activity", 0.0) >= BUSY]
    if len(busy) < 3:
        return
    temperatures = {id(g): t for g in busy if (t := hot_spot(g)) is not None}
    powers = {id(g): p for g in busy if (p := power(g)) is not None}
    clocks = {id(g): min(g.clocks) for g in busy if g.clocks}
    for gpu in busy:
        key = id(gpu)
        if len(temperatures) == len(busy) == len(powers):
            usual, drawn = median(temperatures.values()), median(powers.values())
            alike = abs(powers[key] - drawn) <= _ALIKE * drawn
            if alike and temperatures[key] >= usual + _HOTTER_C:
                yield finding(
                    "amd_hot",
                    Severity.MEDIUM,
                    f"{gpu.entity.name} is at {number(temperatures[key])} °C where its neighbours "
                    f"are at {number(usual)} °C with the same power: its cooling is worse.",
                    "Check its heat sink, fan or cold plate, and the airflow at its place.",
                    gpu.line,
                    {"hot_spot_c": temperatures[key], "median_c": usual},
                    entity=gpu.entity,
                    cause="cooling_outlier",
                )
        if len(clocks) == len(busy) and clocks[key] < _SLOW * median(clocks.values()):
            yield finding(
                "amd_slow",
                Severity.MEDIUM,
                f"{gpu.entity.name} clocks at {number(clocks[key])} MHz under load, its neighbours "
                f"at {number(median(clocks.values()))} MHz: ranks that wait for it are slow too.",
                "amd-smi monitor -V shows which limit holds it; amd-smi metric --perf-level and "
                "--clock show a setting.",
                gpu.line,
                {"gfx_clock_mhz": clocks[key], "median_mhz": median(clocks.values())},
                entity=gpu.entity,
                cause="straggler",
            )
