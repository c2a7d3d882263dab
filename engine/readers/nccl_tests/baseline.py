"""What a healthy run reads: measured baselines, NCCL's model of NVLink, the network's line rate.

Figures: ``knowledge/nccl/nccl_baselines.yaml``, each with its source. They are for large messages
(8 GiB and more); nearer to small ones the limits are wider, and below 128 MiB there are none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from engine.catalogue.types import Catalogue
from engine.readers.nccl_tests.platform import Platform

GIB = 1 << 30
SATURATED = 8 * GIB
UNSATURATED = 128 << 20
"""Messages from here on say something about bandwidth, though not yet its peak."""

# Collectives that show NVLink SHARP, and those that read like a ring (NVIDIA/nccl-tests issue 212).
RING_LIKE = frozenset({"all_gather", "reduce_scatter", "broadcast", "reduce"})
# Site defaults: how far below the healthy figure at large sizes a smaller message may be, healthy
# and degraded. Between the two nothing is claimed.
_BY_SIZE = ((SATURATED, 0.95, 0.95), (GIB, 0.95, 0.85), (UNSATURATED, 0.95, 0.70))
# NCCL's model is no measurement: wide limits (site default).
_MODEL_HEALTHY, _MODEL_DEGRADED = 0.88, 0.60


@dataclass(frozen=True, slots=True)
class Expected:
    """What to hold a figure against, GB/s of bus bandwidth.

    Attributes:
        healthy: from here on it is healthy.
        degraded: below it is degraded; between the two nothing is claimed.
        shown: the healthy figure for people: ``460-480``.
        what: what that is the figure of, for people.
        nvls: it is the figure with NVLink SHARP.
        measured: it was measured at that size, not carried over or modelled.
        sources: where it comes from.
    """

    healthy: float
    degraded: float
    shown: str
    what: str
    nvls: bool = False
    measured: bool = True
    sources: tuple[str, ...] = ()


class Baselines:
    """The figures of the knowledge base, by platform."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._entries = catalogue.entries.get("nccl_baselines", {})

    def one_node(
        self, platform: Platform, ranks: int, collective: str, size: int, *, ring: bool
    ) -> Expected | None:
        """Return what one node with all its GPUs reads; None if there is no figure.

        Args:
            platform: GPUs joined by NVLink.
            ranks: GPUs that take part.
            collective: id of the collective.
            size: of the message in bytes.
            ring: the ring was asked for, or NVLink SHARP is off.
        """
        if collective == "all_reduce" and not ring:
            found = self._measured(platform.id, ranks, "auto", size)
            if found is not None:
                return self._limits(found, size, nvls=_has_nvls(platform))
        if collective != "all_reduce" and collective not in RING_LIKE:
            return None
        found = self._measured(_ring_twin(platform.id), ranks, "Ring", size) or (
            None if _has_nvls(platform) else self._measured(platform.id, ranks, "auto", size)
        )
        if found is not None:
            return self._limits(found, size, nvls=False)
        return self._modelled(platform, size)

    def nvlink_ring_gbs(self, platform: Platform | None) -> float | None:
        """Return NCCL's model of one GPU's NVLink, GB/s; None where it has none."""
        facts = self._facts("nvlink_model")
        family = {"h200": "h100"}.get(platform.family, platform.family) if platform else ""
        each, links = facts.get(f"{family}_gbps_per_link"), facts.get(f"{family}_links")
        return float(each) * float(links) if each and links else None

    def nvlink_line_rate_gbs(self, platform: Platform) -> float | None:
        """Return the line rate of one GPU's NVLink in one direction, GB/s."""
        rate = self._facts("nvlink_model").get("h100_line_rate_one_way_gbps")
        return float(rate) if rate and platform.family in {"h100", "h200"} else None

    def several_nodes(
        self, platform: Platform | None, ranks: int | None, nodes: int, collective: str
    ) -> tuple[Expected, int | None] | None:
        """Return what several nodes of a platform read, and the network cards that it needs.

        AllReduce hardly depends on the number of nodes, so the nearest entry is taken.
        """
        if platform is None or ranks is None or collective != "all_reduce":
            return None
        found = [
            (key, facts)
            for key, facts in self._several(platform.id)
            if facts["gpus"] / facts["nodes"] == ranks / nodes
        ]
        if platform.family == "gb200":
            # There the number of racks, not of trays, decides.
            found = [f for f in found if f[1]["gpus"] == ranks]
        if not found:
            return None
        key, facts = min(found, key=lambda f: (abs(f[1]["nodes"] - nodes), -f[1]["bytes"]))
        cards = facts.get("nics_per_node")
        return self._limits(key, SATURATED, nvls=False), int(cards) if cards else None

    def pcie(self) -> Expected:
        """Return what GPUs joined by PCIe alone read."""
        return self._limits("pcie_only", SATURATED, nvls=False)

    def _measured(self, platform: str | None, ranks: int, algorithm: str, size: int) -> str | None:
        """Return the entry measured at the largest size up to that of the message.

        Where all were measured at larger sizes, the smallest of them.
        """
        found = [
            (int(facts["bytes"]), key)
            for key, facts in self._all()
            if facts.get("platform") == _twin(platform)
            and facts.get("nodes") == 1
            and facts.get("gpus") == ranks
            and facts.get("algorithm") == algorithm
            and facts.get("collective") == "all_reduce"
            and "busbw_alert_gbps" in facts
        ]
        # Of two entries for one size the first in the file is the figure, the other advice on it.
        found.sort(key=lambda f: f[0])
        below = [f for f in found if f[0] <= size]
        if below:
            return next(key for at, key in below if at == below[-1][0])
        return found[0][1] if found else None

    def _limits(self, key: str, size: int, *, nvls: bool) -> Expected:
        entry = self._entries[key]
        facts = entry["facts"]
        at, healthy = int(facts["bytes"]), float(facts["busbw_healthy_gbps"])
        low = high = float(facts["busbw_alert_gbps"])
        if size < at:
            for least, good, bad in _BY_SIZE:
                if size >= least:
                    high, low = min(high, good * healthy), min(low, bad * healthy)
                    break
        shown = next(
            (str(v["value"]) for v in entry.get("values", ()) if v["name"].startswith("healthy")),
            f"{healthy:g}",
        )
        return Expected(high, low, shown, entry["title"], nvls, size >= at, tuple(entry["source"]))

    def _modelled(self, platform: Platform, size: int) -> Expected | None:
        model = self.nvlink_ring_gbs(platform)
        if model is None or size < UNSATURATED:
            return None
        source = tuple(self._entries["nvlink_model"]["source"])
        return Expected(
            _MODEL_HEALTHY * model,
            _MODEL_DEGRADED * model,
            f"about {model:.0f}",
            "NCCL's model of the NVLinks of one GPU, by ring",
            measured=False,
            sources=source,
        )

    def _several(self, platform: str | None) -> Iterator[tuple[str, Mapping[str, Any]]]:
        for key, facts in self._all():
            if (
                facts.get("platform") == _ring_twin(platform)
                and facts.get("nodes", 1) > 1
                and facts.get("collective") == "all_reduce"
                and "busbw_alert_gbps" in facts
            ):
                yield key, facts

    def _all(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        for key, entry in self._entries.items():
            facts = entry.get("facts")
            if facts and "platform" in facts:
                yield key, facts

    def _facts(self, key: str) -> Mapping[str, Any]:
        facts: Mapping[str, Any] = self._entries.get(key, {}).get("facts", {})
        return facts


def _twin(platform: str | None) -> str | None:
    """The baselines name one A100 for both memory sizes."""
    if platform in {"a100_40_sxm", "a100_80_sxm"}:
        return "a100_sxm"
    return platform


def _ring_twin(platform: str | None) -> str | None:
    """H200 has the NVLink of H100; its ring was published for that."""
    return "h100_sxm" if platform == "h200_sxm" else _twin(platform)


def _has_nvls(platform: Platform) -> bool:
    """NVLink SHARP came with the third NVSwitch: Hopper and later (NVIDIA/nccl env.rst)."""
    return platform.family not in {"a100", "v100", ""}
