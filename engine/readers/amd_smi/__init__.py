"""``amd-smi`` and ``rocm-smi``: listings, tables, CSV and JSON of AMD GPUs.

Every form becomes the same record (`state.AmdGpu`), with values under names that carry their unit;
`judge` says what the GPUs of a text show, alone and beside each other. AMD's sensors and limits are
not NVIDIA's: nothing here goes through the rules for NVIDIA metrics.
"""

from __future__ import annotations

from engine.readers.amd_smi.documents import AMD_SMI_JSON
from engine.readers.amd_smi.reader import AmdSmiReader

__all__ = ["AMD_SMI_JSON", "AmdSmiReader"]
