"""Names of recorded series, and the labels that they carry.

A recorded series is called ``gpuwhy:SIGNAL:UNIT``. Whatever an exporter calls them, its labels
become ``cluster``, ``host``, ``gpu``, ``UUID`` and ``modelName``; what differs in others only (pod,
``err_code``, MIG instance, driver version) is merged, and the largest value counts.
"""

from __future__ import annotations

from engine.catalogue.types import Signal

PREFIX = "gpuwhy"
ENTITY = ("cluster", "host", "gpu", "UUID", "modelName")
NODE = ("cluster", "host")
# The GPUs seen in the last 15 minutes, one series each: the labels of every verdict.
GPU_INFO = f"{PREFIX}:gpu:info"
SYMPTOM = f"{PREFIX}:symptom"
CAUSE = f"{PREFIX}:cause"

_UNITS = {
    "GT/s": "gigatransfers_per_second",
    "B/s": "bytes_per_second",
    "J": "joules",
    "MHz": "megahertz",
    "MiB": "mebibytes",
    "W": "watts",
    "ns": "nanoseconds",
    "s": "seconds",
}
# (label made, label read), weakest first: a later one overwrites. These are the spellings of
# dcgm-exporter (all versions, link series included), of nvidia_gpu_exporter and of Kubernetes.
_SOURCES = (
    ("host", "instance", r"(.+?)(?::[0-9]+)?"),
    ("host", "node", "(.+)"),
    ("host", "hostname", "(.+)"),
    ("host", "Hostname", "(.+)"),
    ("UUID", "gpu_uuid", "(.+)"),
    ("UUID", "uuid", "(.+)"),
    ("modelName", "model_name", "(.+)"),
)


def recorded_name(signal: Signal) -> str:
    """Return the name under which a signal is recorded."""
    return f"{PREFIX}:{signal.id}:{_UNITS.get(signal.unit, signal.unit)}"


def normalised(vector: str, labels: tuple[str, ...] = ENTITY) -> str:
    """Return a vector whose labels are spelled one way, as PromQL.

    Args:
        vector: any instant vector.
        labels: those that are wanted.
    """
    text = vector
    for made, read, pattern in _SOURCES:
        if made in labels:
            regex = pattern.replace("\\", "\\\\")
            text = f'label_replace({text}, "{made}", "$1", "{read}", "{regex}")'
    return text


def by(labels: tuple[str, ...]) -> str:
    """Return a grouping clause."""
    return f"by ({', '.join(labels)})"
