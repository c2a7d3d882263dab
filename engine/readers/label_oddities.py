"""What is odd about the labels of exporter text: renamed pods, shared GPUs, MIG, missing pods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from engine.catalogue.types import Catalogue
from engine.model import Finding, Severity
from engine.readers.series import Collected, Series
from engine.readers.value_oddities import listed
from engine.signals.labels import gpu_entity
from engine.signals.mig import UNMEASURED
from engine.units import quantity

# Above this share of its time a GPU counts as busy (percent of the driver's sample period).
_BUSY = 50.0
# What is measured for each MIG instance.
_MEASURED = ("gr_engine_active", "sm_active", "dram_active")
# What DCGM and its exporter write where a text could not be read.
_NO_TEXT = ("<<<NULL>>>", "<<<NOT_FOUND>>>", "<<<NOT_SUPPORTED>>>", "<<<NOT_PERM>>>")
_NOT_CONVERTED = "FAILED TO CONVERT"


def label_oddities(collected: Collected, _catalogue: Catalogue) -> Iterator[Finding]:
    """Yield a finding for each oddity of the labels."""
    gpus: dict[tuple[str, str], list[Series]] = {}
    for series in collected.series.values():
        if series.place.key[1]:
            gpus.setdefault(series.place.key, []).append(series)
    yield from _renamed(collected.series.values())
    yield from _shared(gpus)
    yield from _mig(gpus)
    yield from _mig_utilisation(gpus)
    yield from _unattributed(collected, gpus)
    yield from _unreadable(collected.series.values())
    yield from _two_versions(collected.series.values())


def _renamed(series: Iterable[Series]) -> Iterator[Finding]:
    renamed = [s for s in series if s.labels.get("exported_pod")]
    if not renamed:
        return
    workloads = list(dict.fromkeys(s.place.workload for s in renamed if s.place.workload))
    exporters = list(dict.fromkeys(s.labels.get("pod", "") for s in renamed if s.labels.get("pod")))
    named = listed(f"pod {pod} in namespace {space or '(none)'}" for space, pod in workloads)
    says = f"The workload is {named} (the exported_ labels)."
    if exporters:
        says += f" Pod {listed(exporters)} is the exporter itself, not the workload."
    says += " Prometheus renamed the exporter's labels because they clash with its target labels."
    data: dict[str, object] = {"workloads": len(workloads)}
    if len(workloads) == 1:
        namespace, pod = workloads[0]
        data |= {"pod": pod, "namespace": namespace}
    yield Finding(
        kind="metrics",
        id="exported_labels",
        severity=Severity.INFO,
        says=says,
        action=(
            "Set honorLabels: true on the ServiceMonitor (honor_labels in a scrape configuration) "
            "to keep the exporter's own pod and namespace; until then query exported_pod."
        ),
        entity=gpu_entity([renamed[0].place]),
        line=renamed[0].line,
        cause=None,
        data=data,
        sources=("NVIDIA/dcgm-exporter issues 85, 340 and 363", "Prometheus: honor_labels"),
    )


def _shared(gpus: dict[tuple[str, str], list[Series]]) -> Iterator[Finding]:
    for series in gpus.values():
        whole = [s for s in series if s.place.mig is None and s.place.workload]
        pods = list(dict.fromkeys(s.place.workload for s in whole if s.place.workload))
        if len(pods) < 2:
            continue
        entity = gpu_entity([s.place for s in whole])
        says = (
            f"One physical GPU ({entity.model or entity.name}) is shared by {len(pods)} pods "
            f"({listed(pod for _, pod in pods)}), time-sliced: each device value is copied to "
            "every pod."
        )
        util = [s for s in whole if s.signal and s.signal.id == "gpu_util" and s.value is not None]
        busy = bool(util) and max(s.value or 0 for s in util) >= _BUSY
        if util and util[0].value is not None:
            total = sum(s.value or 0 for s in util)
            says += (
                f" Utilisation {quantity(util[0].value, 'percent')} is that of the device: do not "
                f"sum it to {quantity(total, 'percent')}, and no pod has it to itself."
            )
        else:
            says += " Do not sum them."
        if busy:
            says += " Slow pods on it are explained by the sharing."
        yield Finding(
            kind="metrics",
            id="shared_gpu",
            severity=Severity.MEDIUM if busy else Severity.INFO,
            says=says,
            action=(
                "Aggregate with max by (UUID), never sum. If the pods need their full speed, give "
                "each a GPU of its own, MIG instances, or fewer replicas of time slicing."
            ),
            entity=entity,
            line=whole[0].line,
            cause="gpu_contention" if busy else None,
            data={"physical_gpus": 1, "pods": len(pods)},
            sources=("NVIDIA/dcgm-exporter pull request 594",),
        )


def _mig(gpus: dict[tuple[str, str], list[Series]]) -> Iterator[Finding]:
    sliced: dict[tuple[str, str], set[str]] = {}
    repeated: list[str] = []
    first: Series | None = None
    for key, series in gpus.items():
        instances = {s.place.mig for s in series if s.place.mig}
        if len(instances) < 2:
            continue
        sliced[key] = instances
        first = first or next(s for s in series if s.place.mig)
        values: dict[str, list[float]] = {}
        for s in series:
            if s.place.mig and s.last is not None:
                values.setdefault(s.name, []).append(s.last)
        repeated += [name for name, v in values.items() if len(v) > 1 and len(set(v)) == 1]
    if first is None:
        return
    count = sum(len(instances) for instances in sliced.values())
    one = len(sliced) == 1
    model = f" ({first.place.model})" if first.place.model else ""
    says = (
        f"{'One physical GPU' + model if one else f'{len(sliced)} physical GPUs'} cut into {count} "
        "MIG instances: device-wide values are reported once for each instance."
    )
    if repeated:
        says += f" {listed(repeated)} repeat{'' if len(set(repeated)) > 1 else 's'} one reading."
    yield Finding(
        kind="metrics",
        id="mig",
        severity=Severity.INFO,
        says=says,
        action="Count the GPU once: aggregate device-wide metrics with max by (UUID).",
        entity=gpu_entity([first.place]) if one else None,
        line=first.line,
        cause=None,
        data={"physical_gpus": len(sliced), "mig_instances": count},
        sources=("NVIDIA/dcgm-exporter issue 317",),
    )


def _mig_utilisation(gpus: dict[tuple[str, str], list[Series]]) -> Iterator[Finding]:
    """A utilisation of 0 that only says that MIG is on."""
    for series in gpus.values():
        zero = [s for s in series if s.signal and s.signal.id in UNMEASURED and s.last == 0]
        if not zero or not any(s.place.mig for s in series):
            continue
        measured = [
            f"{s.signal.title} of instance {s.place.mig} {quantity(s.value, s.unit)}"
            for s in series
            if s.place.mig and s.signal and s.value is not None and s.signal.id in _MEASURED
        ]
        real = f" What is measured: {listed(measured)}." if measured else ""
        yield Finding(
            kind="metrics",
            id="mig_utilisation",
            severity=Severity.INFO,
            says=(
                f"{listed(s.name for s in zero)} reads 0 on a GPU with MIG enabled: the driver "
                "does not measure it there, so it does not mean that the GPU is idle." + real
            ),
            action=(
                "Use DCGM_FI_PROF_GR_ENGINE_ACTIVE and DCGM_FI_PROF_DRAM_ACTIVE: they are measured "
                "for each instance."
            ),
            entity=gpu_entity([s.place for s in series]),
            line=zero[0].line,
            cause=None,
            data={"metrics": list(dict.fromkeys(s.name for s in zero))},
            sources=("NVIDIA/dcgm-exporter issues 50, 105, 216 and 430",),
        )


def _unattributed(
    collected: Collected, gpus: dict[tuple[str, str], list[Series]]
) -> Iterator[Finding]:
    """A busy GPU without a pod, where pods are known to be used."""
    if not collected.kubernetes and not any(s.place.workload for g in gpus.values() for s in g):
        return
    for series in gpus.values():
        if any(s.place.workload for s in series):
            continue
        util = next(
            (s for s in series if s.signal and s.signal.id == "gpu_util" and s.value is not None),
            None,
        )
        if util is None or util.value is None or util.value < _BUSY:
            continue
        entity = gpu_entity([s.place for s in series])
        yield Finding(
            kind="metrics",
            id="no_pod",
            severity=Severity.LOW,
            says=(
                f"{entity.name} is busy ({quantity(util.value, 'percent')}) but unattributed: its "
                "series have no pod label. A pod that uses a GPU without requesting nvidia.com/gpu "
                "cannot be mapped by the exporter."
            ),
            action="Add the nvidia.com/gpu limit to that pod's spec: then it can be mapped.",
            entity=entity,
            line=util.line,
            cause=None,
            data={"gpu_util_percent": util.value},
            sources=("NVIDIA/dcgm-exporter issue 138",),
        )


def _unreadable(series: Iterable[Series]) -> Iterator[Finding]:
    """Labels whose value is a marker of DCGM's for a text that could not be read."""
    found = {
        name: one
        for one in series
        for name, value in one.labels.items()
        if value in _NO_TEXT or _NOT_CONVERTED in value
    }
    if not found:
        return
    yield Finding(
        kind="metrics",
        id="label_without_value",
        severity=Severity.INFO,
        says=(
            f"Label {listed(found)}: its value is DCGM's marker for a text that it could not read "
            "or convert, and names nothing."
        ),
        action="Leave the label out of queries; take the field out of the exporter's list.",
        entity=None,
        line=next(iter(found.values())).line,
        cause=None,
        data={"labels": list(found)[:64]},
        sources=("NVIDIA/dcgm-exporter issue 394", "NVIDIA/DCGM dcgmlib/dcgm_structs.h 4.6.0"),
    )


def _two_versions(series: Iterable[Series]) -> Iterator[Finding]:
    """The label of the host under both of its names: exporters of two versions."""
    found = {
        name: one
        for one in series
        for name in ("Hostname", "hostname")
        if one.name.startswith("DCGM_") and name in one.labels
    }
    if len(found) < 2:
        return
    yield Finding(
        kind="metrics",
        id="two_versions",
        severity=Severity.INFO,
        says=(
            "Some series name the host Hostname and some hostname: exporters of two versions (it "
            "was renamed in 4.6.0-4.8.3), so a query by one of them misses half of the GPUs."
        ),
        action="Bring the exporters to one version, or relabel hostname to Hostname at the scrape.",
        entity=None,
        line=found["hostname"].line,
        cause=None,
        data={"labels": ["Hostname", "hostname"]},
        sources=("NVIDIA/dcgm-exporter issue 655",),
    )
