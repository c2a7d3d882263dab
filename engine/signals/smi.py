"""What nvidia_gpu_exporter says of a GPU in series of their own: its index and its model.

Its readings carry the UUID alone, without the prefix "GPU-"; ``nvidia_smi_index`` has the index as
its value, ``nvidia_smi_gpu_info`` the model in the label ``name`` (utkuozdemir/nvidia_gpu_exporter,
internal/exporter).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from engine.samples import RawSeries
from engine.signals.labels import Place, whole_uuid

INDEX, INFO = "nvidia_smi_index", "nvidia_smi_gpu_info"
NAMES = (INDEX, INFO)


@dataclass(slots=True)
class SmiFacts:
    """Index and model by UUID."""

    index: dict[str, int] = field(default_factory=dict)
    model: dict[str, str] = field(default_factory=dict)

    def complete(self, place: Place) -> Place:
        """Return a place with what is known of its UUID."""
        if place.uuid is None or not (self.index or self.model):
            return place
        return replace(
            place,
            gpu=self.index.get(place.uuid) if place.gpu is None else place.gpu,
            model=place.model or self.model.get(place.uuid),
        )


def smi_facts(series: Iterable[RawSeries]) -> SmiFacts:
    """Read the facts out of all series of a source."""
    found = SmiFacts()
    for one in series:
        if one.name not in NAMES:
            continue
        uuid = whole_uuid(one.labels.get("uuid", ""))
        if one.name == INFO and uuid and one.labels.get("name"):
            found.model[uuid] = one.labels["name"]
        elif one.name == INDEX and uuid and one.values.size:
            newest = float(one.values[-1])
            if np.isfinite(newest) and 0 <= newest < 1000 and newest == int(newest):
                found.index[uuid] = int(newest)
    return found
