"""From the labels of a series to what it is about, for everything but GPUs and their nodes.

Scopes: ``port`` (a network port of a node), ``filesystem`` (a mount of a node), ``pod``, ``rank``
(a process of a training job) and ``service`` (an engine of a served model). Spellings of labels
are those of node_exporter, cAdvisor, kube-state-metrics, vLLM, SGLang, TGI, Triton and the Lustre
exporters; a series that lacks the labels of its scope is about nothing, and is left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from engine.model import Entity, Kind
from engine.signals.hosts import host_of
from engine.signals.labels import (
    CLUSTER_LABELS,
    JOB_LABELS,
    NAMESPACE_LABELS,
    POD_LABELS,
    first,
)

SCOPES = ("port", "filesystem", "pod", "rank", "service")
MODEL_LABELS = ("model_name", "served_model_name", "model", "model_id")
ENGINE_LABELS = ("engine", "engine_index", "dp_rank")
MOUNT_LABELS = ("mountpoint", "mount_point", "mount")
RANK_LABELS = ("rank", "global_rank", "trainer_rank", "ray_train_worker_world_rank", "split")
RUN_LABELS = (
    *JOB_LABELS,
    *("run_id", "run", "training_job", "job_name"),
    *("ray_train_run_name", "dataset"),
)
# What NCCL Inspector and DLRover's xpu_timer write where they do not know.
_NOT_KNOWN = frozenset({"unknown", "NOT_SET", "none", "None"})
# NCCL Inspector names a rank by its GPU on the node: GPU0.
_LOCAL_GPU = re.compile(r"(?:GPU)?(\d{1,3})")
# Lustre names a target after its file system: scratch-OST0003 (Lustre manual, lfs df).
_LUSTRE_TARGET = re.compile(r"([A-Za-z0-9_]{1,8})-(?:OST|MDT)[0-9a-fA-F]{4}")
_LUSTRE_DEVICE = re.compile(r"[^/]{0,253}@[a-z0-9]{1,8}:/(?P<fs>[A-Za-z0-9_]{1,8})")
# Ends of tunnels, bridges and containers, and the loopback: no ports of the machine.
VIRTUAL = (
    "(?:lo|veth|cali|cni|docker|br-|virbr|flannel|cilium"
    "|lxc|tunl|tap|vxlan|kube|dummy|nodelocaldns)"
)
_VIRTUAL = re.compile(VIRTUAL)
# A partition and its disk: nvme0n1p2 of nvme0n1, sda1 of sda.
_PARTITION = re.compile(r"(nvme\d{1,4}n\d{1,4})p\d{1,3}|([sv]d[a-z]{1,3})\d{1,3}")
# Images that are written once are full by nature.
_ALWAYS_FULL = frozenset({"iso9660", "udf", "squashfs", "erofs", "cramfs"})
_MAX_NAME = 253


@dataclass(frozen=True, slots=True)
class Found:
    """What a series is about.

    Attributes:
        key: identity within its scope.
        entity: the entity.
        group: what its siblings share: the host, the file system, the job, the model.
        partial: a series of a whole instance, which belongs to all engines there.
    """

    key: tuple[str, ...]
    entity: Entity
    group: tuple[str, ...]
    partial: bool = False


def identify(
    scope: str,
    labels: Mapping[str, str],
    aliases: Mapping[tuple[str, str], str],
    hosts: Mapping[str, str] | None = None,
) -> Found | None:
    """Return what the series of a scope is about, None if its labels do not say.

    Args:
        scope: one of `SCOPES`.
        labels: of the series.
        aliases: (host, device) to where it is mounted (see `mounts`).
        hosts: scrape address to host (`engine.signals.hosts`).
    """
    cluster = first(labels, CLUSTER_LABELS)
    host = host_of("", labels, hosts or {})
    if host and len(host) > _MAX_NAME:
        host = None
    match scope:
        case "port":
            return _port(labels, cluster, host)
        case "filesystem":
            return _filesystem(labels, cluster, host, aliases)
        case "pod":
            return _pod(labels, cluster)
        case "rank":
            return _rank(labels, cluster, host)
        case _:
            return _service(labels, cluster, host)


def run_of(labels: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the label that names the job of a series, and its value; None if none does."""
    for label in RUN_LABELS:
        value = labels.get(label)
        if value and value not in _NOT_KNOWN:
            return label, value
    return None


def of_no_host(labels: Mapping[str, str]) -> bool:
    """Return whether a series is of an interface that does not leave the host: loopback, veth."""
    device = labels.get("device")
    return device is not None and _VIRTUAL.match(device) is not None


def mounts(
    labels: Mapping[str, str], hosts: Mapping[str, str] | None = None
) -> dict[tuple[str, str], str]:
    """Return where devices are mounted, as far as a series states it: by (host, device).

    A disk is known under its own name and that of its partition. What Lustre's servers say of a
    file system comes from other hosts than it is mounted on: it is also known without a host.
    """
    mount, device = first(labels, MOUNT_LABELS), labels.get("device")
    if not (mount and device):
        return {}
    host = host_of("", labels, hosts or {}) or ""
    if name := lustre_name(device):
        return {(host, name): mount, ("", name): mount}
    disk = device.removeprefix("/dev/")
    part = _PARTITION.fullmatch(disk)
    whole = (part[1] or part[2]) if part else disk
    return {(host, known): mount for known in (device, disk, whole)}


def lustre_name(device: str) -> str | None:
    """Return the name of a Lustre file system from the device that mounts show."""
    found = _LUSTRE_DEVICE.fullmatch(device)
    return found["fs"] if found else None


def _port(labels: Mapping[str, str], cluster: str | None, host: str | None) -> Found | None:
    device = labels.get("device") or labels.get("interface")
    if not device or not host or of_no_host({"device": device}):
        return None
    port = labels.get("port")
    name = f"{device}/{port}" if port else device
    entity = Entity(Kind.NODE, f"{host} {name}", cluster, host, instance=name)
    kind = "ib" if port else "eth"
    return Found((cluster or "", host, name), entity, (cluster or "", host, kind))


def _filesystem(
    labels: Mapping[str, str],
    cluster: str | None,
    host: str | None,
    aliases: Mapping[tuple[str, str], str],
) -> Found | None:
    if labels.get("fstype") in _ALWAYS_FULL:
        return None
    mount = first(labels, MOUNT_LABELS)
    target = _LUSTRE_TARGET.match(labels.get("target", ""))
    if mount is None:
        device = (
            labels.get("export")
            or labels.get("fs_name")
            or labels.get("fsname")
            or (target[1] if target else None)
            or labels.get("device")
        )
        if not device:
            return None
        mount = aliases.get((host or "", device)) or aliases.get(("", device), device)
    part = target[0] if target else None  # one OST may be full while the others are not
    own = host if part is None and _is_disk(labels) else None  # each host has its own /scratch
    entity = Entity(Kind.FILESYSTEM, f"fs/{mount.lstrip('/')}", cluster, host, instance=part or own)
    return Found(
        (cluster or "", host or "", mount, part or ""), entity, (cluster or "", mount, part or "")
    )


def is_target(entity: Entity) -> bool:
    """Return whether a file system's entity is one target of a Lustre file system."""
    return (
        entity.kind is Kind.FILESYSTEM and _LUSTRE_TARGET.match(entity.instance or "") is not None
    )


def _is_disk(labels: Mapping[str, str]) -> bool:
    """Return whether a mount's device is a disk of the host, and no server's share."""
    device = labels.get("device", "")
    shared = labels.get("export") or labels.get("fs_name") or labels.get("fsname")
    return bool(device) and not shared and ":" not in device and not device.startswith("//")


def _pod(labels: Mapping[str, str], cluster: str | None) -> Found | None:
    pod, namespace = first(labels, POD_LABELS), first(labels, NAMESPACE_LABELS)
    if not pod:
        return None
    host = labels.get("node") or None  # the instance is that of the exporter, not of the pod
    entity = Entity(
        Kind.POD, f"pod/{namespace or ''}/{pod}", cluster, host, namespace=namespace, pod=pod
    )
    return Found((cluster or "", namespace or "", pod), entity, (cluster or "", namespace or ""))


def _rank(labels: Mapping[str, str], cluster: str | None, host: str | None) -> Found | None:
    known = {name: value for name, value in labels.items() if value not in _NOT_KNOWN}
    job, rank = first(known, RUN_LABELS), first(known, RANK_LABELS)
    number = int(rank) if rank and rank.isascii() and rank.isdigit() and len(rank) < 7 else None
    local = _LOCAL_GPU.fullmatch(known.get("gpu") or known.get("local_rank") or "")
    gpu = int(local[1]) if local and local[1].isascii() else None
    by_gpu = number is None and gpu is not None and host is not None
    if job is None and number is None and not by_gpu:
        return None
    run = job or known.get("job") or ""
    name = f"job/{run}"
    if number is not None:
        name += f"/rank/{number}"
    elif by_gpu:
        name += f"/{host}:{gpu}"
    kind = Kind.RANK if number is not None or by_gpu else Kind.JOB
    entity = Entity(kind, name, cluster, host, gpu=gpu, job=run or None, rank=number)
    return Found((cluster or "", run, name), entity, (cluster or "", run))


def _service(labels: Mapping[str, str], cluster: str | None, host: str | None) -> Found | None:
    model, engine = first(labels, MODEL_LABELS), first(labels, ENGINE_LABELS)
    pod, namespace = first(labels, POD_LABELS), first(labels, NAMESPACE_LABELS)
    instance = pod or labels.get("instance") or ""
    where = f"#{instance}" if instance else ""
    part = f" engine {engine}" if engine else ""
    entity = Entity(
        Kind.SERVICE,
        f"svc/{model or ''}{where}{part}",
        cluster,
        host,
        namespace=namespace,
        pod=pod,
        service=model,
        instance=instance or None,
    )
    return Found(
        (cluster or "", model or "", instance, engine or ""),
        entity,
        (cluster or "", model or ""),
        partial=model is None or engine is None,
    )
