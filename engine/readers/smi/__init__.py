"""Readers of the ``nvidia-smi`` family: listings, tables, CSV, monitors, topology, links."""

from __future__ import annotations

from engine.readers.smi.apps import SmiAppsReader
from engine.readers.smi.links import SmiLinkReader
from engine.readers.smi.lspci import LspciReader
from engine.readers.smi.messages import SmiMessageReader
from engine.readers.smi.monitor import SmiMonitorReader
from engine.readers.smi.programs import SmiProcessReader
from engine.readers.smi.query import SmiQueryReader
from engine.readers.smi.query_csv import SmiCsvReader
from engine.readers.smi.table import SmiTableReader
from engine.readers.smi.topology import SmiTopologyReader
from engine.readers.smi.xml import SmiXmlReader

__all__ = [
    "LspciReader",
    "SmiAppsReader",
    "SmiCsvReader",
    "SmiLinkReader",
    "SmiMessageReader",
    "SmiMonitorReader",
    "SmiProcessReader",
    "SmiQueryReader",
    "SmiTableReader",
    "SmiTopologyReader",
    "SmiXmlReader",
]
