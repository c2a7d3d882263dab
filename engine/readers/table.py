"""The one table of readers, in the order in which a line is offered to them."""

from __future__ import annotations

from collections.abc import Callable

from engine.readers.base import Context, Reader
from engine.readers.documents import DocumentReader
from engine.readers.exporter import ExporterReader
from engine.readers.kernel import KernelReader
from engine.readers.peermem import PeermemReader
from engine.readers.smi_csv import SmiCsvReader
from engine.readers.smi_query import SmiQueryReader

READERS: tuple[Callable[[Context], Reader], ...] = (
    KernelReader,
    PeermemReader,
    ExporterReader,
    SmiCsvReader,
    SmiQueryReader,
    # Last: lines of a document that another reader knows are that reader's.
    DocumentReader,
)
