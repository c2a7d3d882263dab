"""From raw series to a frame: one name, one unit, one scale per signal; blanks become no reading.

Series of one signal and one GPU that differ only in descriptive labels (pod, ``err_code``, MIG
instance, driver version) are merged in time before any window is taken; where several have a
sample at the same moment the largest counts, as ``max by (UUID)`` would have it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from engine.catalogue.types import Catalogue
from engine.collector import held_off
from engine.model import Entity
from engine.samples import (
    Batch,
    Floats,
    Frame,
    Ints,
    Matcher,
    RawSeries,
)
from engine.signals.columns import column, fill
from engine.signals.derived import add_derived
from engine.signals.events import add_counted
from engine.signals.exporters import settle
from engine.signals.hostreadings import node_readings
from engine.signals.hosts import UNAME, addresses
from engine.signals.labels import (
    GPU_LABELS,
    HOST_LABELS,
    UUID_LABELS,
    Place,
    gpu_entity,
    host_of_instance,
    locate,
)
from engine.signals.mig import drop_unmeasured
from engine.signals.others import node_frame, other_frames
from engine.signals.overlap import apart, moved
from engine.signals.pieces import Piece, Tag
from engine.signals.rails import kinds, rails
from engine.signals.service import derive
from engine.signals.smi import smi_facts

# A ratio above this cannot be a ratio: the exporter writes percent (facts of DCGM: PROF fields
# are 0 to 1). Below it nothing can be told, so the decision is made per exporter, not per series.
_PERCENT_ABOVE = 1.5
_PERCENT_MAX = 100.5
# Pods whose newest sample is older than this, seen from the GPU's newest, have left the GPU.
_POD_GONE_S = 120.0


@dataclass(slots=True)
class Readings:
    """A frame of GPUs and what else the series said.

    ``instances`` are the scrape addresses per GPU, ``places`` what labels said, ``node_only``
    node readings of all hosts (host to signal to (ts, values)), ``others`` the frames of what is
    no GPU, by scope (`engine.signals.others`), ``addresses`` the hosts of scrape addresses
    (`engine.signals.hosts`), ``stated`` those addresses at which a node_exporter said its name.
    """

    frame: Frame
    warnings: list[str]
    instances: list[frozenset[str]]
    places: list[list[Place]]
    nodes: dict[str, dict[str, tuple[Floats, Floats]]] = field(default_factory=dict)
    others: dict[str, Frame] = field(default_factory=dict)
    addresses: dict[str, str] = field(default_factory=dict)
    stated: frozenset[str] = frozenset()


@held_off()
def build_frame(
    batch: Batch, catalogue: Catalogue, *, at: float | None, window_s: float
) -> Readings:
    """Normalise a batch into a frame of its GPUs, sorted by cluster, host, index and UUID.

    Args:
        batch: series as a source gave them.
        catalogue: signals and GPU models.
        at: the moment judged (Unix s); None if the source has no times.
        window_s: how far back readings count (s).
    """
    timed = at is not None and any(s.timed for s in batch.series)
    moment = at if timed and at is not None else 0.0
    pieces, places, tags, node_series = _sort_out(batch.series, catalogue)
    uname = [one for one in batch.series if one.name == UNAME]
    named = (place for group in places for place in group)
    hosts = addresses((one.labels for one in uname), named)
    told = apart(pieces, places, hosts)
    pieces = drop_unmeasured(pieces, places)
    told += moved(pieces, places)
    percent = _percent_exporters(pieces, catalogue)
    order = sorted(range(len(places)), key=lambda i: _place_key(places[i]))
    rank = {old: new for new, old in enumerate(order)}
    for tag in tags:
        tag.owner = rank[tag.owner]
    groups = [places[i] for i in order]
    entities = [gpu_entity(group) for group in groups]
    frame = Frame(
        entities=entities,
        at=moment,
        timed=timed,
        columns={},
        attrs=_attributes(entities, catalogue, pieces),
        host=_numbers((e.cluster or "", e.host) for e in entities),
        window_s=window_s,
        job=_numbers((e.cluster or "", e.job) for e in entities),
    )
    for signal_id, group in pieces.items() if percent else ():
        if catalogue.signals[signal_id].unit == "ratio":
            for piece in group:
                if piece.spelling.unit == "ratio" and piece.tag.exporter in percent:
                    piece.scale /= 100.0
    used, contradictions, frame.contradicted = settle(
        pieces, groups, catalogue.signals, catalogue.bits, moment
    )
    fill(frame, catalogue.signals, used)
    instances = [frozenset(p.instance for p in group if p.instance) for group in groups]
    nodes = node_readings(node_series, catalogue, entities, instances, hosts, frame)
    _derive(frame, pieces, groups)
    add_derived(frame, used)
    add_counted(frame, used.get("xid_count", []))
    warnings = [
        *told,
        *contradictions,
        *(f"{name} exports profiling ratios as percent: read as value / 100" for name in percent),
    ]
    others = other_frames(node_series, catalogue, hosts, at=moment, timed=timed, window_s=window_s)
    if (of_nodes := node_frame(nodes, at=moment, timed=timed, window_s=window_s)) is not None:
        others["node"] = of_nodes
    if "service" in others:
        derive(others["service"], frame)
    if "port" in others:
        ports = others["port"]
        ports.rail = rails(ports.entities, kinds(entities))
    stated = frozenset(host_of_instance(one.labels.get("instance")) or "" for one in uname)
    return Readings(frame, warnings, instances, groups, nodes, others, hosts, stated)


def _sort_out(
    series: list[RawSeries], catalogue: Catalogue
) -> tuple[dict[str, list[Piece]], list[list[Place]], list[Tag], list[RawSeries]]:
    """Sort series by signal and by physical GPU; node series are kept apart.

    Returns:
        Signal id to its series, the places of each GPU, what tells them apart, the node series.
    """
    pieces: dict[str, list[Piece]] = {}
    index: dict[tuple[str, str], int] = {}
    places: list[list[Place]] = []
    nodes: list[RawSeries] = []
    # By the names of labels, of which an exporter has few sets, and by their values.
    known: dict[tuple[str, ...], dict[tuple[str, ...], Tag | None]] = {}
    names: tuple[str, ...] = ()
    tags = known.setdefault(names, {})
    spellings = catalogue.spellings
    facts = smi_facts(series)
    for one in series:
        pairs = spellings.get(one.name)
        if not pairs:
            continue
        if pairs[0][0].scope != "gpu":
            nodes.append(one)
            continue
        labels = one.labels
        if (own := tuple(labels)) != names:
            names = own
            tags = known.setdefault(names, {})
        values = tuple(labels.values())
        tag = tags.get(values)
        if tag is None:
            if values in tags:
                continue  # such labels name no GPU
            place = facts.complete(locate(labels))
            tags[values] = None
            if not place.key[1]:
                continue
            owner = index.setdefault(place.key, len(places))
            if owner == len(places):
                places.append([])
            places[owner].append(place)
            exporter = place.instance or place.host or "the exporter"
            tag = tags[values] = Tag(owner, place, exporter, _identity)
        for signal, spelling in pairs:
            if not spelling.match or spelling.match.items() <= labels.items():
                piece = Piece(tag, one, spelling, spelling.scale)
                if signal.id in pieces:
                    pieces[signal.id].append(piece)
                else:
                    pieces[signal.id] = [piece]
    found = [tag for some in known.values() for tag in some.values() if tag]
    return pieces, places, found, nodes


def _place_key(group: list[Place]) -> tuple[str, str, int, str]:
    host = next((p.host for p in group if p.host), "") or ""
    gpu = next((p.gpu for p in group if p.gpu is not None), 1 << 30)
    return (group[0].cluster or "", host, gpu, group[0].key[1])


def _numbers(names: Iterable[tuple[str, str | None]]) -> Ints:
    """Number the distinct (cluster, name) pairs; -1 where there is no name."""
    numbers: dict[tuple[str, str], int] = {}
    found = [
        numbers.setdefault((cluster, name), len(numbers)) if name else -1 for cluster, name in names
    ]
    return np.array(found, dtype=np.int64)


def _attributes(
    entities: list[Entity], catalogue: Catalogue, pieces: Mapping[str, list[Piece]]
) -> dict[str, Floats]:
    """Return the ``gpu.*`` facts of each entity's model, NaN where not known.

    ``gpu.amd`` is also known by the names of an exporter's metrics, where the model is not.
    """
    cache: dict[str | None, Mapping[str, float]] = {}
    out: dict[str, Floats] = {}
    for i, entity in enumerate(entities):
        if entity.model not in cache:
            model = catalogue.model_for(entity.model)
            cache[entity.model] = model.attrs if model else {}
        for name, value in cache[entity.model].items():
            if name not in out:
                out[name] = np.full(len(entities), np.nan)
            out[name][i] = value
    amd = out.setdefault("amd", np.full(len(entities), np.nan))
    without = np.isnan(amd)
    if without.any():
        makers = {p.tag.owner: p.spelling.vendor for group in pieces.values() for p in group}
        for i in np.flatnonzero(without).tolist():
            if i in makers:
                amd[i] = float(makers[i] == "amd")
    return out


def _percent_exporters(pieces: Mapping[str, list[Piece]], catalogue: Catalogue) -> list[str]:
    """Return the exporters that write ratios as percent, sorted."""
    found: set[str] = set()
    for signal_id, group in pieces.items():
        if catalogue.signals[signal_id].unit != "ratio":
            continue
        ratios = [piece for piece in group if piece.spelling.unit == "ratio"]
        if not ratios:
            continue
        # A NaN or a blank among them, and each series is looked at closer.
        together = np.concatenate([piece.series.values for piece in ratios])
        if together.max(initial=0.0) <= _PERCENT_ABOVE:
            continue
        for piece in ratios:
            if piece.tag.exporter in found:
                continue
            values = piece.series.values
            top = values[values <= _PERCENT_MAX]  # blanks are far above
            if top.size and top.max() > _PERCENT_ABOVE:
                found.add(piece.tag.exporter)
    return sorted(found)


def _identity(labels: Mapping[str, str]) -> tuple[Matcher, ...]:
    """Return the fewest label matchers that find a GPU again."""
    uuid = [Matcher(name, "=", labels[name]) for name in UUID_LABELS if labels.get(name)]
    if uuid:
        return tuple(uuid)
    host = [Matcher(name, "=", labels[name]) for name in HOST_LABELS if labels.get(name)]
    if not host and labels.get("instance"):
        host = [Matcher("instance", "=", labels["instance"])]
    gpu = [Matcher(name, "=", labels[name]) for name in GPU_LABELS if labels.get(name)]
    return (*gpu, *host)


def _derive(frame: Frame, pieces: Mapping[str, list[Piece]], groups: list[list[Place]]) -> None:
    """Add the signals that no exporter has: how many pods and MIG instances a GPU carries."""
    newest = _newest(pieces, len(frame))
    pods = np.full(len(frame), np.nan)
    slices = np.zeros(len(frame))
    for i, group in enumerate(groups):
        slices[i] = len({p.mig for p in group if p.mig})
        if any(p.workload or p.job for p in group):
            pods[i] = _live_pods(newest[i])
    for name, counts in (("pods", pods), ("mig_instances", slices)):
        known = np.flatnonzero(~np.isnan(counts))
        if known.size:
            times = np.array([_last_seen(newest[i], frame) for i in known.tolist()])
            frame.columns[name] = column(counts[known], times, known, len(frame), merge=frame.timed)


_User = tuple[str | None, str]
_Seen = dict[tuple[str | None, _User | None], float]


def _newest(pieces: Mapping[str, list[Piece]], n: int) -> list[_Seen]:
    """Return, per GPU, the newest sample time of every (MIG instance, workload)."""
    tags: dict[int, Tag] = {}
    for group in pieces.values():
        for piece in group:
            ts, tag = piece.series.ts, piece.tag
            if ts.size and (time := ts.item(-1)) > tag.newest:
                tag.newest = time
                tags[id(tag)] = tag
    out: list[_Seen] = [{} for _ in range(n)]
    for tag in tags.values():
        place, seen = tag.place, out[tag.owner]
        job = ("job", place.job) if place.job else None
        user = (place.mig, place.workload or job)
        seen[user] = max(seen.get(user, 0.0), tag.newest)
    return out


def _live_pods(seen: _Seen) -> float:
    latest = max(seen.values(), default=0.0)
    per_slice: dict[str | None, set[_User]] = {}
    for (mig, workload), ts in seen.items():
        if workload and latest - ts <= _POD_GONE_S:
            per_slice.setdefault(mig, set()).add(workload)
    return float(max((len(pods) for pods in per_slice.values()), default=0))


def _last_seen(seen: _Seen, frame: Frame) -> float:
    return min(max(seen.values(), default=frame.at), frame.at) if frame.timed else 0.0
