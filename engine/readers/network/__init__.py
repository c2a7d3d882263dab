"""Readers of network and link tools: one module a tool, and shared judges of ports and counters."""

from __future__ import annotations

from engine.readers.base import MakesReader
from engine.readers.documents import DocumentKind
from engine.readers.network.copy_bandwidth import CopyBandwidthReader
from engine.readers.network.ethtool_link import EthtoolLinkReader
from engine.readers.network.ethtool_stats import EthtoolStatsReader
from engine.readers.network.ibdiagnet import IbdiagnetReader
from engine.readers.network.iblinkinfo import IblinkinfoReader
from engine.readers.network.ibstat import IbstatReader
from engine.readers.network.ibstatus import IbstatusReader
from engine.readers.network.ibv_devinfo import IbvDevinfoReader
from engine.readers.network.ip_link import IpLinkReader
from engine.readers.network.iperf3 import IPERF3_JSON, Iperf3Reader
from engine.readers.network.mlxlink import MLXLINK_JSON, MlxlinkReader
from engine.readers.network.perfquery import IbqueryerrorsReader, PerfqueryReader
from engine.readers.network.perftest import PerftestReader
from engine.readers.network.rdma_link import RDMA_LINK_JSON, RdmaLinkReader
from engine.readers.network.rdma_statistic import RDMA_STATISTIC_JSON, RdmaStatisticReader
from engine.readers.network.show_gids import ShowGidsReader
from engine.readers.network.tcp import SsReader, TcpTotalsReader

NETWORK_READERS: tuple[MakesReader, ...] = (
    IbstatReader,
    IbstatusReader,
    IbvDevinfoReader,
    RdmaLinkReader,
    IblinkinfoReader,
    IbdiagnetReader,
    PerfqueryReader,
    IbqueryerrorsReader,
    MlxlinkReader,
    ShowGidsReader,
    RdmaStatisticReader,
    EthtoolLinkReader,
    EthtoolStatsReader,
    IpLinkReader,
    TcpTotalsReader,
    SsReader,
    PerftestReader,
    Iperf3Reader,
    CopyBandwidthReader,
)
NETWORK_DOCUMENTS: tuple[DocumentKind, ...] = (
    RDMA_LINK_JSON,
    RDMA_STATISTIC_JSON,
    MLXLINK_JSON,
    IPERF3_JSON,
)

__all__ = ["NETWORK_DOCUMENTS", "NETWORK_READERS"]
