"""Running a calculator: from ``name=value`` words, or from a question in words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from engine.catalogue.nearest import did_you_mean
from engine.catalogue.types import Catalogue, GpuModel
from engine.errors import UsageError
from engine.lookup.calc.base import Calculator, Input
from engine.lookup.calc.formulas import ALL
from engine.lookup.calc.units import read_number
from engine.lookup.model import Calculation, Quantity

CALCULATORS: Mapping[str, Calculator] = {calculator.id: calculator for calculator in ALL}

# An input that a GPU model answers, and the attribute that does.
_OF_MODEL = {"bandwidth": "memory_bandwidth_gbps", "peak": "peak_bf16_tflops"}
_WITH_MODEL = frozenset(("ridge", "mfu"))


def calculate(name: str, words: Sequence[str], catalogue: Catalogue) -> Calculation:
    """Run a calculator.

    Args:
        name: which.
        words: ``input=value``; ``gpu=h100_sxm`` stands for its peak and bandwidth.
        catalogue: knows GPU models.

    Raises:
        UsageError: no such calculator or input, a value that cannot be read or is out of bounds, or
            one is missing.
    """
    if name not in CALCULATORS:
        hint = did_you_mean(name, CALCULATORS, otherwise=f"use one of {', '.join(CALCULATORS)}")
        raise UsageError(f"no calculator {name[:40]!r}", hint=hint, code="unknown_calculator")
    calculator = CALCULATORS[name]
    given: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise UsageError(f"{word[:40]!r} names no input", hint=_usage(calculator))
        key = key.strip().lower().replace("-", "_")
        if key in given:
            raise UsageError(f"{key} is given twice", hint="give each input once")
        given[key] = value.strip()
    return _work(calculator, given, catalogue)


def from_words(text: str, catalogue: Catalogue) -> Calculation | None:
    """Return the calculation that a question asks for, or None.

    It asks for one if it names what a calculator gives and every input that has to be given, each
    number beside the word or with the unit that says what it is.
    """
    low = text.casefold()
    # Who asks why a figure is what it is, or speaks of several, does not want one worked out.
    if _NO_SUM.search(low):
        return None
    for calculator in ALL:
        if any(re.search(rf"\b{re.escape(word)}\b", low) for word in calculator.words):
            given = _spoken(calculator, text, catalogue)
            try:
                return _work(calculator, given, catalogue) if given else None
            except UsageError:
                return None
    return None


def _work(calculator: Calculator, given: Mapping[str, str], catalogue: Catalogue) -> Calculation:
    known = {one.name: one for one in calculator.inputs}
    extra = {"gpu"} if calculator.id in _WITH_MODEL else set()
    for key in given:
        if key not in known and key not in extra:
            hint = did_you_mean(key, known, otherwise=_usage(calculator))
            raise UsageError(f"{calculator.id} has no input {key[:40]!r}", hint=hint)
    values: dict[str, float | str] = {}
    model = _model(given["gpu"], catalogue) if "gpu" in given else None
    for one in calculator.inputs:
        value = _value(one, given.get(one.name), model)
        if value is not None:
            values[one.name] = value
        elif not one.optional:
            raise UsageError(
                f"{calculator.id} needs {one.name} ({one.about})", hint=_usage(calculator)
            )
    results, notes = calculator.work(values)
    told = (f"peak (BF16, dense) and bandwidth of the {model.title}",) if model else ()
    return Calculation(
        calculator=calculator.id,
        title=calculator.title,
        formula=calculator.formula,
        inputs=tuple(
            Quantity(one.name, values[one.name], "" if one.unit == "word" else one.unit)
            for one in calculator.inputs
            if one.name in values
        ),
        results=tuple(results),
        notes=(*told, *notes),
        sources=(*calculator.sources, *(model.source[:1] if model else ())),
    )


def _value(one: Input, text: str | None, model: GpuModel | None) -> float | str | None:
    if text is None:
        attribute = model.attrs.get(_OF_MODEL.get(one.name, "")) if model else None
        return attribute if attribute is not None else one.default
    if one.choices:
        word = text.casefold().replace("-", "_").replace(" ", "_")
        word = next((c for c in one.choices if c.replace("_", "") == word.replace("_", "")), word)
        if word not in one.choices:
            hint = did_you_mean(word, one.choices, otherwise=f"use one of {', '.join(one.choices)}")
            raise UsageError(f"no {one.name} {text[:40]!r}", hint=hint)
        return word
    value = read_number(text, one.unit, one.name)
    if not one.low <= value <= one.high:
        raise UsageError(
            f"{one.name}={text} is out of bounds", hint=f"give {one.low:g} to {one.high:g}"
        )
    if one.whole and value != int(value):
        raise UsageError(f"{one.name}={text} is no whole number", hint=f"such as {one.name}=8")
    return value


def _model(name: str, catalogue: Catalogue) -> GpuModel:
    found = next((m for m in catalogue.models if m.id == name), None) or catalogue.model_for(name)
    # "h100" is the usual one of its models: the first in the table whose id begins so.
    found = found or next(
        (m for m in catalogue.models if m.id.startswith(f"{name.lower()}_")), None
    )
    if found is None:
        hint = did_you_mean(name, (m.id for m in catalogue.models))
        raise UsageError(f"no GPU model {name[:40]!r}", hint=hint or "gpuwhy kb list gpu_models")
    return found


def _usage(calculator: Calculator) -> str:
    shown = (
        f"[{one.name}=…]" if one.optional or one.default is not None else f"{one.name}=…"
        for one in calculator.inputs
    )
    return f"gpuwhy calc {calculator.id} {' '.join(shown)}"


_NO_SUM = re.compile(r"\bwhy\b|\btook\b|\bper node\b|\bonly\b|\bvs\b|\bversus\b")
_UNIT = (
    r"[KMGTP]i?(?:B|b)(?:/s|ps)?|[kKMGTP]?FLOPS?(?:/s)?|FLOP/byte|tok(?:ens)?/s|tokens per second"
    r"|%|ms|us|s(?![a-z])"
)
# The suffix of a count (70B, 8k) has no space before it: "n=4096 k=4096" are two inputs.
_SPOKEN = re.compile(
    rf"(?<![\w.])(?P<number>\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?)"
    rf"(?:\s*(?P<unit>{_UNIT})|(?P<suffix>[bmkt])(?![a-z]))?",
    re.IGNORECASE,
)
# How far from a number its word may stand, and a GPU model that may stand between ("8 H100 GPUs").
_NEAR = 30
_MODEL_WORD = re.compile(r"^(?:nvidia |amd )?[a-z]{1,2}\d{2,3}[a-z]?\s+")


def _spoken(calculator: Calculator, text: str, catalogue: Catalogue) -> dict[str, str]:
    """Return the inputs that a sentence names."""
    given: dict[str, str] = {}
    low = text.casefold()
    for match in _SPOKEN.finditer(text):
        one = _meant(calculator, low, match, given)
        if one is not None:
            given[one.name] = _number(match)
    for one in calculator.inputs:
        named = [choice for choice in one.choices if _says(low, choice)]
        if len(named) > 1:
            return {}
        given |= {one.name: named[0]} if named else {}
    if calculator.id in _WITH_MODEL:
        models = list(_models_named(low, catalogue))
        if len({model.split("_")[0] for model in models}) > 1:
            return {}
        given |= {"gpu": models[0]} if models else {}
    return given


def _says(text: str, choice: str) -> bool:
    """Return whether a text holds a word, however its parts are joined: ``all-reduce``."""
    parts = re.findall(r"all|to|[a-z0-9]+?(?=all|to|_|$)|[a-z0-9]+", choice.replace("_", " "))
    joined = r"[ _-]?".join(map(re.escape, choice.split("_") if "_" in choice else parts))
    return bool(re.search(rf"(?<![\w-]){joined}(?!\w)", text))


def _models_named(low: str, catalogue: Catalogue) -> Iterator[str]:
    words = set(re.findall(r"[a-z0-9]+", low))
    for model in catalogue.models:
        parts = model.id.split("_")
        if parts[0] in words and any(ch.isdigit() for ch in parts[0]):
            yield model.id


def _meant(
    calculator: Calculator, low: str, match: re.Match[str], given: Mapping[str, str]
) -> Input | None:
    """Return the input that a number is: by the word beside it, else by a unit only one takes."""
    before = low[max(0, match.start() - _NEAR) : match.start()].rstrip()
    after = _MODEL_WORD.sub("", low[match.end() : match.end() + _NEAR].lstrip(" -"))
    assigned, before = before.endswith(("=", ":")), before.rstrip(" =:of")
    free = [one for one in calculator.inputs if one.name not in given and one.unit != "word"]
    beside = [
        one for one in free if any(re.search(rf"\b{re.escape(w)}$", before) for w in _names(one))
    ]
    behind = [
        one for one in free if any(re.match(rf"{re.escape(w)}\b", after) for w in _names(one))
    ]
    for one in (*beside, *behind) if assigned else (*behind, *beside):
        if _fits(one, match):
            return one
    fitting = [one for one in free if match["unit"] and _fits(one, match)]
    return fitting[0] if len(fitting) == 1 else None


def _names(one: Input) -> tuple[str, ...]:
    return (one.name, one.name.replace("_", " "), *one.words)


def _fits(one: Input, match: re.Match[str]) -> bool:
    try:
        read_number(_number(match), one.unit, one.name)
    except UsageError:
        return False
    return True


def _number(match: re.Match[str]) -> str:
    return f"{match['number']}{match['unit'] or match['suffix'] or ''}"
