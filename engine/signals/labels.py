"""From the labels of a series to the entity it is about.

Exporters spell the same thing differently, and versions of one exporter too: dcgm-exporter wrote
``Hostname`` up to 4.5.3-4.8.2 and ``hostname`` since; link series say ``gpu_uuid``; Prometheus
renames a clashing ``pod`` to ``exported_pod``. All of it is resolved here and nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from engine.model import Entity, Kind

HOST_LABELS = ("Hostname", "hostname", "node", "nodename", "kubernetes_node")
GPU_LABELS = ("gpu", "GPU", "gpu_id", "gpu_index", "index")
UUID_LABELS = ("UUID", "uuid", "gpu_uuid")
PCI_LABELS = ("pci_bus_id", "gpu_pci_bus_id")
# AMD's exporter has the product in card_series where card_model is the number of the board.
MODEL_LABELS = ("modelName", "model_name", "gpu_model", "card_series", "card_model")
POD_LABELS = ("exported_pod", "pod", "pod_name")
NAMESPACE_LABELS = ("exported_namespace", "namespace", "pod_namespace")
JOB_LABELS = ("hpc_job", "slurm_job_id", "slurmjobid", "job_id")
MIG_LABELS = ("GPU_I_ID",)
CLUSTER_LABELS = ("cluster", "kubernetes_cluster")

# The labels that name a GPU or its place: enough to list what a source knows.
IDENTITY_LABELS = (
    *HOST_LABELS,
    "instance",
    *GPU_LABELS,
    *UUID_LABELS,
    *CLUSTER_LABELS,
)

_MAX_HOST = 253  # RFC 1035
_DEVICE = re.compile(r"nvidia(\d{1,3})")
_BARE_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_EXPORTER_POD = re.compile(r"(?:^|[-_])exporter(?:[-_]|$)")
# An allocated GPU keeps the exporter's own pod in `pod` only where Prometheus renamed the
# workload's to `exported_pod`; alone, a pod called like an exporter is the exporter.


@dataclass(frozen=True, slots=True)
class Place:
    """What the labels of one series say: the GPU (or only its host), and the workload on it.

    ``key`` identifies the physical GPU, ``mig`` a slice of it. ``workload`` is (namespace, pod),
    ``instance`` and ``scraper`` are the address and the job of Prometheus that it was scraped by.
    """

    key: tuple[str, str]
    cluster: str | None
    host: str | None
    gpu: int | None
    uuid: str | None
    pci: str | None
    model: str | None
    mig: str | None
    workload: tuple[str | None, str] | None
    job: str | None
    instance: str | None
    scraper: str | None = None


def first(labels: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    """Return the first non-empty value among some spellings of a label."""
    for name in names:
        value = labels.get(name)
        if value:
            return value
    return None


# Thousands of series share a few scrape addresses.
@lru_cache(maxsize=4096)
def host_of_instance(instance: str | None) -> str | None:
    """Return the host of a scrape address (``10.0.4.9:9400`` gives ``10.0.4.9``)."""
    if not instance:
        return None
    host, colon, port = instance.rpartition(":")
    return host if colon and port.isdigit() else instance


def locate(labels: Mapping[str, str]) -> Place:
    """Read the place of a series from its labels."""
    instance = labels.get("instance")
    host = first(labels, HOST_LABELS) or host_of_instance(instance)
    if host and len(host) > _MAX_HOST:
        host = None  # no name that a resolver takes: a label that means something else
    uuid = whole_uuid(first(labels, UUID_LABELS) or "") or None
    index = _index(labels)
    cluster = first(labels, CLUSTER_LABELS)
    serial = labels.get("serial_number")
    if uuid:
        key = (cluster or "", uuid)
    elif serial and labels.get("gpu_partition_id"):
        # The partitions of an AMD board are devices of their own, with sensors on the first only.
        key = (cluster or "", f"{host or ''} serial {serial}")
    elif index is not None:
        key = (cluster or "", f"{host or ''}:{index}")
    else:
        key = (cluster or "", "")
    return Place(
        key=key,
        cluster=cluster,
        host=host,
        gpu=index,
        uuid=uuid,
        pci=first(labels, PCI_LABELS),
        model=first(labels, MODEL_LABELS),
        mig=first(labels, MIG_LABELS),
        workload=_workload(labels),
        job=first(labels, JOB_LABELS),
        instance=instance,
        scraper=labels.get("job"),
    )


def whole_uuid(text: str) -> str:
    """Return a GPU's UUID with its prefix, which nvidia_gpu_exporter leaves out."""
    return f"GPU-{text}" if _BARE_UUID.fullmatch(text) else text


def _index(labels: Mapping[str, str]) -> int | None:
    value = first(labels, GPU_LABELS)
    if value is not None and value.isascii() and value.isdigit() and len(value) <= 3:
        return int(value)
    found = _DEVICE.fullmatch(labels.get("device", ""))
    return int(found[1]) if found else None


def _workload(labels: Mapping[str, str]) -> tuple[str | None, str] | None:
    exported = labels.get("exported_pod")
    if exported:
        return labels.get("exported_namespace"), exported
    pod = first(labels, ("pod", "pod_name"))
    if not pod or _EXPORTER_POD.search(pod):
        return None
    return first(labels, ("namespace", "pod_namespace")), pod


def gpu_entity(places: list[Place]) -> Entity:
    """Merge what several series say about one physical GPU into its entity.

    The name is ``HOST:INDEX``, ``GPU INDEX`` where no host is known, else the UUID. A pod or job
    is named only if it is the only one: several mean that the GPU is shared.
    """
    head = places[0]
    host = next((p.host for p in places if p.host), None)
    gpu = _index_of(places)
    workloads = sorted({p.workload for p in places if p.workload}, key=str)
    jobs = sorted({p.job for p in places if p.job})
    if gpu is None:
        name = head.uuid or (f"{host}" if host else "GPU")
    else:
        name = f"{host}:{gpu}" if host else f"GPU {gpu}"
    namespace, pod = workloads[0] if len(workloads) == 1 else (None, None)
    return Entity(
        kind=Kind.GPU,
        name=name,
        cluster=head.cluster,
        host=host,
        gpu=gpu,
        uuid=next((p.uuid for p in places if p.uuid), None),
        pci=next((p.pci for p in places if p.pci), None),
        model=next((p.model for p in places if p.model), None),
        namespace=namespace,
        pod=pod,
        job=jobs[0] if len(jobs) == 1 else None,
    )


def _index_of(places: list[Place]) -> int | None:
    """Return the index of a board: of one cut into partitions that of the first of them."""
    known = [p.gpu for p in places if p.gpu is not None]
    if not known or places[0].uuid:
        return known[0] if known else None
    return min(known)


def node_entity(host: str, cluster: str | None = None) -> Entity:
    """Return the entity of a host."""
    return Entity(kind=Kind.NODE, name=host, cluster=cluster, host=host)
