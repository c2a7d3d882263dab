"""What is known about a run beside its figures: collective, ranks, nodes, GPUs, NICs, settings."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

# The binaries, without "_perf", by their folded names in prose and in the Inspector's records.
COLLECTIVES = {
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "reducescatter": "reduce_scatter",
    "alltoall": "alltoall",
    "alltoallv": "alltoallv",
    "broadcast": "broadcast",
    "reduce": "reduce",
    "sendrecv": "sendrecv",
    "gather": "gather",
    "scatter": "scatter",
    "hypercube": "hypercube",
}
NAMES = {
    "all_reduce": "AllReduce",
    "all_gather": "AllGather",
    "reduce_scatter": "ReduceScatter",
    "alltoall": "AlltoAll",
    "alltoallv": "AlltoAllv",
    "broadcast": "Broadcast",
    "reduce": "Reduce",
    "sendrecv": "SendRecv",
    "gather": "Gather",
    "scatter": "Scatter",
    "hypercube": "HyperCube",
}

MAX_LISTED = 16_384
_MAX_MODELS = 32


@dataclass(slots=True)
class Nics:
    """Network cards of a node, as the text gives them.

    Attributes:
        count: cards per node.
        gbit: line rate of one in Gb/s.
        total_gbs: all cards of a node together in GB/s, where the text says so itself.
        roce: RoCE (True), InfiniBand (False), not said (None).
    """

    count: int | None = None
    gbit: float | None = None
    total_gbs: float | None = None
    roce: bool | None = None


@dataclass(slots=True)
class Setup:
    """Everything about a run that lines before, in and after its table tell.

    Attributes:
        collective: id as of the binary (``all_reduce``), None if nothing names it.
        listed: (rank, pid, host) of the device lines.
        models: GPU names of the device lines, counted; ``said_model`` is one in prose.
        headers: how often a run announced itself before its first row.
        processes, per_process: processes of the launcher; GPUs of each.
        said_ranks, said_nodes, said_per_node: as prose has them; ``most_nodes`` is the highest
            number of nodes that it named, as it may compare with one node.
        settings: ``NCCL_…`` variables seen.
        min_bytes, max_bytes: range of sizes that was asked for.
        inherited: the devices are those of the run before.
        backend: network that NCCL names as its choice (``Socket``), used or not.
        socket, staged: its log shows channels over TCP sockets, or RDMA without GPUDirect.
    """

    collective: str | None = None
    listed: set[tuple[int, str, str]] = field(default_factory=set)
    models: Counter[str] = field(default_factory=Counter)
    said_model: str | None = None
    said_form: str | None = None
    headers: int = 0
    processes: int | None = None
    per_process: int | None = None
    said_ranks: int | None = None
    said_nodes: int | None = None
    most_nodes: int = 0
    said_per_node: int | None = None
    nics: Nics = field(default_factory=Nics)
    settings: dict[str, str] = field(default_factory=dict)
    min_bytes: int | None = None
    max_bytes: int | None = None
    rccl: bool = False
    inherited: bool = False
    backend: str | None = None
    socket: bool = False
    staged: bool = False

    def next(self) -> Setup:
        """Return what is known of the run after this one: all but its collective and sizes.

        Devices hold until it lists its own.
        """
        return replace(
            self,
            collective=None,
            listed=set(self.listed),
            models=self.models.copy(),
            headers=0,
            nics=replace(self.nics),
            settings=dict(self.settings),
            min_bytes=None,
            max_bytes=None,
            inherited=True,
        )

    def list_device(self, rank: int, pid: str, host: str, model: str) -> None:
        """Take a device line; the first one replaces what a run before has listed."""
        if self.inherited:
            self.listed, self.models, self.inherited = set(), Counter(), False
        if len(self.listed) < MAX_LISTED:
            self.listed.add((rank, pid, host))
        if len(self.models) < _MAX_MODELS or model in self.models:
            self.models[model] += 1

    @property
    def hosts(self) -> tuple[str, ...]:
        """Names of the hosts listed, in order of rank."""
        return tuple(dict.fromkeys(host for _, _, host in sorted(self.listed) if host))

    @property
    def model(self) -> str | None:
        """GPU name: of the device lines, else of prose."""
        return self.models.most_common(1)[0][0] if self.models else self.said_model

    @property
    def separate(self) -> bool:
        """Whether many tests of one rank ran side by side, for lack of MPI in the build.

        Then every process lists itself as rank 0.
        """
        zeros = {(pid, host) for rank, pid, host in self.listed if rank == 0}
        return len(zeros) > 1 and all(rank == 0 for rank, _, _ in self.listed)

    @property
    def ranks(self) -> int | None:
        """Number of ranks, None if no line tells it."""
        if self.listed:
            # The list may be an excerpt: its last rank counts, or the launcher's number.
            return max(max(rank for rank, _, _ in self.listed) + 1, self._started() or 0)
        return self._started() or self.said_ranks or self._said_product() or None

    @property
    def nodes(self) -> int | None:
        """Number of hosts, None if no line tells it."""
        if self.said_nodes is not None:
            return max(self.said_nodes, len(self.hosts))
        if len(self.hosts) > 1:
            return len(self.hosts)
        if self.listed and self.per_process and len(self.listed) <= self.per_process:
            return 1
        if self.hosts and self.ranks is not None and self.ranks <= 8:
            return 1
        if self.said_model and self.said_per_node and self.said_ranks in {None, self.said_per_node}:
            return 1
        return 1 if self._one_process() else None

    @property
    def cards(self) -> int | None:
        """Network cards of a node that may be used: as told, or as ``NCCL_IB_HCA`` lists them.

        An entry without a number at its end selects by prefix and may stand for many.
        """
        if self.nics.count:
            return self.nics.count
        listed = self.settings.get("NCCL_IB_HCA", "")
        if not listed or listed.startswith("^"):
            return None
        entries = [entry.partition(":")[0] for entry in listed.lstrip("=").split(",") if entry]
        return len(entries) if all(entry[-1:].isdigit() for entry in entries) else None

    @property
    def by_ring(self) -> bool:
        """Whether NVLink SHARP was excluded, by ``NCCL_ALGO`` or ``NCCL_NVLS_ENABLE=0``."""
        if self.settings.get("NCCL_NVLS_ENABLE") == "0":
            return True
        algorithm = self.settings.get("NCCL_ALGO", "").lower()
        return bool(algorithm) and ("nvls" in algorithm) == algorithm.startswith("^")

    def on(self, variable: str) -> bool:
        """Whether a variable was set to something other than nothing and 0."""
        return self.settings.get(variable, "0").strip().lower() not in {"", "0", "n", "no", "false"}

    def _started(self) -> int | None:
        if self.processes is None:
            return self.per_process if self._one_process() else None
        return self.processes * (self.per_process or 1)

    def _one_process(self) -> bool:
        return self.processes is None and (self.per_process or 0) > 1

    def _said_product(self) -> int | None:
        if self.said_nodes and self.said_per_node:
            return self.said_nodes * self.said_per_node
        return self.said_per_node if self.said_nodes is None else None
