"""What messages of ``nvidia-smi``, NVML and CUDA mean, and what they mean together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from engine.model import Entity, Finding, Kind, Severity
from engine.readers.base import Result
from engine.readers.listing import at, finding, node, result_of
from engine.readers.smi.concerns import CONCERNS
from engine.readers.smi.errors import INIT_FAILURES, PLAIN
from engine.readers.smi.messages import Message
from engine.readers.smi.prose import spoken
from engine.readers.smi.state import listed
from engine.readers.smi.told import hung, loads, missing, unreadable

_KIND: Final = "nvidia_smi_error"
_NVML: Final = "NVIDIA NVML API 13, nvml.h, nvmlReturn_t"
_OFF_BUS: Final = ("handle", "lost", "rev_ff")


def trouble_result(records: Sequence[Message]) -> Result:
    """Say what all messages of a paste mean, the root of them first."""
    found = [*_off_bus(records), *_resets(records), *_init(records), *_others(records)]
    found += [*_fabric(records), *missing(records), *unreadable(records), *loads(records)]
    if not any(f.cause in ("gpu_off_bus", "gpu_needs_reset") for f in found):
        found += hung(records)
    return result_of([_KIND] if found else [], found)


def _off_bus(records: Sequence[Message]) -> Iterator[Finding]:
    groups: dict[tuple[str | None, str], list[Message]] = {}
    unnamed: list[Message] = []
    for one in records:
        if one.id not in _OFF_BUS or _asks_reset(one):
            continue
        key = _short(one.pci) if one.pci else (f"#{one.index}" if one.index is not None else None)
        if key is None:
            unnamed.append(one)
        else:
            groups.setdefault((one.host, key), []).append(one)
    if unnamed and not groups:
        groups[unnamed[0].host, ""] = unnamed
    stuck = any(m.id == "stuck" for m in records)
    for group in list(groups.values())[:64]:
        yield _gone(group, stuck=stuck)


def _gone(group: Sequence[Message], *, stuck: bool) -> Finding:
    first = next((m for m in group if m.pci), group[0])
    ids = {m.id for m in group}
    pci = first.pci
    label = f"GPU {pci}" if pci else (f"GPU {first.index}" if first.index is not None else "A GPU")
    reasons = [f"'{m.detail}'" for m in group if m.detail]
    seen = []
    if "handle" in ids:
        why = f" ({listed(list(dict.fromkeys(reasons)), 2)})" if reasons else ""
        seen.append(f"nvidia-smi gets no handle for it{why}")
    if "lost" in ids:
        seen.append("the driver says 'GPU is lost'")
    if "rev_ff" in ids:
        seen.append("lspci shows 'rev ff': its configuration space reads all ones")
    sure = bool({"rev_ff", "lost"} & ids) or any("lost" in m.detail.lower() for m in group)
    verdict = "is off the PCIe bus" if sure else "does not answer, most likely off the PCIe bus"
    says = f"{at(first.host)}{label} {verdict}, the situation of Xid 79: {'; '.join(seen)}."
    says += (
        " Processes in state D that wait for it cannot be killed; only the restart ends them."
        if stuck
        else " Processes that hang in state D on it cannot be killed."
    )
    proof = "" if sure else "lspci -s BUS_ID: 'rev ff' proves it. "
    return finding(
        _KIND,
        "off_bus",
        Severity.CRITICAL,
        says,
        f"Drain the node. {proof}Keep dmesg -T and nvidia-bug-report.sh, then power-cycle the "
        "host: a GPU reset cannot reach it, and a warm reboot may not be enough. If it comes back, "
        "check seating, power and temperature before it gets work.",
        line=min(m.line for m in group),
        cause="gpu_off_bus",
        data={"pci": pci, "gpu": first.index, "rev_ff": True if "rev_ff" in ids else None},
        entity=_entity(first),
        sources=(_NVML, "NVIDIA Xid Errors documentation, Xid 79"),
    )


def _asks_reset(one: Message) -> bool:
    return "reset" in one.detail.lower()


def _resets(records: Sequence[Message]) -> Iterator[Finding]:
    group = [m for m in records if m.id == "reset" or (m.id == "handle" and _asks_reset(m))]
    if not group:
        return
    concern = CONCERNS["requires_reset"]
    count = max((m.count for m in group if m.count is not None), default=None)
    total = max((m.total for m in records if m.total is not None), default=None)
    visible = next((m.visible for m in records if m.visible is not None), None)
    named = [m for m in group if m.pci]
    indices = sorted({index for m in group for index in m.gpus})
    if indices:
        who = f"{spoken(indices)} show{'s' if len(indices) == 1 else ''}"
    elif count is not None:
        of = f" of {total}" if total is not None and total > count else ""
        who = f"{count}{of} GPUs show"
    elif named:
        who = f"{listed([f'GPU {m.pci}' for m in named], 8)} show{'s' if len(named) == 1 else ''}"
    else:
        who = "A GPU shows"
    says = f"{at(group[0].host)}{who} 'GPU requires reset'. "
    left = visible
    if left is None and count is not None and total is not None and total > count:
        left = total - count
    if left is not None:
        says += f"Only {left} GPU{' is' if left == 1 else 's are'} usable"
        says += " (cudaGetDeviceCount counts no more)" if visible is not None else ""
        says += ". "
    if any(m.id == "ordinal" for m in records):
        says += "'invalid device ordinal' is the consequence of the missing GPUs, not the cause. "
    yield finding(
        _KIND,
        "requires_reset",
        concern.severity,
        says + concern.meaning,
        concern.action,
        line=group[0].line,
        cause=concern.cause,
        data={
            "gpus_need_reset": count,
            "gpu_count": total,
            "gpus_usable": left,
            "faulted_gpus": indices or None,
            "pci": named[0].pci if len(named) == 1 else None,
        },
        entity=_reset_of(named, indices, group[0].host),
        sources=concern.sources,
    )


def _reset_of(named: Sequence[Message], indices: Sequence[int], host: str | None) -> Entity | None:
    """The one GPU that is named, else the node."""
    if len({m.pci for m in named}) == 1 and len(indices) < 2:
        return _entity(named[0])
    if len(indices) == 1 and not named:
        name = f"{host}:{indices[0]}" if host else f"GPU {indices[0]}"
        return Entity(Kind.GPU, name, host=host, gpu=indices[0])
    return node(host)


def _init(records: Sequence[Message]) -> Iterator[Finding]:
    for reason in dict.fromkeys(m.detail for m in records if m.id == "nvml"):
        one = next(m for m in records if m.id == "nvml" and m.detail == reason)
        version = next((m.detail for m in records if m.id == "nvml_version"), "")
        library = f" The library is of version {version}." if version else ""
        known = INIT_FAILURES.get(reason.lower(), INIT_FAILURES[""])
        yield finding(
            _KIND,
            "nvml_init",
            known.severity,
            f"{at(one.host)}NVML cannot start: '{reason}'. {known.meaning}{library}",
            known.action,
            line=one.line,
            cause=known.cause,
            data={"nvml_error": reason, "library_version": version or None},
            entity=node(one.host),
            sources=known.sources,
        )


def _others(records: Sequence[Message]) -> Iterator[Finding]:
    by_id: dict[str, Message] = {}
    for one in records:
        by_id.setdefault(one.id, one)
    for id_, known in PLAIN.items():
        first = by_id.get(id_)
        if first is None:
            continue
        where = f"GPU {first.pci}: " if first.pci else ""
        yield finding(
            _KIND,
            id_,
            known.severity,
            f"{at(first.host)}{where}{known.meaning}",
            known.action,
            line=first.line,
            cause=known.cause,
            data={"pci": first.pci},
            entity=_entity(first),
            sources=known.sources,
        )


def _fabric(records: Sequence[Message]) -> Iterator[Finding]:
    one = next((m for m in records if m.id == "fabric_waiting"), None)
    if one is not None:
        known = CONCERNS[one.id]
        yield finding(
            _KIND,
            one.id,
            known.severity,
            f"{at(one.host)}fabric state {one.detail}. {known.meaning}",
            known.action,
            line=one.line,
            cause=known.cause,
            data={"fabric_state": one.detail},
            entity=node(one.host),
            sources=known.sources,
        )


def _entity(one: Message) -> Entity | None:
    if one.pci:
        return Entity(Kind.GPU, f"GPU {one.pci}", host=one.host, gpu=one.index, pci=one.pci)
    if one.index is not None:
        name = f"{one.host}:{one.index}" if one.host else f"GPU {one.index}"
        return Entity(Kind.GPU, name, host=one.host, gpu=one.index)
    return node(one.host)


def _short(pci: str) -> str:
    """Bus, device and function without the domain, in lower case."""
    return ":".join(pci.lower().split(":")[-2:])
