"""Which platform a run was on: GPU model, and how its GPUs reach each other."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum

from engine.catalogue.types import Catalogue, GpuModel
from engine.readers.nccl_tests.prose import MODEL
from engine.readers.nccl_tests.setup import Setup

# More than PCIe Gen5 x16 carries in one direction (64 GB/s), so there is NVLink.
BEYOND_PCIE_GBS = 66.0
# One direction of a x16 slot by generation, GB/s (PCI-SIG: 1, 2, 4 GB/s per lane).
_PCIE_GBS = {3: 16.0, 4: 32.0, 5: 64.0, 6: 128.0}
# Sold with NVLink only, whatever a text says of their form.
_BRIDGED = re.compile(
    r"\b(?:RTX[ -]?A(?:4500|5000|5500|6000)|RTX[ -]?3090|RTX[ -]?2080|(?:Quadro|TITAN) RTX)\b",
    re.IGNORECASE,
)
_GEN5 = re.compile(r"\b(?:50[5-9]0|PRO[ -]?\d000)\b", re.IGNORECASE)
_ALWAYS_LINKED = frozenset({"B200", "B300", "GB200", "GB300", "GH200", "H800", "H20", "A800"})
_BOTH_FORMS = frozenset({"A100", "H100", "V100", "H200"})


class Bus(StrEnum):
    """How GPUs of a node reach each other."""

    NVLINK = "nvlink"
    PCIE = "pcie"
    XGMI = "xgmi"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Platform:
    """A GPU model in a node.

    Attributes:
        id: as of ``gpu_models`` (``h100_sxm``), None where nothing is known of the model.
        name: for people, as the text names it.
        bus: between the GPUs.
        bridged: a PCIe card for which NVLink bridges exist.
        pcie_gbs: line rate of one GPU's slot, GB/s in one direction.
    """

    id: str | None
    name: str
    bus: Bus
    bridged: bool = False
    pcie_gbs: float | None = None

    @property
    def family(self) -> str:
        """First part of the id: ``h100``."""
        return (self.id or "").partition("_")[0]


def platform_of(setup: Setup, catalogue: Catalogue, busbw: float) -> Platform | None:
    """Return the platform of a run, None if nothing names the GPUs.

    Args:
        setup: what the text tells.
        catalogue: knows GPU models.
        busbw: highest bus bandwidth between GPUs of a node in GB/s, 0 where none of them share
            one: more than PCIe carries can only be NVLink.
    """
    if setup.models:
        name = setup.models.most_common(1)[0][0][:64].strip()
        model = catalogue.model_for(name)
        return _known(name, model) if model else _named(name, catalogue)
    if setup.said_model is None:
        return None
    said, form = setup.said_model, setup.said_form
    if said.startswith("RTX"):
        # With NVLink it has a bridge of two cards, never a board.
        card = _card(said)
        return replace(card, bridged=card.bridged or form == "sxm")
    if said in _BOTH_FORMS and form is None and (busbw > BEYOND_PCIE_GBS or said == "H200"):
        form = "sxm"
    shown = said if form is None or said in _ALWAYS_LINKED else f"{said} {_shown(form)}"
    return _said(said, form, shown, catalogue)


def _known(name: str, model: GpuModel) -> Platform:
    return Platform(
        model.id, name, _bus(model), "nvlink_gbps_per_direction" in model.attrs, _slot(model)
    )


def _named(name: str, catalogue: Catalogue) -> Platform:
    """Return the platform of a device name that is spelt in an unknown way."""
    said = MODEL.search(name)
    upper = name.upper()
    form = "sxm" if "SXM" in upper else "pcie" if "PCI" in upper or "GEFORCE" in upper else None
    return _said(said[1].upper() if said else name, form, name, catalogue)


def _said(said: str, form: str | None, shown: str, catalogue: Catalogue) -> Platform:
    """Return the platform for the short name of a model, and its form where known."""
    base = said.lower()
    wanted = {
        None: () if said in _BOTH_FORMS else (f"{base}_sxm", base),
        "sxm": (f"{base}_sxm", f"{base}_80_sxm", f"{base}_sxm2", base),
        "pcie": (f"{base}_pcie", f"{base}_80_pcie", base),
        "nvl": (f"{base}_nvl", base),
    }[form]
    for one in wanted:
        model = next((m for m in catalogue.models if m.id == one), None)
        if model is not None:
            return _known(shown, model)
    if said in _ALWAYS_LINKED:
        return Platform(f"{base}_sxm", shown, Bus.NVLINK)
    bus = {"sxm": Bus.NVLINK, "pcie": Bus.PCIE}.get(form or "", Bus.UNKNOWN)
    if "RTX" in said.upper():
        return _card(shown)
    return Platform(None, shown, bus)


def _card(name: str) -> Platform:
    """Return the platform of a workstation card, for some of which there are NVLink bridges."""
    slot = _PCIE_GBS[5 if _GEN5.search(name) else 4]
    return Platform(None, name, Bus.PCIE, _BRIDGED.search(name) is not None, slot)


def _shown(form: str) -> str:
    return {"sxm": "SXM", "pcie": "PCIe", "nvl": "NVL"}[form]


def _bus(model: GpuModel) -> Bus:
    if model.vendor == "amd":
        return Bus.XGMI
    return Bus.NVLINK if model.attrs.get("nvlink_links") else Bus.PCIE


def _slot(model: GpuModel) -> float | None:
    generation = model.attrs.get("pcie_gen")
    return None if generation is None else _PCIE_GBS.get(int(generation))
