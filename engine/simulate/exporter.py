"""The simulated dcgm-exporter of one node: which fields, under which names and labels."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from engine.errors import UsageError
from engine.simulate import series as text
from engine.simulate.boards import Boards
from engine.simulate.environment import GONE, VISIBLE
from engine.simulate.fields import FIELDS, NVLINK_TOTAL, XID, Field, Form, Mig, mig_view
from engine.simulate.noise import Flags, Floats, Ints
from engine.simulate.observation import Rows
from engine.simulate.physics import STEP_S
from engine.simulate.series import Family, Series

DRIVER_VERSION = "570.133.20"
EXP_WINDOW_S = 300.0
_EXP_LABELS = {"window_size_in_ms": "300000"}

# Names of clock event bits as the exporter's derived metric labels them.
_CLOCK_EVENTS = {
    0x1: "gpu_idle", 0x2: "clocks_setting", 0x4: "power_cap", 0x8: "hw_slowdown",
    0x10: "sync_boost", 0x20: "sw_thermal", 0x40: "hw_thermal", 0x80: "hw_power_brake",
    0x100: "display_clocks",
}  # fmt: skip
# A partitioned 80 GB board: profile, instance number, sevenths of the GPU's compute.
_INSTANCES = (("3g.40gb", "1", 3), ("2g.20gb", "3", 2), ("2g.20gb", "5", 2))
_SWITCHES = 4


@dataclass(frozen=True, slots=True)
class Profile:
    """How a node's exporter is set up; the defaults are those of a well-kept one.

    Attributes:
        fields: ``full``, or ``stock`` for an unchanged default-counters.csv.
        names: ``legacy`` (exporters to 4.8.3) or ``canonical`` (DCGM 4.6 names in the CSV).
        host_label: ``Hostname`` (to 4.8.2), ``hostname`` (since 4.8.3) or empty for none.
        percent: PROF ratios come out as percent: a misbehaving exporter.
        leak_blanks: DCGM's blank values are printed instead of left out.
        pods: label series with the pod that uses the GPU.
        exported_pod: Prometheus scrapes without honouring labels, so that the workload's pod
            arrives as ``exported_pod``; only in files, a live Prometheus does it by itself.
        collect_s: collection interval (s), a multiple of 5; the exporter's own default is 30.
        xid_absent: no Xid series before the first Xid (DCGM 4.5) instead of a zero.
    """

    fields: Literal["full", "stock"] = "full"
    names: Literal["legacy", "canonical"] = "legacy"
    host_label: Literal["Hostname", "hostname", ""] = "Hostname"
    percent: bool = False
    leak_blanks: bool = False
    pods: bool = True
    exported_pod: bool = False
    collect_s: float = 15.0
    xid_absent: bool = False

    def __post_init__(self) -> None:
        if self.collect_s <= 0.0 or self.collect_s % STEP_S:
            message = f"a collection interval of {self.collect_s} s cannot be simulated"
            raise UsageError(message, hint=f"take a multiple of {STEP_S:g} s")


@dataclass(slots=True)
class View:
    """Readings of one node at n moments.

    Attributes:
        rows: float64[n, GPUs of the node] by name.
        event_masks, event_index: clock event masks at every collection from `EXP_WINDOW_S` before
            the first moment on, int64[m, GPUs], and the row of each moment in it, int64[n].
        times: Unix seconds, float64[n].
    """

    rows: Rows
    event_masks: Ints
    event_index: Ints
    times: Floats


class Exporter:
    """dcgm-exporter on one node."""

    def __init__(
        self,
        node: str,
        boards: Boards,
        cols: slice,
        *,
        profile: Profile,
        workloads: tuple[str, ...],
        xids: tuple[tuple[tuple[float, int], ...], ...],
        prometheus: Mapping[str, str],
    ) -> None:
        """Set up the exporter.

        Args:
            node: host name.
            boards: hardware of the whole fleet.
            cols: the node's GPUs in it.
            profile: how it exports.
            workloads: workload of each GPU of the node, which names its pod.
            xids: for each GPU, (time, code) of every Xid, ascending.
            prometheus: labels a scrape adds (job, instance).
        """
        self.node, self.profile = node, profile
        self._boards, self._cols, self._xids = boards, cols, xids
        self._target = dict(prometheus)
        self._has_nvlink = bool(boards.nvlink_bps[cols].max() > 0.0)
        models = boards.models[cols]
        self._labels = [self._gpu_labels(i, m.name) for i, m in enumerate(models)]
        self._pods = [self._pod_labels(i, kind) for i, kind in enumerate(workloads)]

    @property
    def uuids(self) -> tuple[str, ...]:
        """UUID of each GPU."""
        return tuple(labels["UUID"] for labels in self._labels)

    def families(self, view: View, *, scraped: bool) -> Iterator[Family]:
        """Yield all families at the view's moments.

        Args:
            view: readings.
            scraped: add the labels that Prometheus adds (for files) or not (for a live scrape).
        """
        view.rows["xid"] = self._xid_values(view.times)
        up = view.rows["down"] < 1.0
        for field in FIELDS:
            yield self.family(field, view, up, scraped=scraped)
        if self.profile.fields == "full":
            wanted = up & (view.rows["stock_only"] < 1.0)
            yield self._clock_events(view, wanted, scraped)
            yield self._xid_counts(view, wanted, scraped)
            if self._has_nvlink:
                yield from self._switches(view, wanted, scraped)

    def family(self, field: Field, view: View, up: Flags, *, scraped: bool) -> Family:
        """Return one field's family; without series if this exporter does not export it."""
        profile, rows = self.profile, view.rows
        name = field.canonical if profile.names == "canonical" else field.legacy
        # The exporter called this rate a counter until 4.8.2.
        mistyped = field is NVLINK_TOTAL and profile.host_label == "Hostname"
        family = Family(name, "counter" if mistyped else field.kind, field.help)
        if profile.fields == "stock" and not field.stock:
            return family
        values = np.array(field.read(rows, self._boards, self._cols))
        if field.ratio and profile.percent:
            values *= 100.0
        ok = up & (rows["sight"] < GONE)
        if not field.stock:
            ok &= rows["stock_only"] < 1.0
        unsupported = np.isnan(values)
        hidden = (rows["sight"] > VISIBLE) & (field is not XID)
        if field.profiling:
            hidden |= rows["profiling_off"] > 0.0
        values[hidden] = np.nan
        if field is XID and profile.xid_absent:
            ok &= values > 0.0
        for gpu in range(values.shape[1]):
            blank = self._blank(field, bool(unsupported[:, gpu].all()))
            for extra, shown, seen in self._variants(field, view, gpu, values[:, gpu]):
                family.series.append(
                    Series(
                        self._finish(gpu, extra, scraped), seen, ok[:, gpu] & shown, field.form,
                        blank,
                    )
                )  # fmt: skip
        return family

    def _blank(self, field: Field, unsupported: bool) -> str | None:
        if not self.profile.leak_blanks:
            return None
        if field.form is Form.FP64:
            return text.FP64_NOT_SUPPORTED if unsupported else text.FP64_BLANK
        return text.INT64_NOT_SUPPORTED if unsupported else text.INT64_BLANK

    def _variants(
        self, field: Field, view: View, gpu: int, values: Floats
    ) -> Iterator[tuple[dict[str, str], Flags, Floats]]:
        """Yield (labels, where shown, values) of every series of a field on one GPU."""
        rows = view.rows
        whole = rows["mig"][:, gpu] < 1.0
        pods = self._pods[gpu] if self.profile.pods else {}
        if field is XID:
            for code in np.unique(values[~np.isnan(values)]).astype(int).tolist():
                labels = {"err_code": str(code), "err_msg": _XID_TEXT.get(code, "Unknown Error")}
                yield {**labels, **pods}, values == code, values
            return
        if whole.any():
            yield pods, whole, values
            sharers = int(rows["pods"][:, gpu].max())
            for n in range(1, sharers):
                other = {**pods, "pod": f"{pods.get('pod', 'notebook')}-side-{n}"}
                yield other, whole & (rows["pods"][:, gpu] > n), values
        view_of = mig_view(field)
        if not whole.all() and view_of is not Mig.ABSENT:
            for n, (profile, number, sevenths) in enumerate(_INSTANCES):
                labels = {"GPU_I_PROFILE": profile, "GPU_I_ID": number}
                pod = {**pods, "pod": f"{pods['pod']}-{n}"} if pods else {}
                part = values
                if view_of is Mig.SHARE:
                    part = np.round(values * sevenths / 7.0)
                elif view_of is Mig.OWN:
                    part = values * (1.0, 0.82, 0.64)[n]
                yield {**labels, **pod}, ~whole, part

    def _clock_events(self, view: View, wanted: Flags, scraped: bool) -> Family:
        family = Family(
            "DCGM_EXP_CLOCK_EVENTS_COUNT", "gauge", "Samples with a clock event in the window."
        )
        back = round(EXP_WINDOW_S / self.profile.collect_s)
        visible = wanted & (view.rows["sight"] == VISIBLE)
        for bit, event in _CLOCK_EVENTS.items():
            total = np.cumsum((view.event_masks & bit) > 0, axis=0)
            count: Ints = total[view.event_index] - total[np.maximum(view.event_index - back, 0)]
            for gpu in np.flatnonzero(count.any(axis=0)).tolist():
                labels = {"clock_event": event, **_EXP_LABELS, **self._pod_of(gpu)}
                seen = count[:, gpu].astype(np.float64)
                family.series.append(
                    Series(self._finish(gpu, labels, scraped), seen, visible[:, gpu] & (seen > 0))
                )
        return family

    def _xid_counts(self, view: View, wanted: Flags, scraped: bool) -> Family:
        family = Family("DCGM_EXP_XID_ERRORS_COUNT", "gauge", "Xids in the window, by code.")
        for gpu, events in enumerate(self._xids):
            shown = wanted[:, gpu] & (view.rows["sight"][:, gpu] < GONE)
            none = np.ones(len(view.times), dtype=bool)
            for code in sorted({code for _, code in events}):
                at = np.array([t for t, c in events if c == code])
                age = view.times[:, None] - at[None, :]
                count = ((age >= 0.0) & (age < EXP_WINDOW_S)).sum(axis=1)
                labels = {**_EXP_LABELS, "xid": str(code), **self._pod_of(gpu)}
                seen = count.astype(np.float64)
                family.series.append(
                    Series(self._finish(gpu, labels, scraped), seen, shown & (count > 0))
                )
                none &= count == 0
            labels = {**_EXP_LABELS, **self._pod_of(gpu)}
            zero = np.zeros(len(view.times))
            family.series.append(Series(self._finish(gpu, labels, scraped), zero, shown & none))
        return family

    def _switches(self, view: View, wanted: Flags, scraped: bool) -> Iterator[Family]:
        for name, row, what in (
            ("DCGM_FI_DEV_NVSWITCH_FATAL_ERRORS", "sxid_fatal", "fatal"),
            ("DCGM_FI_DEV_NVSWITCH_NON_FATAL_ERRORS", "sxid_nonfatal", "non-fatal"),
        ):
            family = Family(name, "gauge", f"Last {what} SXid of the switch.")
            for switch in range(_SWITCHES):
                values = view.rows[row][:, 0] * (1.0 if switch == 0 else 0.0)
                labels = {"nvswitch": f"nvswitch{switch}", "hostname": self.node}
                labels |= self._target if scraped else {}
                family.series.append(Series(labels, values, wanted[:, 0]))
            yield family

    def _xid_values(self, times: Floats) -> Floats:
        out = np.zeros((len(times), len(self._xids)))
        for gpu, events in enumerate(self._xids):
            for at, code in events:
                out[times >= at, gpu] = code
        return out

    def _pod_of(self, gpu: int) -> dict[str, str]:
        return self._pods[gpu] if self.profile.pods else {}

    def _gpu_labels(self, gpu: int, model: str) -> dict[str, str]:
        digest = hashlib.blake2b(f"{self._boards.seed}/{self.node}:{gpu}".encode(), digest_size=16)
        h = digest.hexdigest()
        uuid = f"GPU-{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}"
        labels = {
            "gpu": str(gpu), "UUID": uuid, "pci_bus_id": f"00000000:{0x18 + 0x11 * gpu:02X}:00.0",
            "device": f"nvidia{gpu}", "modelName": model,
        }  # fmt: skip
        if self.profile.host_label:
            labels[self.profile.host_label] = self.node
        labels["DCGM_FI_DRIVER_VERSION"] = DRIVER_VERSION
        return labels

    def _pod_labels(self, gpu: int, kind: str) -> dict[str, str]:
        if kind == "idle":
            return {}
        name = {"decode": "llm", "training": "train", "compute": "gemm"}.get(kind, kind)
        pod = f"{name.replace('_', '-')}-{self.node}-{gpu}"
        return {"container": "main", "namespace": "ml", "pod": pod}

    def _finish(self, gpu: int, extra: Mapping[str, str], scraped: bool) -> dict[str, str]:
        """Return the full label set: the GPU's, the series' own, and those of a scrape."""
        if not scraped:
            return {**self._labels[gpu], **extra}
        if self.profile.exported_pod:
            own = ("container", "namespace", "pod")
            extra = {(f"exported_{k}" if k in own else k): v for k, v in extra.items()}
            extra |= {
                "container": "nvidia-dcgm-exporter", "namespace": "gpu-operator",
                "pod": f"nvidia-dcgm-exporter-{self.node}",
            }  # fmt: skip
        return {**self._labels[gpu], **extra, **self._target}


_XID_TEXT = {
    0: "No Error", 13: "Graphics Engine Exception", 31: "GPU memory page fault",
    39: "Copy Engine Exception", 43: "GPU stopped processing",
    48: "Double Bit ECC Error", 62: "Internal micro-controller halt",
    63: "ECC page retirement or row remapping recording event",
    64: "ECC page retirement or row remapper recording failure", 74: "NVLink Error",
    79: "GPU has fallen off the bus", 92: "High single-bit ECC error rate",
    94: "Contained ECC error", 95: "Uncontained ECC error", 109: "Context Switch Timeout Error",
    110: "Security Fault Error", 119: "GSP RPC Timeout",
}  # fmt: skip
