"""Readers of what NCCL, RCCL and ``torch.distributed`` print.

``NCCL_DEBUG`` logs of one or many ranks (transports, GPUDirect RDMA, errors), PyTorch's watchdog
and store messages, and topology files. Root causes come first, what follows from them after.
"""

from engine.readers.nccl.reader import NcclReader
from engine.readers.nccl.topology import TopologyReader

__all__ = ["NcclReader", "TopologyReader"]
