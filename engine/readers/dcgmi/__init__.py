"""``dcgmi``: field monitor (``dmon``), diagnostics, health checks, NVLink tables and discovery.

Diagnostics and health come as tables and as JSON; both become the same results (`diag_result`,
`health_result`) before anything is said about them.
"""

from __future__ import annotations

from engine.readers.dcgmi.diag import DiagReader
from engine.readers.dcgmi.diag_json import KIND as DIAG_JSON
from engine.readers.dcgmi.discovery import DiscoveryReader
from engine.readers.dcgmi.dmon import DmonReader
from engine.readers.dcgmi.health import KIND as HEALTH_JSON
from engine.readers.dcgmi.health import HealthReader
from engine.readers.dcgmi.messages import DcgmiMessageReader
from engine.readers.dcgmi.nvlink import NvlinkReader
from engine.readers.dcgmi.stats import StatsReader

__all__ = [
    "DIAG_JSON",
    "HEALTH_JSON",
    "DcgmiMessageReader",
    "DiagReader",
    "DiscoveryReader",
    "DmonReader",
    "HealthReader",
    "NvlinkReader",
    "StatsReader",
]
