"""Services out of the series of exporter text: grouped by server and model, then by engine.

Engines are told apart by the labels of data parallelism and by pod or scrape address; the ranks
of tensor and pipeline parallelism all repeat one engine's numbers, so the largest counts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from engine.readers.series import Collected, Series, tidy
from engine.readers.serving.histogram import Histogram
from engine.readers.serving.load import Engine, Load
from engine.readers.serving.quantities import Name, Quantities, canonical, server_of

_MODEL_LABELS = ("model_name", "model", "served_model_name")
_ENGINE_LABELS = ("engine", "dp_rank", "data_parallel_rank", "worker_id", "WorkerId", "ReplicaId")
_PLACE_LABELS = ("exported_pod", "pod", "instance")
# Labels of which every value repeats the same engine's number.
_SAME = ("tp_rank", "pp_rank", "moe_ep_rank", "pid", "gpu")
_API = re.compile(r"/(?:v1|v2|generate|invocations)\b")
_MAX_SERVICES = 64
_MAX_ENGINES = 1024
_PERCENT_FROM = 1.5
_MAX_DIGITS = 16
_MAX_LIMITS = 8
_RATIOS = ("kv_usage", "prefix_hit_rate", "accept_rate")
_MAX_POSITIONS = 64


@dataclass(slots=True)
class _Cell:
    """The series of one quantity of one engine under one name."""

    series: list[tuple[Series, float]] = field(default_factory=list)


@dataclass(slots=True)
class _Building:
    load: Load
    # (quantity, rank, base) to engine key to series
    cells: dict[tuple[str, int, str], dict[tuple[str, str], _Cell]] = field(default_factory=dict)
    # (quantity, rank, base) to labels without le to buckets, sum, count
    parts: dict[tuple[str, int, str], dict[object, dict[str, object]]] = field(default_factory=dict)
    engines: dict[tuple[str, str], None] = field(default_factory=dict)


def services(collected: Collected, quantities: Quantities) -> list[Load]:
    """Return the services that a text shows, in its order."""
    found: dict[tuple[str, str], _Building] = {}
    starts: list[Series] = []
    http: list[Series] = []
    models = _models(collected)
    repeated = collected.scrapes > 1
    for series in collected.series.values():
        if series.name == "process_start_time_seconds":
            starts.append(series)
        elif series.name == "http_requests_total":
            http.append(series)
        server = server_of(series.name)
        if server is None or series.last is None:
            continue
        names = [n for n in quantities.of(series.name) if _matches(series, n)]
        model = model_of(series.labels) or models.get(server, "")
        building = _building(found, server, model, series)
        if building is None:
            continue
        for name in names:
            _place(building, name, series)
        _states(building.load, series, repeated=repeated)
    loads = [_finish(b, quantities, repeated=repeated) for b in found.values()]
    _uptime(loads, starts, collected.series.values())
    _http(loads, http, repeated=repeated)
    return loads


def model_of(labels: Mapping[str, str]) -> str:
    """Return the served model that labels name, cut and without control characters."""
    for label in _MODEL_LABELS:
        if labels.get(label):
            return tidy(labels[label])
    return ""


def _matches(series: Series, name: Name) -> bool:
    return name.match is None or series.labels.get(name.match[0]) == name.match[1]


def _models(collected: Collected) -> dict[str, str]:
    """The model of each server that serves one only: some of its series do not name it."""
    found: dict[str, set[str]] = {}
    for series in collected.series.values():
        server, model = server_of(series.name), model_of(series.labels)
        if server is not None and model and len(found.get(server, ())) < _MAX_SERVICES:
            found.setdefault(server, set()).add(model)
    return {server: next(iter(models)) for server, models in found.items() if len(models) == 1}


def _building(
    found: dict[tuple[str, str], _Building], server: str, model: str, series: Series
) -> _Building | None:
    building = found.get((server, model))
    if building is None and len(found) < _MAX_SERVICES:
        building = _Building(Load(server, model, line=series.line))
        found[server, model] = building
    if building is not None:
        building.load.labels |= series.labels.keys() & set(_MODEL_LABELS)
    return building


def _states(load: Load, series: Series, *, repeated: bool) -> None:
    """What comes as labels, not as values: adapters that wait, sleep, limits, positions."""
    name, labels = canonical(series.name), series.labels
    if name == "vllm:engine_sleep_state" and labels.get("sleep_state") == "awake":
        load.asleep |= series.last == 0
    if name == "vllm:lora_requests_info" and (series.last or 0.0) >= load.lora_at:
        load.lora_at = series.last or 0.0
        waiting = labels.get("waiting_lora_adapters", "").split(",")[:_MAX_ENGINES]
        load.lora_waiting = tuple(tidy(w.strip()) for w in waiting if w.strip())
        load.lora_slots = _integer(labels.get("max_lora", ""))
    count = _counted(series, 1.0, repeated)
    if name == "vllm:admission_rejections_total" and count and len(load.refused_by) < _MAX_LIMITS:
        load.refused_by[tidy(labels.get("reason", ""))] = None
    if name == "vllm:spec_decode_num_accepted_tokens_per_pos_total" and count is not None:
        position = _integer(labels.get("position", ""))
        if position is not None and position < _MAX_POSITIONS:
            load.positions[position] = load.positions.get(position, 0.0) + count
    if name == "vllm:cache_config_info":
        load.cache_blocks = _integer(labels.get("num_gpu_blocks", ""))
        load.block_tokens = _integer(labels.get("block_size", ""))


def _integer(written: str) -> int | None:
    return (
        int(written)
        if len(written) < _MAX_DIGITS and written.isascii() and written.isdigit()
        else None
    )


def _place(building: _Building, name: Name, series: Series) -> None:
    labels = series.labels
    engine = (
        next((labels[k] for k in _PLACE_LABELS if labels.get(k)), ""),
        next((labels[k] for k in _ENGINE_LABELS if labels.get(k)), ""),
    )
    if engine not in building.engines:
        if len(building.engines) >= _MAX_ENGINES:
            return
        building.engines[engine] = None
    where = (name.quantity, name.rank, name.base)
    if not name.part:
        cells = building.cells.setdefault(where, {})
        cells.setdefault(engine, _Cell()).series.append((series, name.scale))
        return
    rest = frozenset((k, v) for k, v in labels.items() if k != "le")
    part = building.parts.setdefault(where, {}).setdefault(rest, {})
    if name.part == "_bucket":
        edge = _edge(labels.get("le", ""))
        if edge is not None:
            buckets = part.setdefault("buckets", {})
            assert isinstance(buckets, dict)
            buckets[edge * name.scale] = series
    else:
        part[name.part] = (series, name.scale)


def _edge(written: str) -> float | None:
    try:
        edge = float(written) if len(written) < 32 else math.nan
    except ValueError:
        return None
    return None if math.isnan(edge) else edge


def _finish(building: _Building, quantities: Quantities, *, repeated: bool) -> Load:
    load = building.load
    names = _names(building.engines)
    load.engines = {
        name: Engine(name, _instance(place, index)) for (place, index), name in names.items()
    }
    indexed = {place: names[place, index] for place, index in names if index}
    for (place, index), name in list(names.items()):
        if not index and place in indexed and not _works(building, (place, index)):
            # The service's own counters, beside those of its engines.
            load.engines.pop(name, None)
            names[place, index] = indexed[place]
    for (quantity, _, base), cells in sorted(building.cells.items(), key=lambda c: c[0][:2]):
        adds = quantities.entries[quantity].get("add", False)
        for key, cell in cells.items():
            engine = load.engines[names[key]]
            if quantity not in engine.now or adds:
                _read(engine, quantity, cell, repeated=repeated)
        if any(quantity in e.now for e in load.engines.values()):
            load.written.setdefault(quantity, base)
    for (quantity, _, base), parts in sorted(building.parts.items(), key=lambda c: c[0][:2]):
        if quantity in load.histograms:
            continue
        histogram = _histogram(parts.values(), repeated=repeated)
        if histogram.count or histogram.buckets:
            load.histograms[quantity] = histogram
            load.written[quantity] = base
    used = {e.name for e in load.engines.values() if e.now}
    if used:  # a front end has counters and no engine
        load.engines = {k: e for k, e in load.engines.items() if k in used}
    if repeated:
        load.since = "between the first and the last scrape"
        spans = [s for b in building.cells.values() for c in b.values() for s, _ in c.series]
        load.span_s = (
            max(
                (s.end - s.start for s in spans if s.start is not None and s.end is not None),
                default=0.0,
            )
            or None
        )
    return load


def _works(building: _Building, engine: tuple[str, str]) -> bool:
    """Whether an engine has a load of its own, not only counters."""
    return any(
        engine in cells
        for (quantity, _, _), cells in building.cells.items()
        if quantity in {"running", "waiting", "kv_usage"}
    )


def _names(engines: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Name engines by what tells them apart: the index, the place, or both."""
    keys = list(engines)
    places = {place for place, _ in keys}
    indices = {index for _, index in keys}
    out: dict[tuple[str, str], str] = {}
    for place, index in keys:
        words = []
        if len(places) > 1 and place:
            words.append(tidy(place))
        if index and (len(indices) > 1 or not words):
            words.append(f"engine {tidy(index)}")
        name = " ".join(words) or ("engine" if len(keys) > 1 else "")
        out[place, index] = name
    return out


def _instance(place: str, index: str) -> str:
    return tidy("/".join(part for part in (place, index) if part))


def _read(engine: Engine, quantity: str, cell: _Cell, *, repeated: bool) -> None:
    """Put the series of one engine together: the same number said twice counts once."""
    now: dict[object, float] = {}
    grown: dict[object, float] = {}
    before: dict[object, float] = {}
    for series, scale in cell.series:
        if series.last is None or not math.isfinite(series.last):
            continue
        if quantity in _RATIOS and not 0 <= series.last <= 100:
            continue  # told as corrupt
        key = frozenset((k, v) for k, v in series.labels.items() if k not in _SAME)
        if series.last * scale >= now.get(key, -math.inf):
            now[key] = series.last * scale
            grown[key] = series.increase * scale
            before[key] = (series.first or 0.0) * scale
    if not now:
        return
    engine.now[quantity] = engine.now.get(quantity, 0.0) + _ratio(quantity, now)
    if repeated:
        engine.grown[quantity] = engine.grown.get(quantity, 0.0) + sum(grown.values())
        engine.before[quantity] = engine.before.get(quantity, 0.0) + sum(before.values())


def _ratio(quantity: str, values: Mapping[object, float]) -> float:
    """Counts add up; of a ratio the largest counts, and percent is read as such."""
    if quantity not in {*_RATIOS, "accept_length"}:
        return sum(values.values())
    top = max(values.values())
    return top / 100 if top > _PERCENT_FROM and quantity != "accept_length" else top


def _histogram(parts: Iterable[dict[str, object]], *, repeated: bool) -> Histogram:
    histogram = Histogram()
    for part in parts:
        buckets = part.get("buckets", {})
        assert isinstance(buckets, dict)
        histogram.add(
            {edge: v for edge, s in buckets.items() if (v := _counted(s, 1, repeated)) is not None},
            _pair(part.get("_sum"), repeated),
            _pair(part.get("_count"), repeated),
        )
    if histogram.count is None and histogram.buckets:
        histogram.count = max(histogram.buckets.values())
    return histogram


def _pair(found: object, repeated: bool) -> float | None:
    return _counted(found[0], found[1], repeated) if isinstance(found, tuple) else None


def _counted(series: Series, scale: float, repeated: bool) -> float | None:
    if series.last is None or not math.isfinite(series.last):
        return None
    return (series.increase if repeated and series.count > 1 else series.last) * scale


def _uptime(loads: list[Load], starts: list[Series], every: Iterable[Series]) -> None:
    """Age of the server's process, where one is named and samples have times."""
    if len(starts) != 1 or starts[0].last is None:
        return
    ends = [s.end for s in every if s.end is not None]
    if ends and 0 <= max(ends) - starts[0].last < 1e9:
        for load in loads:
            load.uptime_s = max(ends) - starts[0].last


def _http(loads: list[Load], http: list[Series], *, repeated: bool) -> None:
    """Answers of the API by status class, for the one server that has an API of its own."""
    with_api = [load for load in loads if load.server in {"vllm", "sglang"}]
    if len(with_api) != 1 or not with_api[0].engines:
        return
    engine = next(iter(with_api[0].engines.values()))
    for series in http:
        handler = series.labels.get("handler", series.labels.get("path", ""))
        status = series.labels.get("status", series.labels.get("code", ""))[:1]
        count = _counted(series, 1.0, repeated)
        if count is None or not _API.match(handler) or status not in {"2", "4", "5"}:
            continue
        for quantity in ("http_all", f"http_{status}xx"):
            engine.now[quantity] = engine.now.get(quantity, 0.0) + count
