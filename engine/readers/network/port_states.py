"""What the states of an RDMA port mean, by the words that the tools print.

Source: InfiniBand Architecture Specification 1.4, PortInfo; linux-rdma/rdma-core,
infiniband-diags/ibstat.c and libibverbs; Linux kernel, drivers/infiniband/core/sysfs.c.
"""

from __future__ import annotations

import re
from typing import Final

_WORD: Final = re.compile(r"[A-Za-z]+")

STATES: Final = {
    "down": "Down",
    "init": "Initializing",
    "initializing": "Initializing",
    "initialize": "Initializing",
    "armed": "Armed",
    "active": "Active",
    "activedefer": "ActiveDefer",
}
PHYSICAL: Final = {
    "sleep": "Sleep",
    "polling": "Polling",
    "disabled": "Disabled",
    "portconfigurationtraining": "PortConfigurationTraining",
    "training": "PortConfigurationTraining",
    "linkup": "LinkUp",
    "linkerrorrecovery": "LinkErrorRecovery",
    "phytest": "PhyTest",
}
PHYSICAL_MEANS: Final = {
    "Sleep": "the port sleeps",
    "Polling": (
        "it sends training signals and gets no answer: no or a bad cable or transceiver, or the "
        "other end is off"
    ),
    "Disabled": "the port is switched off, or the Ethernet link has no carrier",
    "PortConfigurationTraining": "the link is training and does not get through",
    "LinkErrorRecovery": "the link retrains after errors",
    "LinkUp": "the physical link is up",
    "PhyTest": "the port is in a test mode",
}


def _joined(text: str) -> str:
    """Return the letters of ``4: ACTIVE``, ``PORT_ACTIVE (4)`` or ``Active`` in lower case."""
    word = "".join(_WORD.findall(text.partition("(")[0])).lower()
    return word.removeprefix("port") if word != "portconfigurationtraining" else word


def state_of(text: str) -> str | None:
    """Return the logical state by its name in the specification, None if the word is not known."""
    return STATES.get(_joined(text))


def physical_of(text: str) -> str | None:
    """Return the physical state by its name in the specification, None if it is not known."""
    return PHYSICAL.get(_joined(text))
