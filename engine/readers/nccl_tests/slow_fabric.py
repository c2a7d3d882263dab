"""What a low figure over several nodes points at: cards, RoCE, sockets, GPUDirect, a collapse."""

from __future__ import annotations

from dataclasses import dataclass

from engine.model import Severity
from engine.readers.nccl_tests.run import Run
from engine.readers.nccl_tests.verdict import DEGRADED, Verdict, gbs, share

# What one port carries with RDMA, GB/s: line rate (knowledge/storage), less a tenth.
_PORTS_GBS = ((3.125, "25 GbE"), (12.5, "100 GbE (or EDR InfiniBand)"))
_OF_LINE_RATE = 0.9
SOCKET_GBS = 25.0
"""More than TCP sockets carry between nodes, GB/s (site default)."""
_SOURCES = ("NVIDIA/nccl-tests issues 119, 196 and 290",)
PAIRS = (
    "Find where: mpirun -np {pair} --hostfile FILE --map-by ppr:{per}:node -x NCCL_ALGO=Ring "
    "./build/all_reduce_perf -b 8G -e 8G -g 1 on pairs of nodes, all pairs at once, then pair them "
    "anew; the node that is slow with two partners is the bad one. Then by rail: "
    '-x NCCL_TESTS_SPLIT="MOD {per}".'
)
_PORTS = (
    "On that node: ibstat (State Active, LinkUp, full rate), perfquery -x, and NCCL_DEBUG=INFO "
    "(every card in NET/IB : Using, /GDRDMA at the end of channel lines)."
)
_ROCE = (
    "On RoCE: ethtool -S DEV | grep -E 'pause|cnp|ecn|discard' on hosts and the same on switches, "
    "NCCL_IB_QPS_PER_CONNECTION=4 against ECMP collisions, the traffic class (NCCL_IB_TC); "
    "NCCL_DEBUG=INFO should list every card and /GDRDMA."
)
_GDR = (
    "Look for nvidia_peermem or DMA-BUF on the hosts, for ACS (lspci -vvv | grep ACSCtl), and for "
    "cards far from their GPU (nvidia-smi topo -m: PIX or PXB is near)."
)


@dataclass(frozen=True, slots=True)
class Ceiling:
    """What a run can reach at most, GB/s, and why, for people."""

    value: float
    why: str
    slot: bool = False


def degraded(
    run: Run, busbw: float, limit: float, ceiling: Ceiling, *, ring: bool, sources: tuple[str, ...]
) -> Verdict:
    """Return the verdict on a run that stays below what its network can do.

    Args:
        run: the run.
        busbw: its bus bandwidth, GB/s.
        limit: line rate of a node's cards, GB/s.
        ceiling: what the run could reach.
        ring: every card of a node carries a share of it.
        sources: where the ceiling comes from.
    """
    cards, nics = run.setup.cards, run.setup.nics
    says = [f"Degraded: {share(busbw, ceiling.value)} of {ceiling.why}."]
    cause, action = "ib_link_degraded", _PORTS
    if nics.roce:
        cause, action = "network_congestion", _ROCE
    settings = run.setup.settings
    if run.setup.on("NCCL_IB_DISABLE") or settings.get("NCCL_NET", "").lower() == "socket":
        cause = "nccl_socket_fallback"
        says.append("A variable makes NCCL use TCP sockets instead of RDMA.")
        action = "Unset NCCL_IB_DISABLE and NCCL_NET and run again."
    elif run.setup.socket and busbw < SOCKET_GBS:
        return socket(run, ceiling)
    elif run.setup.staged:
        cause = "gdr_disabled"
        says.append(
            "The log shows RDMA without GPUDirect (no /GDRDMA, or GDR 0): data is staged in host "
            "memory."
        )
        action = _GDR
    elif run.collapsed:
        cause = "network_congestion"
        says.append(
            "The path carries more at smaller sizes, so cards and GPUDirect work: it breaks down "
            "under load, as with dropped or paused packets (flow control not lossless, congestion) "
            "or a flapping link."
        )
        action = f"{_PORTS} {_ROCE}"
    elif ring and cards and cards > 1 and busbw <= 1.05 * limit / cards:
        one = limit / cards
        if busbw >= 0.5 * one:
            says.append(
                f"That is no more than one of the {cards} cards carries ({gbs(one)} GB/s): NCCL "
                "probably uses one of them only."
            )
        else:
            cause = "nccl_socket_fallback"
            says.append(
                f"That is far below even one card ({gbs(one)} GB/s): TCP sockets, or RDMA without "
                "GPUDirect, read like this."
            )
    elif ring and nics.roce:
        says.append("On RoCE, ECMP collisions, pause frames or a wrong traffic class read so.")
    per = run.per_node or 8
    return Verdict(
        DEGRADED,
        says,
        f"{action} {PAIRS.format(pair=2 * per, per=per)}",
        cause=cause,
        severity=Severity.HIGH,
        expected=gbs(ceiling.value),
        sources=sources,
    )


def socket(run: Run, ceiling: Ceiling | None = None) -> Verdict:
    """Return the verdict on a run that went over TCP sockets."""
    of = f"{share(run.busbw or 0.0, ceiling.value)} of {ceiling.why}; " if ceiling else ""
    return Verdict(
        DEGRADED,
        [
            (
                f"Degraded: {of}NCCL went over TCP sockets between nodes (NET/Socket in its log), "
                "not RDMA, which carries a few GB/s."
            )
        ],
        "Find out why RDMA was not used: ibv_devinfo (or fi_info -p efa) in the container, the "
        "vendor's plugin, NCCL_IB_DISABLE, NCCL_NET, NCCL_IB_HCA. Where there is no RDMA network, "
        "this is all there is.",
        cause="nccl_socket_fallback",
        severity=Severity.HIGH,
        expected=gbs(ceiling.value) if ceiling else None,
        sources=_SOURCES,
    )


def like_sockets(busbw: float, expected: str | None = None) -> Verdict | None:
    """Return what so low a figure between nodes reads like; None if one port of RDMA carries less.

    Args:
        busbw: bus bandwidth at a large message over several nodes, GB/s, where neither cards nor
            sockets are known.
        expected: the usual figure on such nodes, if it is known.
    """
    below = next(((r, name) for r, name in _PORTS_GBS if busbw < _OF_LINE_RATE * r), None)
    if below is None:
        return None
    rate, name = below
    one = rate == _PORTS_GBS[0][0]
    usual = f" {expected} GB/s is expected on such nodes." if expected else ""
    return Verdict(
        DEGRADED,
        [
            f"That is less than a single port of {name} carries with RDMA ({gbs(rate)} GB/s): TCP "
            "sockets between the nodes read like this"
            + ("." if one else ", and so does RDMA without GPUDirect or over one slow card.")
            + usual
            + " The text does not say how many network cards a node has."
        ],
        "Run it again with NCCL_DEBUG=INFO and look for NET/Socket in the channel lines (RDMA "
        "shows NET/IB). If it is there: ibv_devinfo in the container, NCCL_IB_DISABLE, NCCL_NET, "
        "NCCL_IB_HCA, the vendor's plugin. Where there is no RDMA network, this is all there is; "
        "ibstat or ethtool DEV shows the rate of the cards.",
        cause="nccl_socket_fallback",
        severity=Severity.HIGH if one else Severity.MEDIUM,
        expected=expected,
        sources=_SOURCES,
    )
