"""The verdict on several nodes: the network cards' line rate, and what a collective makes of it.

A ring crosses every card of a node, so AllReduce and its like reach the sum of the cards; AlltoAll
and SendRecv have only the card of one GPU. NVIDIA/nccl-tests issues 130, 196, 212, 267, 290.
"""

from __future__ import annotations

from engine.model import Severity
from engine.readers.nccl_tests.baseline import GIB, RING_LIKE, SATURATED, UNSATURATED, Baselines
from engine.readers.nccl_tests.platform import Bus, Platform
from engine.readers.nccl_tests.run import Run
from engine.readers.nccl_tests.slow_fabric import (
    PAIRS,
    SOCKET_GBS,
    Ceiling,
    degraded,
    like_sockets,
    socket,
)
from engine.readers.nccl_tests.verdict import (
    DEGRADED,
    HEALTHY,
    TOPOLOGY_LIMIT,
    UNKNOWN,
    Verdict,
    gbs,
    share,
    size_words,
)

_RING, _ALLTOALL, _PAIR = "ring", "alltoall", "pair"
# Share of the ceiling from which a run is healthy, and below which it is degraded (site defaults
# around the published 92-98 % of rings and 40-50 of 57 GB/s for AlltoAll on 8 nodes).
_SHARES = {_RING: (0.90, 0.85), _ALLTOALL: (0.70, 0.63), _PAIR: (0.85, 0.60)}
# Messages under 1 GiB need not fill the network.
_UNSATURATED_DEGRADED = 0.70
_SOURCES = ("NVIDIA/nccl-tests issues 119, 196 and 290", "NVIDIA/nccl-tests doc/PERFORMANCE.md")
_A2A_SOURCES = ("NVIDIA/nccl-tests issues 130 and 267",)
_JUDGE_RING = (
    "Nothing to do. To measure the network itself, run it with NCCL_ALGO=Ring; the limit of busbw "
    "is then the line rate."
)


def judge_nodes(run: Run, busbw: float, platform: Platform | None, baselines: Baselines) -> Verdict:
    """Judge a run over several nodes."""
    if run.setup.backend == "Socket" and (run.nodes or 1) > 1:
        run.setup.socket = True
    limit, assumed = _limit(run)
    if limit is None and run.setup.socket and busbw < SOCKET_GBS:
        return socket(run)
    if limit is None:
        made = _by_platform(run, busbw, platform, baselines)
        return _doubtful(run, busbw, made) if made.verdict == UNKNOWN else made
    kind = _kind(run.collective)
    if kind is None:
        made = _unjudged(f"There is no rule for {run.name} over several nodes.")
        made.limit_gbs = limit
        return made
    made = _by_limit(run, busbw, kind, limit, platform, baselines)
    made.limit_gbs = limit
    if assumed:
        made.says.append("One network card per GPU is assumed: the text gives only their rate.")
    return made


def _doubtful(run: Run, busbw: float, made: Verdict) -> Verdict:
    """Say what a figure reads like that no network of these days explains."""
    large = (run.size or 0) >= UNSATURATED
    ring = _kind(run.collective) is _RING and run.collective is not None
    if not large or not ring or (run.nodes or 1) < 2 or run.collapsed:
        return made
    return like_sockets(busbw, made.expected) or made


def _limit(run: Run) -> tuple[float | None, bool]:
    """Return the line rate of a node's cards together, and whether their number is assumed."""
    nics, cards = run.setup.nics, run.setup.cards
    if nics.gbit and cards:
        return cards * nics.gbit / 8, False
    if nics.total_gbs:
        return nics.total_gbs, False
    if nics.gbit and run.per_node:
        return run.per_node * nics.gbit / 8, True
    return None, False


def _kind(collective: str | None) -> str | None:
    if collective is None or collective == "all_reduce" or collective in RING_LIKE:
        return _RING
    return {"alltoall": _ALLTOALL, "alltoallv": _ALLTOALL, "sendrecv": _PAIR}.get(collective)


def _by_limit(
    run: Run,
    busbw: float,
    kind: str,
    limit: float,
    platform: Platform | None,
    baselines: Baselines,
) -> Verdict:
    if kind is _RING and busbw > limit:
        return _over(busbw, limit)
    ceiling = _ceiling(run, kind, limit, platform, baselines)
    if ceiling is None:
        return _unjudged("The number of nodes or of GPUs of a node is not told.")
    size = run.size or SATURATED
    good, bad = _SHARES[kind]
    if size < UNSATURATED and busbw < good * ceiling.value:
        return _unjudged(
            f"The largest message, {size_words(size)}, is too small to judge a network by."
        )
    if size < GIB:
        bad = min(bad, _UNSATURATED_DEGRADED)
    sources = _SOURCES if kind is _RING else _A2A_SOURCES
    reached = f"{share(busbw, ceiling.value)} of {ceiling.why}"
    if busbw >= good * ceiling.value:
        if ceiling.slot:
            return Verdict(
                TOPOLOGY_LIMIT,
                [
                    (
                        f"{reached}: that, not the {gbs(limit)} GB/s of the node's network cards, "
                        "is the limit, and no fault."
                    )
                ],
                "Nothing to repair: take part with more GPUs of each node to use all cards.",
                cause="topology_limit",
                expected=gbs(ceiling.value),
                sources=sources,
            )
        return Verdict(
            HEALTHY,
            [f"Healthy: {reached}."],
            "Nothing to do.",
            cause="healthy",
            expected=gbs(ceiling.value),
            sources=sources,
        )
    if busbw >= bad * ceiling.value:
        made = _unjudged(
            f"{reached}; 92-98 % is usual at 8 GiB and more, so this is not enough for a verdict."
        )
        made.expected = gbs(ceiling.value)
        return made
    return degraded(run, busbw, limit, ceiling, ring=kind is _RING, sources=sources)


def _ceiling(
    run: Run, kind: str, limit: float, platform: Platform | None, baselines: Baselines
) -> Ceiling | None:
    nodes, cards = run.nodes, run.setup.cards
    # Where the text does not say it, a node has a GPU for each card.
    per_node = run.per_node or cards
    network = f"the network limit of {gbs(limit)} GB/s"
    if cards and run.setup.nics.gbit:
        network += f" ({cards} x {run.setup.nics.gbit:g} Gb/s per node)"
    if kind is _ALLTOALL:
        if not nodes or not per_node or nodes < 2:
            return None
        value = nodes / (nodes - 1) * limit / per_node
        return Ceiling(
            value,
            f"the {gbs(value)} GB/s that AlltoAll can reach on {nodes} nodes, where each GPU has "
            f"{gbs(limit / per_node)} GB/s of network and (N-1)/N of its data goes there",
        )
    if kind is _PAIR:
        if not per_node:
            return None
        one = limit / max(cards or 0, per_node)
        return Ceiling(one, f"the {gbs(one)} GB/s of one GPU's share of the network")
    slots = platform.pcie_gbs if platform else None
    if run.per_node and per_node and slots and per_node * slots < limit:
        # Four fifths of a slot's line rate is what transfers reach.
        value = 0.8 * per_node * slots
        return Ceiling(
            value,
            f"the {gbs(value)} GB/s that {per_node} GPU(s) of a node can move over PCIe "
            f"({slots:g} GB/s each, less overhead)",
            slot=True,
        )
    linked = platform is not None and platform.bus is not Bus.PCIE
    ring = baselines.nvlink_ring_gbs(platform) if linked else None
    if ring is not None and ring < limit and run.collective != "all_reduce":
        return Ceiling(ring, f"the {ring:.0f} GB/s that NVLink gives a ring")
    if ring is not None and ring < limit:
        return Ceiling(ring, f"the {ring:.0f} GB/s that NVLink gives a ring ({network} is higher)")
    return Ceiling(limit, network)


def _over(busbw: float, limit: float) -> Verdict:
    return Verdict(
        HEALTHY,
        [
            (
                f"Healthy, and possible: {gbs(busbw)} GB/s busbw exceeds the network limit of "
                f"{gbs(limit)} GB/s per node because with NVLink SHARP (NVLS), in-network "
                "reduction or a tree over few nodes the busbw formula no longer equals bytes on "
                "the wire."
            ),
            "It is not a measurement fault; the same time by a ring would need that bandwidth.",
        ],
        _JUDGE_RING,
        cause="healthy",
        expected=gbs(limit),
        sources=("NVIDIA/nccl-tests issues 153, 196 and 212",),
    )


def _by_platform(
    run: Run, busbw: float, platform: Platform | None, baselines: Baselines
) -> Verdict:
    """Judge without the network's line rate, by what others read on the same platform."""
    found = baselines.several_nodes(platform, run.ranks, run.nodes or 2, run.collective or "")
    if found is None or platform is None:
        return _unjudged(
            "The text does not say how many network cards a node has and how fast they are, so "
            "there is no limit to hold this against."
        )
    expected, cards = found
    with_cards = f", with {cards} cards per node" if cards else ""
    if busbw >= expected.degraded:
        return Verdict(
            HEALTHY,
            [f"Healthy: {expected.shown} GB/s is expected ({expected.what})."],
            "Nothing to do.",
            cause="healthy",
            expected=expected.shown,
            sources=expected.sources,
        )
    if cards is None and (run.size or SATURATED) >= GIB:
        return Verdict(
            DEGRADED,
            [
                (
                    f"Degraded: {expected.shown} GB/s is expected ({expected.what}). Much less "
                    "means that traffic leaves NVLink."
                )
            ],
            "Check MNNVL and IMEX (nvidia-imex-ctl -N, NCCL_DEBUG=INFO: MNNVL 1). "
            + PAIRS.format(pair=2 * (run.per_node or 4), per=run.per_node or 4),
            cause="nvlink_degraded",
            severity=Severity.HIGH,
            expected=expected.shown,
            sources=expected.sources,
        )
    made = _unjudged(
        f"The text does not say how many network cards a node has and how fast they are. "
        f"{expected.shown} GB/s is expected on such nodes ({expected.what}{with_cards}): with that "
        "network this run is degraded, with a slower one it may be all there is."
    )
    made.expected, made.sources = expected.shown, expected.sources
    return made


def _unjudged(why: str) -> Verdict:
    return Verdict(
        UNKNOWN,
        [why],
        "The limit is cards per node x line rate in Gb/s / 8 (ibstat or ethtool DEV shows the "
        "rate). Compare with a pair of nodes that you trust, at 8 GiB and NCCL_ALGO=Ring; 5-10 % "
        "below is a reason to look.",
    )
