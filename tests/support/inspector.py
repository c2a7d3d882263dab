"""Output of NCCL Inspector and of NCCL's example profiler plugin, as those write it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

COMM = "0x7f8c496ae9f661"


def record(
    rank: int,
    sequence: int,
    duration_us: int,
    *,
    size: int = 1 << 28,
    ranks: int = 8,
    nodes: int = 1,
    host: str = "node-1",
    collective: str = "AllReduce",
    comm: str = COMM,
    comm_name: str | None = "unknown",
    busbw: float | str | None = None,
    kind: str = "coll",
    timing: str = "kernel_gpu",
    **more: Any,
) -> str:
    """Return one line; without ``comm_name`` it is one of NCCL 2.28."""
    if busbw is None:
        busbw = round(size / max(duration_us, 1) / 1e3 * 2 * (ranks - 1) / ranks, 6)
    header = {"id": comm, "comm_name": comm_name, "rank": rank, "n_ranks": ranks, "nnodes": nodes}
    if comm_name is None:
        del header["comm_name"]
    metadata = {
        "inspector_output_format_version": "v4.0",
        "git_rev": "",
        "rec_mechanism": "nccl_profiler_interface",
        "dump_timestamp_us": 1_783_652_564_000_000 + 1000 * sequence,
        "hostname": host,
        "pid": 4000 + rank,
    }
    figures = {
        kind: collective,
        f"{kind}_sn": sequence,
        f"{kind}_msg_size_bytes": size,
        f"{kind}_exec_time_us": duration_us,
        f"{kind}_timing_source": timing,
        f"{kind}_algobw_gbs": round(size / max(duration_us, 1) / 1e3, 6),
        f"{kind}_busbw_gbs": busbw,
        **more,
    }
    whole = {"header": header, "metadata": metadata, f"{kind}_perf": figures}
    return json.dumps(whole, separators=(",", ":"))


def job(
    operations: int = 40,
    *,
    ranks: int = 8,
    per_host: int = 8,
    base_us: int = 1000,
    late: Mapping[int, int] | None = None,
    **more: Any,
) -> dict[int, list[str]]:
    """Return the lines of each rank; the others wait for ``late`` ranks so many microseconds."""
    delays = late or {}
    made: dict[int, list[str]] = {rank: [] for rank in range(ranks)}
    longest = max(delays.values(), default=0)
    for sequence in range(1, operations + 1):
        for rank, lines in made.items():
            # Starting a kernel is never exact to the microsecond.
            jitter = (rank * 7 + sequence * 13) % 11
            duration = base_us + longest - delays.get(rank, 0) + jitter
            host = f"node-{rank // per_host + 1}"
            nodes = -(-ranks // per_host)
            lines.append(
                record(rank, sequence, duration, ranks=ranks, host=host, nodes=nodes, **more)
            )
    return made


def text(lines: Mapping[int, list[str]]) -> str:
    """Return the lines of all ranks as one text."""
    return "".join(f"{one}\n" for rank in lines for one in lines[rank])


def prom(gpu: int, duration_us: float, busbw: float, **labels: str) -> str:
    """Return the two lines of a label set, as Inspector writes them for node_exporter."""
    shown = {
        "version": "v5.1",
        "slurm_job_id": "4711",
        "node": "node-1",
        "gpu": f"GPU{gpu}",
        "comm_name": "DP Group 0",
        "n_nodes": "1",
        "nranks": "8",
        "collective": "AllReduce",
        "message_size": "256-257MB",
        "algo_proto": "Ring_Simple",
        **labels,
    }
    inside = ",".join(f'{name}="{value}"' for name, value in shown.items())
    return (
        f"nccl_bus_bandwidth_gbs{{{inside}}} {busbw:.6g}\n"
        f"nccl_collective_exec_time_microseconds{{{inside}}} {duration_us:.6g}\n"
    )


def trace(
    rank: int, durations_us: Mapping[int, float], *, clocks: bool = True, datatype: str = "Float32"
) -> Iterator[str]:
    """Yield the lines of the example plugin's trace of one rank, by number of the operation."""
    yield "["
    for at, (sequence, duration) in enumerate(durations_us.items()):
        start = 1e6 * (at + 1)
        common = f'"cat": "COLL", "ph": "%s", "id": {at}, "pid": {100 + rank}, "tid": 1, "ts": %f'
        args = (
            f'{{"SeqNum": {sequence}, "CommHash": 12345678901234567890, "Rank": {rank}, '
            f'"Count": 67108864, "Datatype": "{datatype}", "Algorithm": "RING", '
            '"Protocol": "SIMPLE", "nChannels": 2}'
        )
        yield f'{{"name": "AllReduce", {common % ("b", start)}, "args": {args}}},'
        if clocks:
            for channel in (0, 1):
                first = 10**12 + int(start * 1e3) + 100 * channel
                last = 10**12 + int((start + duration) * 1e3)
                yield (
                    f'{{"name": "KernelCh", "cat": "GPU", "ph": "b", "id": {channel}, "pid": 1, '
                    f'"tid": 1, "ts": {start:f}, "args": {{"Channel": {channel}, '
                    f'"StartGpuClk": {first}, "StopGpuClk": {last}}}}},'
                )
        yield f'{{"name": "AllReduce", {common % ("e", start + duration)}}},'
    yield "{}]"
