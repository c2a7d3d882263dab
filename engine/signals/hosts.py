"""Which host a scrape address is: where the series of a host name it by address alone.

Exporters of one host are scraped at several addresses: node_exporter at ``10.0.4.9:9100`` carries
no host name, while the GPU exporter says ``Hostname="node-3"``. What ties them is
``node_uname_info`` (address to ``nodename``), or a GPU exporter that is scraped at the same one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from engine.signals.labels import HOST_LABELS, Place, first, host_of_instance

UNAME = "node_uname_info"
# Of the kernel's counters of NUMA nodes: their label ``node`` is a number of such a node.
_NUMA = "node_memory_numa_"


def addresses(uname: Iterable[Mapping[str, str]], places: Iterable[Place]) -> dict[str, str]:
    """Return scrape address (without its port) to host, for addresses that are no host names.

    An address at which several hosts are found tells nothing and is left out.

    Args:
        uname: labels of the series of `UNAME`.
        places: where the labels of the GPU series say that they are.
    """
    found: dict[str, set[str]] = {}
    hosts = set()
    for place in places:
        address = host_of_instance(place.instance)
        if place.host:
            hosts.add(place.host)
        if place.host and address:
            found.setdefault(address, set()).add(place.host)
    # What the kernel says of itself counts more than who else is scraped there.
    found |= {
        address: {as_known(name, hosts) for name in names}
        for address, names in stated_by(uname).items()
    }
    return {
        address: next(iter(names))
        for address, names in sorted(found.items())
        if len(names) == 1 and address not in names
    }


def stated_by(uname: Iterable[Mapping[str, str]]) -> dict[str, set[str]]:
    """Return what the kernel at each scrape address calls its host, by the labels of `UNAME`."""
    out: dict[str, set[str]] = {}
    for labels in uname:
        address, name = host_of_instance(labels.get("instance")), labels.get("nodename")
        if address and name:
            out.setdefault(address, set()).add(name)
    return out


def host_of(name: str, labels: Mapping[str, str], known: Mapping[str, str]) -> str | None:
    """Return the host of a series: by its labels, else by its scrape address.

    Args:
        name: of the metric.
        labels: of the series.
        known: address to host (see `addresses`).
    """
    if name.startswith(_NUMA) and labels.get("node", "").isdigit():
        labels = {label: value for label, value in labels.items() if label != "node"}
    if named := first(labels, HOST_LABELS):
        return named
    address = host_of_instance(labels.get("instance"))
    return known.get(address or "", address)


def as_known(name: str, hosts: set[str]) -> str:
    """Return the host as GPU series spell it: with its domain, or without."""
    if name in hosts:
        return name
    short = name.partition(".")[0]
    if short in hosts:
        return short
    longer = sorted(host for host in hosts if host.partition(".")[0] == name)
    return longer[0] if len(longer) == 1 else name


def short(host: str) -> str:
    """Return a host's name without its domain; an address is whole as it is."""
    return host if host.replace(".", "").isdigit() or ":" in host else host.partition(".")[0]
