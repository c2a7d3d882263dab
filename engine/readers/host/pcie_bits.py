"""Bits of the PCIe AER status registers, by name.

Source: PCI Express Base Specification, Advanced Error Reporting capability; names as printed by
Linux drivers/pci/pcie/aer.c.
"""

from __future__ import annotations

CORRECTABLE = {
    0: ("RxErr", "receiver error"),
    6: ("BadTLP", "packet with a bad checksum"),
    7: ("BadDLLP", "link packet with a bad checksum"),
    8: ("Rollover", "replay counter rolled over: four replays in a row"),
    12: ("Timeout", "replay timer ran out"),
    13: ("NonFatalErr", "advisory non-fatal error"),
    14: ("CorrIntErr", "corrected internal error"),
    15: ("HeaderOF", "header log overflow"),
}
UNCORRECTABLE = {
    4: ("DLP", "data link protocol error"),
    5: ("SDES", "surprise down: the link was lost"),
    12: ("TLP", "poisoned packet"),
    13: ("FCP", "flow control protocol error"),
    14: ("CmpltTO", "completion timeout: the device did not answer"),
    15: ("CmpltAbrt", "completer abort"),
    16: ("UnxCmplt", "unexpected completion"),
    17: ("RxOF", "receiver overflow"),
    18: ("MalfTLP", "malformed packet"),
    19: ("ECRC", "end-to-end checksum error"),
    20: ("UnsupReq", "unsupported request"),
    21: ("ACSViol", "ACS violation"),
    22: ("UncorrIntErr", "internal error"),
    23: ("BlockedTLP", "multicast blocked packet"),
    24: ("AtomicOpBlocked", "atomic operation blocked"),
    25: ("TLPBlockedErr", "packet prefix blocked"),
    26: ("PoisonTLPBlocked", "poisoned packet blocked"),
}
NAMES = dict((*CORRECTABLE.values(), *UNCORRECTABLE.values()))
# What says that the signal on the link is bad, as opposed to a device that answers wrongly.
SIGNAL = frozenset({"RxErr", "BadTLP", "BadDLLP", "Rollover", "Timeout"})


def bits_of(status: int, mask: int, *, correctable: bool) -> list[str]:
    """Return the names of the status bits that are set and not masked, lowest first."""
    table = CORRECTABLE if correctable else UNCORRECTABLE
    live = status & ~mask or status
    return [table[bit][0] for bit in range(32) if live >> bit & 1 and bit in table]
