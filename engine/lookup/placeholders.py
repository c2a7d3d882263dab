"""Placeholders in commands: ``{gpu}`` is filled from the target, else shown as ``GPU``.

An unfilled one is written in upper case and not in angle brackets, which a shell would take for a
redirection if the line were pasted as it is.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

PLACEHOLDERS: Mapping[str, str] = {
    "container": "container of the pod",
    "file": "a file",
    "folder": "a folder",
    "fs": "name of the file system",
    "gpu": "index of the GPU on its host",
    "group": "id of a DCGM group",
    "host": "name of the host",
    "hosts": "names of hosts, comma-separated",
    "job": "id of the job",
    "kernel": "name of the kernel",
    "model": "name of the model",
    "mount": "mount point of the file system",
    "namespace": "Kubernetes namespace",
    "nic": "name of the network adapter",
    "nodes": "number of nodes",
    "output": "file to write",
    "peer": "the other host",
    "pid": "process id",
    "pod": "name of the pod",
    "port": "TCP port, or port of an adapter",
    "program": "the program to run, with its arguments",
    "rank": "number of the rank",
    "ranks": "number of ranks",
    "script": "the Python script to run",
    "session": "name of the nsys session",
    "url": "address",
    "uuid": "UUID of the GPU",
}
PATTERN = re.compile(r"\{([a-z][a-z0-9_]*)\}")


def fill(text: str, values: Mapping[str, str] | None = None, *, quote: bool = False) -> str:
    """Return text with its placeholders filled; those without a value become upper-case words.

    Args:
        text: the text; words in braces that are no placeholder stay as they are.
        values: placeholder to value.
        quote: quote values for a POSIX shell (for a whole line; words of an argument vector are
            quoted as a whole).
    """

    def one(match: re.Match[str]) -> str:
        name = match[1]
        if name not in PLACEHOLDERS:
            return match[0]
        value = (values or {}).get(name)
        if value is None:
            return name.upper()
        return shlex.quote(value) if quote else value

    return PATTERN.sub(one, text)
