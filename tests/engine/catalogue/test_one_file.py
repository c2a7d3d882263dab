"""A single YAML file laid over knowledge and rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.catalogue.lint import lint
from engine.catalogue.loader import load_from
from engine.errors import CatalogueError, UsageError
from tests.support.house import CAUSE, RULES, SYMPTOM

BRAKE = "rules/causes/power/power_brake.yaml"


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_rule_replaces_the_one_of_its_id(root, tmp_path):
    text = RULES[BRAKE].replace("title: power_brake holds", "title: as this site says it")
    file = put(tmp_path / "mine.yaml", text)
    loaded = load_from(root, [file])
    assert loaded.causes["power_brake"].title == "as this site says it"
    assert loaded.origins["rule/power_brake"] == str(file)
    assert lint([file], root=root) == []


def test_a_symptom_and_knowledge_are_known_by_their_keys(root, tmp_path):
    symptom = put(tmp_path / "s.yaml", SYMPTOM.format(id="mine", bit="sw_power_cap", mask=4))
    taxonomy = "taxonomy:\n  - {id: new_one, class: fault, scope: gpu, title: new, is: new}\n"
    knowledge = put(tmp_path / "k.yml", taxonomy)
    loaded = load_from(root, [symptom, knowledge])
    assert loaded.symptoms["mine"].place.file == str(symptom)
    assert loaded.taxonomy["new_one"].title == "new"


def test_what_is_switched_off_is_told_by_the_folder_it_lies_in(root, tmp_path):
    off = "id: power_bound\ndisabled: true\n"
    file = put(tmp_path / "causes" / "power_bound.yaml", off)
    assert load_from(root, [file]).disabled == {"rule/power_bound": str(file)}
    bare = put(tmp_path / "power_bound.yaml", off)
    with pytest.raises(
        CatalogueError, match=r"power_bound\.yaml:1:1: cannot tell what is disabled"
    ):
        load_from(root, [bare])
    lenient = load_from(root, [bare], strict=False)
    assert "power_bound" in lenient.causes
    assert [p.file for p in lenient.problems] == [str(bare)]


def test_errors_name_the_file_as_it_was_given(root, tmp_path):
    text = CAUSE.format(id="power_bound", severity="info", symptom="no_such", mask=4)
    file = put(tmp_path / "wrong.yaml", text)
    with pytest.raises(CatalogueError) as caught:
        load_from(root, [file])
    assert caught.value.problems[0].file == str(file)
    assert "unknown symptom 'no_such'" in str(caught.value)


def test_what_is_no_yaml_file_is_no_overlay(root, tmp_path):
    for path in (tmp_path / "absent.yaml", put(tmp_path / "notes.txt", "x")):
        with pytest.raises(UsageError, match=r"or one \.yaml file"):
            load_from(root, [path])
