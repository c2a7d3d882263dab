"""What an nsys export says about itself."""

from __future__ import annotations

from engine.traces.figures import About
from engine.traces.names import cut
from engine.traces.tables import Tables

# Up to 2022 the table about the export was called EXPORT_META_DATA.
ABOUT = ("META_DATA_EXPORT", "EXPORT_META_DATA")


def about(tables: Tables, gpus: dict[int, str], *, cpu_traced: bool) -> About:
    """Return what an export says about itself: version, host and time."""
    found = [tables.values(table, ("EXPORT_PRODUCT_VERSION",)) for table in ABOUT]
    version = next((one["EXPORT_PRODUCT_VERSION"] for one in found if one), "")
    host = tables.values("TARGET_INFO_SYSTEM_ENV", ("Hostname",)).get("Hostname")
    duration = tables.records("ANALYSIS_DETAILS", ("duration",), 1)
    began = tables.records("TARGET_INFO_SESSION_START_TIME", ("utcEpochNs",), 1)
    epoch = began[0][0] if began and isinstance(began[0][0], int) else 0
    length = duration[0][0] if duration and isinstance(duration[0][0], int) else None
    mode = tables.values("META_DATA_CAPTURE", ("CUDA_GRAPH_TRACE_OPTIONS:MODE",))
    notes = ("graphs as a whole",) if "Graph" in mode.values() else ()
    return About(
        source=tables.source,
        tool=f"Nsight Systems {version}".strip(),
        device_names=gpus,
        captured_ms=None if length is None else round(length / 1e6, 6),
        started_s=round(epoch / 1e9, 6) if 0 < epoch < 1 << 62 else None,
        host=cut(host)[:253] if host else None,
        cpu_traced=cpu_traced,
        zero_ns=0,
        notes=notes,
    )


def device_names(tables: Tables) -> dict[int, str]:
    """Return names by CUDA number; the table of GPUs numbers them as nvidia-smi does."""
    names = {
        number: cut(name)
        for number, name in tables.records("TARGET_INFO_GPU", ("id", "name"), 1_024)
        if isinstance(number, int) and isinstance(name, str)
    }
    mapped = {
        cuda: names[gpu]
        for cuda, gpu in tables.records("TARGET_INFO_CUDA_DEVICE", ("cudaId", "gpuId"), 1_024)
        if isinstance(cuda, int) and isinstance(gpu, int) and gpu in names
    }
    return mapped or names
