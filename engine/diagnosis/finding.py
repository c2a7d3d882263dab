"""How a target is looked for, under the labels that exporters give it.

First under those of dcgm-exporter; the rarer spellings of a host only where these find nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from engine.diagnosis.byhost import address, host_matchers, portions
from engine.diagnosis.selecting import Selecting
from engine.model import Kind
from engine.samples import Matcher, Selection
from engine.signals.entities import MODEL_LABELS, MOUNT_LABELS
from engine.signals.labels import JOB_LABELS, UUID_LABELS
from engine.topology import Target

_FULL_UUID = 40
# Into so many parts the metrics of a job's GPUs are divided: one is read while the server finds the
# next.
_JOB_PARTS = 4
# How exporters of GPUs name the host: dcgm-exporter before and since 4.6.0-4.8.3, then the rest.
_USUAL = 2
# Series of switches and links always spell it so (dcgm-exporter internal/pkg/rendermetrics).
_NODE_LABEL = "hostname"


class Finding(Selecting):
    """Makes the selections that find a target."""

    def wave_one(self, target: Target, window_s: float) -> list[Selection]:
        """Return the selections that find a target under the usual spellings of its labels."""
        near = max(self.sibling_window_s, 300.0)
        if target.uuid:
            exact = len(target.uuid) >= _FULL_UUID
            op, value = ("=", target.uuid) if exact else ("=~", re.escape(target.uuid) + ".*")
            bare = re.escape(target.uuid.removeprefix("GPU-")) + ("" if exact else ".*")
            return [
                *(
                    Selection(self.names.gpu, (Matcher(label, op, value),), window_s)
                    for label in UUID_LABELS
                ),
                Selection(self.names.smi, (Matcher("uuid", "=~", bare),), window_s),
            ]
        if target.pod:
            return self._by_pod(target.namespace or "", target.pod, self.names.gpu, window_s)
        if target.kind in {Kind.SERVICE, Kind.FILESYSTEM, Kind.RANK}:
            return self._own(target, window_s)
        if target.job:
            return [
                *(
                    Selection(self.names.gpu[k::_JOB_PARTS], (by_label,), window_s)
                    for by_label in (Matcher(label, "=", target.job) for label in JOB_LABELS)
                    for k in range(_JOB_PARTS)
                ),
                *self._ranks(target.job, window_s),
            ]
        if target.hosts:
            return self._by_hosts(target.hosts, window_s)
        if target.kind is Kind.FLEET:
            return [Selection(self.names.all, (), window_s)]
        if target.host is None:
            index = () if target.gpu is None else (Matcher("gpu", "=", str(target.gpu)),)
            return [Selection(self.names.gpu, index, window_s)]
        return self._by_host(target.host, target.gpu, window_s, near)

    def _by_host(
        self,
        host: str,
        gpu: int | None,
        window_s: float,
        near: float,
    ) -> list[Selection]:
        out = []
        if gpu is not None:  # nvidia_gpu_exporter: the host in its address, the index in no label
            out.append(Selection(self.names.smi, (address([host]),), window_s))
        for matchers in host_matchers([host])[:_USUAL]:
            if gpu is None:
                out += self._whole_host(matchers, window_s)
                continue
            out.append(
                Selection(self.names.gpu, (*matchers, Matcher("gpu", "=", str(gpu))), window_s)
            )
            if self.names.siblings:
                others = (*matchers, Matcher("gpu", "!=", str(gpu)))
                out.append(Selection(self.names.siblings, others, near))
            if matchers[0].label != _NODE_LABEL:
                continue
            if self.names.node:
                out.append(Selection(self.names.node, matchers, window_s))
            if self.names.amd:  # AMD's exporter has no label "gpu", and its host in this one
                index = Matcher("gpu_id", "=", str(gpu))
                out.append(Selection(self.names.amd, (*matchers, index), window_s))
        out += [*self.hosts_own([host], window_s), *self.who_is([host], window_s)]
        return out

    def _by_hosts(self, hosts: Iterable[str], window_s: float) -> list[Selection]:
        """Return everything of several hosts."""
        out = []
        for some in portions(hosts):
            for matchers in host_matchers(some):
                out += self._whole_host(matchers, window_s)
            out += [*self.hosts_own(some, window_s), *self.who_is(some, window_s)]
        return out

    def _own(self, target: Target, window_s: float) -> list[Selection]:
        """Return the selections that find a service, a file system or a job's ranks."""
        if target.kind is Kind.RANK:
            return self._ranks(target.job or "", window_s)
        if target.kind is Kind.SERVICE:
            return [
                selection
                for model, _ in target.models
                for selection in self._labelled("service", MODEL_LABELS, model, window_s)
            ]
        return self._labelled("filesystem", MOUNT_LABELS, target.mount, window_s)

    def rarer(self, target: Target, window_s: float) -> list[Selection]:
        """Return the selections that find a host under the labels that `wave_one` left out."""
        if target.host is None:
            return []
        return [
            selection
            for matchers in host_matchers([target.host])[_USUAL:]
            for selection in self._whole_host(matchers, window_s)
        ]
