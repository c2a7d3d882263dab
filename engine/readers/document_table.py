"""The one table of kinds of JSON documents, in the order in which a document is offered to them."""

from __future__ import annotations

from engine.readers.amd_smi import AMD_SMI_JSON
from engine.readers.dcgmi import DIAG_JSON, HEALTH_JSON
from engine.readers.documents import DocumentKind
from engine.readers.logdocument import LOG_DOCUMENT
from engine.readers.nccl_inspector import INSPECTOR_RECORD
from engine.readers.nccl_tests import NCCL_TESTS_JSON
from engine.readers.network import NETWORK_DOCUMENTS
from engine.readers.promapi import PROMETHEUS_API
from engine.readers.storage import STORAGE_DOCUMENTS
from engine.traces.flightrecorder import FLIGHT_RECORDER
from engine.traces.pyspy import PY_SPY_JSON

DOCUMENTS: tuple[DocumentKind, ...] = (
    LOG_DOCUMENT,
    NCCL_TESTS_JSON,
    INSPECTOR_RECORD,
    FLIGHT_RECORDER,
    PY_SPY_JSON,
    DIAG_JSON,
    HEALTH_JSON,
    AMD_SMI_JSON,
    *STORAGE_DOCUMENTS,
    *NETWORK_DOCUMENTS,
    PROMETHEUS_API,
)
