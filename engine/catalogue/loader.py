"""Loading knowledge and rules, from the index where there is a good one, and overlays over them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from engine.catalogue import index
from engine.catalogue.assemble import assemble
from engine.catalogue.files import (
    ROOT,
    SourceFile,
    check_overlay,
    content_hash,
    read_overlay,
    read_tree,
)
from engine.catalogue.parts import Knowledge, Rules
from engine.catalogue.types import Catalogue
from engine.errors import CatalogueError, Problem

P = TypeVar("P", Knowledge, Rules)


def load_catalogue(
    overlays: Sequence[Path] = (), *, rules: bool = True, strict: bool = True
) -> Catalogue:
    """Load the packaged knowledge and rules, with a user's folders laid over them.

    Args:
        overlays: folders with ``knowledge/`` and ``rules/`` below them, or single YAML files of
            either. A knowledge entry replaces
            the one of the same id or is added; a rule file replaces the whole rule of the same id,
            is added, or (``disabled: true``) switches it off. Later folders win.
        rules: False leaves rules out, which is all that decoding needs.
        strict: False leaves out what is broken, each file, entry or rule by itself, and tells it in
            ``problems``; whatever it would have replaced stays in force.

    Returns:
        The catalogue. ``origins`` says which file each thing came from: ``rule/power_brake``,
        ``symptom/power_brake_bit``, ``xid/79``, and ``disabled/rule/ID`` for what is switched off.

    Raises:
        CatalogueError: a file does not parse, does not fit its model, or names what is not there.
        UsageError: an overlay is no folder, or has neither ``knowledge/`` nor ``rules/``.
    """
    return load_from(ROOT, overlays, rules=rules, strict=strict)


def load_from(
    root: Path,
    overlays: Sequence[Path] = (),
    *,
    rules: bool = True,
    use_index: bool = True,
    strict: bool = True,
) -> Catalogue:
    """Load as `load_catalogue` does, from another root; see there and `load_parts`."""
    skipped: list[Problem] | None = None if strict else []
    parts = load_parts(root, overlays, rules=rules, use_index=use_index, skipped=skipped)
    catalogue = assemble(*parts)
    if not skipped:
        return catalogue
    problems = tuple(sorted(set(skipped)))
    own = _first_problems(root, overlays, rules=rules, use_index=use_index) & set(skipped)
    return replace(catalogue, problems=problems, own_problems=tuple(sorted(own)) or problems)


def _first_problems(
    root: Path, overlays: Sequence[Path], *, rules: bool, use_index: bool
) -> set[Problem]:
    """Return what stops a strict load: all later problems may come of what was left out."""
    try:
        load_parts(root, overlays, rules=rules, use_index=use_index)
    except CatalogueError as error:
        return set(error.problems)
    return set()


def load_parts(
    root: Path,
    overlays: Sequence[Path] = (),
    *,
    rules: bool = True,
    use_index: bool = True,
    skipped: list[Problem] | None = None,
) -> tuple[str, Knowledge, Rules | None]:
    """Load the parts that a catalogue is assembled from, with the hash of all files.

    Args:
        root: the folder that holds ``knowledge/`` and ``rules/``.
        overlays: see `load_catalogue`.
        rules: see `load_catalogue`.
        use_index: False compiles from YAML and leaves the index alone.
        skipped: what is broken is told here and left out; None: it is refused.

    Raises:
        CatalogueError: see `load_catalogue`.
        UsageError: see `load_catalogue`.
    """
    for folder in overlays:
        check_overlay(folder)
    knowledge_files = read_tree(root, "knowledge", skipped=skipped)
    rule_files = read_tree(root, "rules", skipped=skipped) if rules else []
    layers = [
        (
            read_overlay(folder, "knowledge", skipped=skipped),
            read_overlay(folder, "rules", skipped=skipped) if rules else [],
        )
        for folder in overlays
    ]
    hash_ = content_hash(
        [*knowledge_files, *rule_files, *(f for layer in layers for part in layer for f in part)]
    )

    knowledge = _part(
        "knowledge",
        Knowledge,
        index.key_for(knowledge_files) if use_index else "",
        lambda: _compile_knowledge(knowledge_files, skipped),
        skipped,
    )
    base: Rules | None = None
    if rules:
        # A rule is only as valid as the knowledge it names, so both are in the key.
        base = _part(
            "rules",
            Rules,
            index.key_for([*knowledge_files, *rule_files]) if use_index else "",
            lambda: _compile_rules(rule_files, knowledge, skipped),
            skipped,
        )
    for knowledge_layer, rule_layer in layers:
        knowledge, base = _lay_over(knowledge, base, knowledge_layer, rule_layer, skipped)
    return hash_, knowledge, base


def _part(
    part: str, kind: type[P], key: str, compile_: Callable[[], P], skipped: Sequence[Problem] | None
) -> P:
    stored = index.find(part, key) if key else None
    if stored is not None:
        return kind.from_json(stored)
    compiled = compile_()
    # What had to leave something out is not kept: it would be told the first time only.
    if key and not skipped:
        index.save_in_cache(part, key, compiled.to_json())
    return compiled


def write_packaged_index(root: Path = ROOT, folder: Path = index.PACKAGED) -> list[Path]:
    """Compile the YAML of a root and write its index into the package; return the files written.

    Called when the wheel is built. Older indexes in the folder are removed.

    Raises:
        CatalogueError: the YAML does not load.
        OSError: the folder cannot be written.
    """
    knowledge_files, rule_files = read_tree(root, "knowledge"), read_tree(root, "rules")
    knowledge = _compile_knowledge(knowledge_files)
    rules = _compile_rules(rule_files, knowledge)
    for path in folder.glob("*.json"):
        path.unlink()
    everything = [*knowledge_files, *rule_files]
    return [
        index.save(folder, "knowledge", index.key_for(knowledge_files), knowledge.to_json()),
        index.save(folder, "rules", index.key_for(everything), rules.to_json()),
    ]


def _compile_knowledge(
    files: Sequence[SourceFile], skipped: list[Problem] | None = None
) -> Knowledge:
    from engine.catalogue import build  # noqa: PLC0415 - slow to import, seldom needed

    return build.compile_knowledge(files, skipped=skipped)


def _compile_rules(
    files: Sequence[SourceFile], knowledge: Knowledge, skipped: list[Problem] | None = None
) -> Rules:
    from engine.catalogue import build  # noqa: PLC0415 - slow to import, seldom needed

    return build.compile_rules(files, knowledge, skipped=skipped)


def _lay_over(
    knowledge: Knowledge,
    base: Rules | None,
    knowledge_files: Sequence[SourceFile],
    rule_files: Sequence[SourceFile],
    skipped: list[Problem] | None,
) -> tuple[Knowledge, Rules | None]:
    from engine.catalogue import build  # noqa: PLC0415 - slow to import, seldom needed

    if knowledge_files:
        knowledge = build.compile_knowledge(knowledge_files, knowledge, skipped=skipped)
    if base and (knowledge_files or rule_files):
        base = build.compile_rules(rule_files, knowledge, base, skipped=skipped)
    return knowledge, base
