"""What a site knows of its machines and no label says: which GPUs work for a job, which rack.

A YAML file, read again when it changes, as a scheduler may write it::

    jobs:
      train-llama: ["node-[1-8]", "node-9:0-3"]     # hosts, or some GPUs of them
    job_labels: [pod_label_training_kubeflow_org_job_name]
    job_of_pod: '(?P<job>.+)-(?:master|worker)-[0-9]+'
    racks:
      r12: ["node-[1-16]"]
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import re2
import yaml

from engine.errors import UsageError

_KEYS = ("jobs", "job_labels", "job_of_pod", "racks")
_RANGE = re.compile(r"(?P<head>[^\[\]]*)\[(?P<low>\d{1,6})-(?P<high>\d{1,6})\](?P<tail>[^\[\]]*)")
_PLACE = re.compile(r"(?P<host>[A-Za-z0-9][A-Za-z0-9._\[\]-]{0,252})(?::(?P<gpus>[0-9,-]{1,64}))?")
_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_MOST_HOSTS = 100_000
_MOST_BYTES = 16_000_000
_MAX_GPU = 63
_MOST_PATTERN = 512

Gpus = frozenset[int] | None


@dataclass(frozen=True, slots=True)
class SiteMap:
    """The map of a site.

    Attributes:
        jobs: job to host to the indexes of its GPUs, None for all of the host.
        job_labels: further labels that name the job of a series.
        job_of_pod: pattern of a pod's name whose group ``job`` is the job; None for none.
        racks: host to rack.
        by_host: host to its jobs and the indexes of their GPUs, in the order of the file.
        warnings: what the map says twice, and how it is taken.
    """

    jobs: Mapping[str, Mapping[str, Gpus]] = field(default_factory=dict)
    job_labels: tuple[str, ...] = ()
    job_of_pod: re2._Regexp[str] | None = None
    racks: Mapping[str, str] = field(default_factory=dict)
    by_host: Mapping[str, tuple[tuple[str, Gpus], ...]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def job_at(self, host: str | None, gpu: int | None) -> str | None:
        """Return the job that the map gives a GPU, None for none."""
        for job, gpus in self.by_host.get(host or "", ()):
            if gpus is None or gpu in gpus:
                return job
        return None


NOTHING = SiteMap()


class SiteFile:
    """A map in a file; `current` reads it again when it has changed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, int] | None = None
        self._map = NOTHING

    def current(self) -> SiteMap:
        """Return the map.

        Raises:
            UsageError: the file cannot be read, or is no map of a site.
        """
        try:
            state = self._path.stat()
            stamp = (state.st_mtime_ns, state.st_size)
            if stamp != self._stamp:
                if state.st_size > _MOST_BYTES:
                    raise _bad(self._path, f"it is larger than {_MOST_BYTES // 10**6} MB")
                self._map = parse(self._path.read_text(encoding="utf-8"), self._path)
                self._stamp = stamp
        except (OSError, UnicodeDecodeError) as error:
            raise _unreadable(self._path, error) from None
        return self._map


class _TwiceError(Exception):
    """A key stands twice in one mapping."""


class _Text(getattr(yaml, "CBaseLoader", yaml.BaseLoader)):  # type: ignore[misc]
    """Reads every scalar as text (a job 0123 is no number), and refuses a key that stands twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[str, Any]:
        """Return the mapping of a node."""
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen if isinstance(key.value, str) else False:
                line = key.start_mark.line + 1
                raise _TwiceError(f"{key.value[:60]!r} stands twice, again in line {line}")
            seen.add(str(key.value))
        made: dict[str, Any] = super().construct_mapping(node, deep=deep)
        return made


def parse(text: str, path: Path) -> SiteMap:
    """Read the text of a map; ``path`` is what errors call it.

    Raises:
        UsageError: it is no map of a site.
    """
    try:
        found = yaml.load(text, Loader=_Text)  # noqa: S506 - scalars are text, nothing is built
    except _TwiceError as error:
        raise _bad(path, str(error)) from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark is not None else ""
        raise _bad(path, f"it is not readable YAML{where}") from None
    if not isinstance(found or {}, dict):
        raise _bad(path, "it is no mapping")
    found = found or {}
    for key in found:
        if key not in _KEYS:
            raise _bad(path, f"unknown key {str(key)[:40]!r}; known are {', '.join(_KEYS)}")
    left = _Left(path)
    jobs = {
        job: _together(left.gpus(places)) for job, places in _named(path, found.get("jobs"), "jobs")
    }
    racks: dict[str, str] = {}
    moved: list[str] = []
    for rack, places in _named(path, found.get("racks"), "racks"):
        for host, _ in left.gpus(places):
            if racks.setdefault(host, rack) != rack:
                moved.append(f"{host} stands in the racks {racks[host]} and {rack}")
                racks[host] = rack
    by_host: dict[str, list[tuple[str, Gpus]]] = {}
    for job, hosts in jobs.items():
        for host, gpus in hosts.items():
            by_host.setdefault(host, []).append((job, gpus))
    labels = found.get("job_labels") or []
    if not isinstance(labels, list) or not all(
        isinstance(one, str) and _LABEL.fullmatch(one) for one in labels
    ):
        raise _bad(path, "job_labels: must be a list of label names")
    pattern = _pattern(path, found.get("job_of_pod"))
    every = {host: tuple(some) for host, some in by_host.items()}
    twice = _twice(path, "first", _shared(every)), _twice(path, "last", moved)
    return SiteMap(jobs, tuple(labels), pattern, racks, every, tuple(w for w in twice if w))


def _together(places: Iterator[tuple[str, Gpus]]) -> dict[str, Gpus]:
    """Return host to GPUs; of a host that is named twice the GPUs of both."""
    out: dict[str, Gpus] = {}
    for host, gpus in places:
        before = out.get(host, frozenset())
        out[host] = None if gpus is None or before is None else before | gpus
    return out


def _shared(by_host: Mapping[str, tuple[tuple[str, Gpus], ...]]) -> Iterator[str]:
    """Yield the GPUs that stand in two jobs, one for each host."""
    for host, some in by_host.items():
        first: dict[int, str] = {}
        for job, gpus in some:
            mine = range(_MAX_GPU + 1) if gpus is None else gpus
            doubled = [gpu for gpu in sorted(mine) if gpu in first]
            if doubled:
                whole = "" if len(doubled) > _MAX_GPU else f":{doubled[0]}"
                yield f"{host}{whole} stands in the jobs {first[doubled[0]]} and {job}"
                break
            first.update(dict.fromkeys(mine, job))


def _twice(path: Path, which: str, found: Iterable[str]) -> str:
    """Return the warning about what stands in two places; empty if nothing does."""
    said = [" ".join(text.split())[:200] for text in found]
    if not said:
        return ""
    more = f" (and {len(said) - 1} more)" if len(said) > 1 else ""
    return f"the map of the site {path}: {said[0]}{more}; the {which} counts"


def _named(path: Path, found: Any, key: str) -> Iterator[tuple[str, list[str]]]:
    if not found:
        return
    if not isinstance(found, dict):
        raise _bad(path, f"{key}: must map names to lists of hosts")
    for name, places in found.items():
        if not isinstance(places, list) or not all(isinstance(one, str) for one in places):
            raise _bad(path, f"{key}: {str(name)[:60]!r} must be a list of hosts")
        yield str(name), places


class _Left:
    """Spells out places, so many in the whole file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._count = 0

    def gpus(self, places: list[str]) -> Iterator[tuple[str, Gpus]]:
        """Yield hosts with the indexes of their GPUs, ranges spelled out."""
        for place in places:
            match = _PLACE.fullmatch(place)
            if match is None:
                raise _bad(self._path, f"{place[:60]!r} is no host, range of hosts or HOST:GPUS")
            gpus = _indexes(self._path, match["gpus"]) if match["gpus"] else None
            for host in _hosts(self._path, match["host"]):
                self._count += 1
                if self._count > _MOST_HOSTS:
                    raise _bad(self._path, f"more than {_MOST_HOSTS} hosts, each time it is named")
                yield host, gpus


def _hosts(path: Path, text: str) -> Iterator[str]:
    if "[" not in text and "]" not in text:
        yield text
        return
    match = _RANGE.fullmatch(text)
    if match is None or int(match["low"]) > int(match["high"]):
        raise _bad(path, f"{text[:60]!r} is no range of hosts such as node-[1-16]")
    width = len(match["low"]) if match["low"].startswith("0") else 0
    for number in range(int(match["low"]), int(match["high"]) + 1):
        yield f"{match['head']}{number:0{width}d}{match['tail']}"


def _indexes(path: Path, text: str) -> frozenset[int]:
    out: set[int] = set()
    for part in text.split(","):
        low, _, high = part.partition("-")
        if not low.isdigit() or (high and not high.isdigit()) or int(high or low) > _MAX_GPU:
            raise _bad(path, f"{text!r} are no GPU indexes such as 0-3 or 0,2")
        if int(high or low) < int(low):
            raise _bad(path, f"{text!r} are no GPU indexes such as 0-3 or 0,2")
        out.update(range(int(low), int(high or low) + 1))
    return frozenset(out)


def _pattern(path: Path, text: Any) -> re2._Regexp[str] | None:
    if not text:
        return None
    if len(str(text)) > _MOST_PATTERN:
        raise _bad(path, f"job_of_pod: longer than {_MOST_PATTERN} characters")
    options = re2.Options()
    options.log_errors = False
    try:  # RE2, as in the selectors of a server: the time it takes does not grow with the pattern
        pattern = re2.compile(str(text), options)
    except re2.error as error:
        raise _bad(path, f"job_of_pod: {' '.join(str(error).split())}") from None
    if "job" not in pattern.groupindex:
        raise _bad(path, "job_of_pod: the pattern needs a group named job, (?P<job>…)")
    return pattern


def _unreadable(path: Path, error: OSError | UnicodeDecodeError) -> UsageError:
    match error:
        case FileNotFoundError():
            why = "no such file"
        case IsADirectoryError():
            why = "it is a folder"
        case PermissionError():
            why = "no permission to read it"
        case UnicodeDecodeError():
            why = "it is no text in UTF-8"
        case _:
            why = error.strerror or "it cannot be read"
    return _bad(path, why, hint="check what sitemap names in the configuration")


def _bad(path: Path, why: str, hint: str = "see docs/configuration.md for its form") -> UsageError:
    return UsageError(
        f"the map of the site {path} cannot be used: {why}", hint=hint, code="bad_sitemap"
    )
