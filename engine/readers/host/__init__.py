"""Lines of a kernel log that are no Xids: PCIe, memory, processors, network, storage, driver."""
