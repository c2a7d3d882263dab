"""Readers of storage tools: fio, Lustre, IBM Storage Scale, NFS, local disks, GPUDirect Storage."""

from __future__ import annotations

from engine.readers.base import MakesReader
from engine.readers.documents import DocumentKind
from engine.readers.storage.df import DfReader
from engine.readers.storage.fio_json import FIO_JSON
from engine.readers.storage.fio_text import FioReader
from engine.readers.storage.gds import (
    CufileLogReader,
    GdscheckReader,
    GdsioReader,
    NvidiaFsReader,
)
from engine.readers.storage.gpfs import (
    MmdfReader,
    MmgetstateReader,
    MmhealthReader,
    MmlsdiskReader,
)
from engine.readers.storage.iostat import IostatReader
from engine.readers.storage.lctl import LctlDlReader, LctlReader
from engine.readers.storage.lfs_df import LfsDfReader
from engine.readers.storage.lfs_layout import GetstripeReader, LfsCheckReader
from engine.readers.storage.mmdiag import MmdiagReader
from engine.readers.storage.mountstats import MountstatsReader, MountstatsToolReader
from engine.readers.storage.nfs_options import NfsMountsReader
from engine.readers.storage.nfsiostat import NfsiostatReader
from engine.readers.storage.nfsstat import NfsstatReader
from engine.readers.storage.quota import QuotaReader
from engine.readers.storage.transfer import TransferReader

STORAGE_READERS: tuple[MakesReader, ...] = (
    FioReader,
    LfsDfReader,
    GetstripeReader,
    LfsCheckReader,
    LctlReader,
    LctlDlReader,
    MmdiagReader,
    MmgetstateReader,
    MmhealthReader,
    MmlsdiskReader,
    MmdfReader,
    NfsstatReader,
    NfsMountsReader,
    MountstatsReader,
    MountstatsToolReader,
    NfsiostatReader,
    DfReader,
    QuotaReader,
    IostatReader,
    TransferReader,
    GdscheckReader,
    NvidiaFsReader,
    CufileLogReader,
    GdsioReader,
)
STORAGE_DOCUMENTS: tuple[DocumentKind, ...] = (FIO_JSON,)

__all__ = ["STORAGE_DOCUMENTS", "STORAGE_READERS"]
