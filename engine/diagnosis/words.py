"""Filling the sentences and commands of rules with the names and readings of one entity.

Placeholders: ``{entity} {host} {gpu} {model} {uuid} {pci} {pod} {namespace}``, ``{device}`` (of a
port), ``{mount}`` (of a file system), ``{service} {instance}`` (model and address), ``{job}``,
``{gpu.ATTR}`` (a fact of the GPU model), ``{SIGNAL}`` (its newest reading, with unit),
``{SIGNAL.value}`` (the bare number, for commands) and ``{xid.name}`` (the newest Xid with its
name). Host names and labels are untrusted text: a command takes only what is one plain word to any
shell (see `step`).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from engine.catalogue.types import Catalogue, NextStep
from engine.model import Entity, Kind, Step
from engine.samples import Frame
from engine.units import number, quantity

PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_]*(?:\.[a-z0-9_]+)?)\}")
NAMES = (
    *("entity", "host", "gpu", "model", "uuid", "pci", "pod", "namespace"),
    *("device", "mount", "service", "instance", "job"),
)
_UNNAMED = {"host": "HOST", "gpu": "GPU", "pod": "POD", "namespace": "NAMESPACE", "pci": "BUS_ID"}
# Quoting does not help where ssh hands its words to a second shell on the host, nor against a
# destination that ssh takes for an option (-oProxyCommand=...).
_UNKNOWN = "unknown"
# A reading that a sentence only adds is left out where it is not there: "runs hot (die 90 °C)".
_ADDED = re.compile(r" \((?:[A-Za-z][\w ]{0,40} )?unknown\)| (?:to|at|of|with) unknown\b")
_NVIDIA = re.compile(r"\b(?:nvidia-smi|dcgmi|nvidia-bug-report|fabricmanager|nvidia-\w+)\b")
_GPU_HOST = re.compile(r"\bssh\b")
_READ_AMD = NextStep(
    "Read the state of the board: power, clocks, temperatures, violations, errors",
    "ssh {host} amd-smi metric -g {gpu}",
)
_PLAIN_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,252}")


def fill(text: str, values: Callable[[str], str]) -> str:
    """Replace every placeholder of a template."""
    return PLACEHOLDER.sub(lambda found: values(found[1]), text)


def sentence(
    template: str,
    frame: Frame,
    i: int,
    catalogue: Catalogue,
    given: Mapping[str, str] | None = None,
) -> str:
    """Fill a sentence for entity i: what is not known is left out, or said to be not known.

    ``given`` are words for placeholders that stand instead of the newest reading.
    """
    entity = frame.entities[i]

    def value(name: str) -> str:
        if given and name in given:
            return given[name]
        if name in NAMES:
            return _name(entity, name) or f"an unknown {name}"
        return _reading(name, frame, i, catalogue)

    return _ADDED.sub("", fill(template, value))


def _reading(name: str, frame: Frame, i: int, catalogue: Catalogue) -> str:
    head, _, part = name.partition(".")
    if head == "gpu":
        fact = frame.attrs.get(part)
        return _UNKNOWN if fact is None or np.isnan(fact[i]) else number(float(fact[i]))
    signal = catalogue.signals.get(head)
    _, readings = frame.samples(head, i)
    if signal is None or not readings.size:
        return _UNKNOWN
    newest = float(readings[-1])
    if part == "value":
        return number(newest)
    if part == "name":
        title = code_title(catalogue, head, newest)
        return f"{signal.title} {number(newest)} ({title})" if title else number(newest)
    return quantity(newest, signal.unit)


def code_title(catalogue: Catalogue, signal: str, code: float) -> str:
    """Return what the knowledge calls a code of a signal, empty for one it does not know."""
    entry = catalogue.entries.get(signal, {}).get(number(code), {})
    return str(entry.get("name") or entry.get("title") or "")


def steps(
    templates: Iterable[NextStep], frame: Frame, i: int, catalogue: Catalogue
) -> tuple[Step, ...]:
    """Fill the next steps that fit the vendor of entity i's GPU.

    A step with a vendor is for that vendor only. On an AMD GPU steps with a tool of NVIDIA are
    left out; if that leaves no command at all, the step that reads the whole board comes first.
    """
    vendor = vendor_of(frame, i, catalogue)
    fitting = [t for t in templates if t.vendor in {None, vendor}]
    if vendor == "amd":
        fitting = [t for t in fitting if t.vendor or not _NVIDIA.search(t.command or "")]
        if not any(t.command and _GPU_HOST.search(t.command) for t in fitting):
            fitting.insert(0, _READ_AMD)
    return tuple(step(t, frame, i, catalogue) for t in fitting)


def vendor_of(frame: Frame, i: int, catalogue: Catalogue) -> str:
    """Return whose GPU an entity is: by its model, else by the exporter; ``nvidia`` if unknown."""
    told = frame.attrs.get("amd")
    if told is not None and not np.isnan(told[i]):
        return "amd" if told[i] else "nvidia"
    model = catalogue.model_for(frame.entities[i].model)
    return model.vendor if model else "nvidia"


def step(template: NextStep, frame: Frame, i: int, catalogue: Catalogue) -> Step:
    """Fill a next step: the sentence, the command to paste, and the same as an argument list.

    In the command, what is not known or is no plain word (letters, digits and ``. _ : / -``, no
    dash at the start, at most 253 characters) stays a placeholder in capitals: ``ssh HOST ...``.
    """
    entity = frame.entities[i]

    def plain(name: str) -> str:
        if name in NAMES:
            return _name(entity, name) or _placeholder(name)
        return _reading(name, frame, i, catalogue)

    # nvidia-smi takes an address for an index, dcgmi does not.
    by_address = entity.gpu is None and "nvidia-smi" in (template.command or "")

    def word(name: str) -> str:
        text = plain(name)
        if name == "gpu" and by_address and not _PLAIN_WORD.fullmatch(text):
            text = entity.pci or text  # a GPU's name may stand for its UUID
        known = text != _UNKNOWN and _PLAIN_WORD.fullmatch(text)
        return text if known else _placeholder(name)

    command = argv = None
    if template.command is not None:
        words = [fill(part, word) for part in template.command.split()]
        command, argv = shlex.join(words), tuple(words)
    return Step(
        do=fill(template.do, plain),
        command=command,
        argv=argv,
        risk=template.risk,
        capture=template.capture,
    )


def _placeholder(name: str) -> str:
    return _UNNAMED.get(name, name.partition(".")[0].upper())


def _name(entity: Entity, name: str) -> str | None:
    if name == "entity":
        return _placed(entity)
    if name == "gpu":
        return str(entity.gpu) if entity.gpu is not None else entity.uuid
    found: Mapping[str, str | None] = {
        "host": entity.host,
        "model": entity.model,
        "uuid": entity.uuid,
        "pci": entity.pci,
        "pod": entity.pod,
        "namespace": entity.namespace,
        "device": _device(entity),
        "mount": _mount(entity),
        "service": entity.service,
        "instance": entity.instance,
        "job": entity.job,
    }
    return found.get(name)


def _placed(entity: Entity) -> str:
    """Return the name of an entity, of a rank with the place where it runs, if it is known."""
    if entity.kind is not Kind.RANK or entity.host is None or entity.rank is None:
        return entity.shown
    place = entity.host if entity.gpu is None else f"{entity.host}:{entity.gpu}"
    return f"{entity.name} on {place}"


def _device(entity: Entity) -> str | None:
    """Return the device of a network port: ``mlx5_0`` of ``mlx5_0/1``."""
    if entity.kind is not Kind.NODE or entity.instance is None:
        return None
    return entity.instance.partition("/")[0]


def _mount(entity: Entity) -> str | None:
    """Return where a file system is mounted."""
    if entity.kind is not Kind.FILESYSTEM:
        return None
    return "/" + entity.name.removeprefix("fs/")
