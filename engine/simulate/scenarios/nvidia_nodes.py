"""Nodes of NVIDIA GPUs, the jobs on them, and what their exporters publish."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from engine.samples import Floats, Ints, RawSeries
from engine.simulate.scenarios.nvidia_boards import Board, Load
from engine.simulate.scenarios.nvidia_gpu import Gpu
from engine.simulate.scenarios.nvidia_names import Fields, Style, dcgm, smi
from engine.simulate.scenarios.shapes import STEPS_S, scrapes, series

_BUSES = (0x1B, 0x43, 0x52, 0x61, 0x9D, 0xC3, 0xD1, 0xDF)
# dcgm-exporter reads its fields every 30 s by default, however often it is scraped.
_COLLECT_S = 30.0


@dataclass(slots=True)
class Node:
    """One server: its GPUs, and the times at which its GPU exporter was scraped (Unix s)."""

    host: str
    board: Board
    gpus: list[Gpu]
    ts: Floats
    collected: bool
    driver: str

    def load(self, rng: np.random.Generator, load: Load, only: Iterable[int] | None = None) -> None:
        """Run a load on all GPUs, or on some, with nothing wrong."""
        for gpu in self.gpus if only is None else [self.gpus[k] for k in only]:
            gpu.run(rng, load)
            settle(rng, gpu)

    def label(self, **labels: str) -> None:
        """Add labels to the series of all GPUs."""
        for gpu in self.gpus:
            gpu.labels |= labels


def node(
    rng: np.random.Generator, host: str, board: Board, *, count: int = 8,
    step_s: float | None = None, span_s: float = 1800.0, missing: float = 0.02,
) -> Node:  # fmt: skip
    """Build a server with ``count`` GPUs of one board; nothing runs on them yet."""
    step = float(rng.choice(STEPS_S)) if step_s is None else step_s
    ts = scrapes(rng, step_s=step, span_s=span_s, missing=missing)
    inlet = rng.uniform(23.0, 29.0)
    gpus = []
    for k in range(count):
        raw = rng.bytes(16).hex()
        uuid = f"GPU-{raw[:8]}-{raw[8:12]}-{raw[12:16]}-{raw[16:20]}-{raw[20:]}"
        pci = f"00000000:{_BUSES[k % 8]:02X}:00.0"
        gpus.append(Gpu(host, k, uuid, pci, board, ts, inlet, float(rng.normal(0.0, 1.2))))
    driver = ("535.216.03", "550.144.03", "570.124.06", "580.65.06")[int(rng.integers(4))]
    return Node(host, board, gpus, ts, bool(rng.random() < 0.4), driver)


def fleet(
    rng: np.random.Generator, hosts: Sequence[str], boards: Sequence[Board], load: Load, *,
    count: int = 8, step_s: float | None = None, span_s: float = 1800.0,
    job: str | None = None, pods: str | None = None,
) -> list[Node]:  # fmt: skip
    """Build nodes of one board chosen among ``boards``, all running the same load.

    Args:
        rng: where chance comes from.
        hosts: names of the nodes.
        boards: what the board is chosen from.
        load: what runs.
        count: GPUs a node.
        step_s: scrape interval (s), the same everywhere; None chooses one.
        span_s: how far back readings go (s).
        job: Slurm job id that all GPUs belong to (label ``hpc_job``).
        pods: prefix of the pods of a training job, one a node (labels ``namespace``, ``pod``).
    """
    board = boards[int(rng.integers(len(boards)))]
    step = float(rng.choice(STEPS_S)) if step_s is None else step_s
    built = []
    for k, host in enumerate(hosts):
        one = node(rng, host, board, count=count, step_s=step, span_s=span_s)
        one.load(rng, load)
        if job is not None:
            one.label(hpc_job=job)
        if pods is not None:
            one.label(namespace="ml", pod=f"{pods}-{k}", container="trainer")
        built.append(one)
    return built


def settle(rng: np.random.Generator, gpu: Gpu) -> None:
    """Give a GPU the counters and flags of one that is sound; old figures stay as they were."""
    old = rng.random() < 0.3
    gpu.fields |= {
        "DEV_XID_ERRORS": 0.0,
        "DEV_ECC_SBE_VOL_TOTAL": 0.0,
        "DEV_ECC_DBE_VOL_TOTAL": 0.0,
        "DEV_ECC_SBE_AGG_TOTAL": float(rng.integers(1, 40)) if old else 0.0,
        "DEV_ECC_DBE_AGG_TOTAL": 0.0,
        "DEV_PCIE_REPLAY_COUNTER": float(rng.integers(1, 900)) if old else 0.0,
        "DEV_PCIE_LINK_GEN": float(gpu.board.gen),
        "DEV_PCIE_MAX_LINK_GEN": float(gpu.board.gen),
        "DEV_PCIE_LINK_WIDTH": 16.0,
        "DEV_PCIE_MAX_LINK_WIDTH": 16.0,
    }
    if gpu.board.ecc_rows:
        gpu.fields |= {
            "DEV_UNCORRECTABLE_REMAPPED_ROWS": 0.0,
            "DEV_CORRECTABLE_REMAPPED_ROWS": float(rng.integers(0, 2)),
            "DEV_ROW_REMAP_FAILURE": 0.0,
            "DEV_ROW_REMAP_PENDING": 0.0,
        }
    else:
        gpu.fields |= {"DEV_RETIRED_SBE": 0.0, "DEV_RETIRED_DBE": 0.0, "DEV_RETIRED_PENDING": 0.0}
    if gpu.board.links:
        crc = float(rng.integers(1, 50)) if old else 0.0
        gpu.fields |= {
            "DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL": crc,
            "DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL": 0.0,
            "DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL": 0.0,
            "DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL": 0.0,
        }


def publish(nodes: Iterable[Node], how: Style) -> list[RawSeries]:
    """Return the series that the exporters of all nodes publish."""
    return [one for item in nodes for gpu in item.gpus for one in _gpu(item, gpu, how)]


def _gpu(item: Node, gpu: Gpu, how: Style) -> Iterator[RawSeries]:
    for added, own in gpu.views or [({}, {})]:
        yield from _view(item, gpu, how, added, gpu.fields | own)


def _view(
    item: Node, gpu: Gpu, how: Style, added: dict[str, str], fields: Fields
) -> Iterator[RawSeries]:
    ts = gpu.ts if gpu.gone_at is None else gpu.ts[gpu.ts < gpu.gone_at]
    if how.kind == "smi":
        labels = {"uuid": gpu.uuid.removeprefix("GPU-"), "instance": f"{item.host}:9835"}
        named = {**smi(fields), "nvidia_smi_index": float(gpu.index)}
        about = {**labels, "name": gpu.board.product, "driver_version": item.driver}
        yield series("nvidia_smi_gpu_info", about, ts, 1.0)
    else:
        labels = {
            "gpu": str(gpu.index),
            "UUID": gpu.uuid,
            "pci_bus_id": gpu.pci,
            "device": f"nvidia{gpu.index}",
            "modelName": gpu.board.product,
            how.host_label: f"{item.host}:9400" if how.host_label == "instance" else item.host,
            "DCGM_FI_DRIVER_VERSION": item.driver,
            **gpu.labels,
            **added,
        }
        named = dcgm(how, fields)
        for name, own, value in gpu.more:
            yield series(name, labels | own, ts, _full(gpu, value)[: ts.size])
    for name, value in named.items():
        full = _full(gpu, value)
        if item.collected and how.kind != "smi":
            full = full[_held(gpu.ts)]
        yield series(name, labels, ts, full[: ts.size])


def _full(gpu: Gpu, value: Floats | float) -> Floats:
    return np.array(np.broadcast_to(value, gpu.ts.shape), dtype=np.float64)


def _held(ts: Floats) -> Ints:
    """Return, for each scrape, the index of the scrape whose collection it repeats."""
    slots = np.floor(ts / _COLLECT_S)
    first = np.concatenate([[True], slots[1:] != slots[:-1]])
    held: Ints = np.maximum.accumulate(np.where(first, np.arange(ts.size), 0))
    return held
