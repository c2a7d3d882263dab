"""The checks: a good house passes, and each check finds what it is there for."""

import pytest

from engine.catalogue.lint import CHECKS, lint
from engine.catalogue.lint_rules import _PLACEHOLDER, ENTITY_WORDS, fnv1a_32
from engine.catalogue.loader import load_from
from engine.diagnosis.words import NAMES, PLACEHOLDER
from engine.errors import Problem
from tests.support.house import KNOWLEDGE, RULES

BRAKE = "rules/causes/power/power_brake.yaml"
BIT = "rules/symptoms/power/brake_bit.yaml"
CLOCKS = "knowledge/signals/clocks.yaml"
HOUSE = KNOWLEDGE | RULES
NEXT = 'next:\n  - {do: look, command: "nvidia-smi -i {gpu} -q", risk: none}\n'


def test_good_house_has_nothing_to_complain_about(root):
    assert lint(root=root) == []
    assert lint(load_from(root)) == []


@pytest.mark.parametrize(
    ("check", "file", "old", "new", "place"),
    [
        ("three-tests", BIT, "expect: unknown", "expect: false", f"{BIT}:1"),
        ("three-tests", BRAKE, "expect: quiet", "expect: unknown", f"{BRAKE}:1"),
        ("test-names", BIT, "name: clear", "name: set", f"{BIT}:11"),
        ("references", BRAKE, "references: [nvml.h]\n", "", f"{BRAKE}:1"),
        ("false-positives", BRAKE, "[none known]", "[]", f"{BRAKE}:1"),
        ("next-steps", BRAKE, NEXT, "", f"{BRAKE}:1"),
        ("placeholders", BRAKE, "{sm_clock}", "{sm_clok}", f"{BRAKE}:1"),
        ("placeholders", BRAKE, "-i {gpu}", "-i {gpus}", f"{BRAKE}:1"),
        (
            "field-order",
            BIT,
            "title: a bit is set\nversion: 1",
            "version: 1\ntitle: a bit is set",
            f"{BIT}:2",
        ),
        (
            "export-line",
            CLOCKS,
            '    export: "DCGM_FI_DEV_SM_CLOCK, gauge, SM clock."\n',
            "",
            f"{CLOCKS}:13",
        ),
        (
            "spelling-clash",
            CLOCKS,
            "name: DCGM_FI_DEV_SM_CLOCK,",
            "name: DCGM_FI_DEV_CLOCK_THROTTLE_REASONS,",
            f"{CLOCKS}:13",
        ),
        ("load", BIT, "version: 1", "version: one", f"{BIT}:3"),
    ],
)
def test_each_check_finds_its_fault(root, put, check, file, old, new, place):
    assert old in HOUSE[file]
    put({file: HOUSE[file].replace(old, new, 1)})
    found = lint(root=root)
    assert [problem.check for problem in found] == [check]
    assert str(found[0]).startswith(f"{place}:")
    assert found[0].hint
    assert isinstance(found[0], Problem)


def test_packaged_rules_and_knowledge_are_good():
    assert [str(problem) for problem in lint() if problem.severity == "error"] == []


def test_unused_symptom_is_a_warning(root, put):
    put({BRAKE: HOUSE[BRAKE].replace("brake_bit", "cap_bit")})
    (problem,) = lint(root=root)
    assert (problem.check, problem.severity) == ("unused-symptoms", "warning")
    assert "'brake_bit'" in problem.message


@pytest.mark.parametrize(
    "name", ["rules/symptoms/power/brake.yaml", "rules/symptoms/brake_bit.yaml"]
)
def test_file_in_the_wrong_place(root, put, name):
    (root / BIT).unlink()
    put({name: HOUSE[BIT]})
    (problem,) = lint(root=root)
    assert problem.check == "file-names"
    assert problem.hint == "move it to rules/symptoms/DOMAIN/brake_bit.yaml"


def test_condition_that_is_never_unknown_needs_no_such_test(root, put):
    text = HOUSE[BIT].replace(
        'has(throttle_reasons, "hw_power_brake")', "missing(throttle_reasons)"
    )
    put({BIT: text.replace("expect: unknown", "expect: true")})
    # The cause's own test then fails as a test, but nothing is missing from either file.
    assert lint(root=root) == []


def test_two_bits_of_one_value(root, put):
    text = (
        HOUSE["knowledge/throttle_reasons.yaml"]
        .replace("bit: 0x80", "bit: 4")
        .replace('hex: "0x80"', 'hex: "0x4"')
    )
    put({"knowledge/throttle_reasons.yaml": text})
    assert [problem.check for problem in lint(root=root)] == ["bit-clash"]


MODEL = """\
  - id: {id}
    title: {id}
    match: [NVIDIA X1]
    pattern: "NVIDIA X1.*"
    vendor: nvidia
    architecture: x
    attrs: {{tdp_w: 700}}
    source: [data sheet]
    status: confirmed
"""


def test_model_name_of_two_products(root, put):
    put(
        {"knowledge/gpu_models.yaml": "gpu_models:\n" + MODEL.format(id="a") + MODEL.format(id="b")}
    )
    (problem,) = lint(root=root)
    assert problem.check == "model-clash"
    assert problem.line == 11


def test_misspelt_model_in_a_test(root, put):
    text = HOUSE[BIT].replace("name: set,", "name: set, model: NVIDIA Y1,")
    put({"knowledge/gpu_models.yaml": "gpu_models:\n" + MODEL.format(id="a"), BIT: text})
    (problem,) = lint(root=root)
    assert (problem.check, problem.hint) == ("test-models", "did you mean 'NVIDIA X1'?")


def test_overlays_are_checked_with_the_base(root, overlay):
    mine = overlay(
        {"rules/causes/site/power_brake.yaml": HOUSE[BRAKE].replace("[none known]", "[]")}
    )
    (problem,) = lint([mine], root=root)
    assert (problem.check, problem.file) == (
        "false-positives",
        f"{mine}/rules/causes/site/power_brake.yaml",
    )


def test_overlay_that_disables_is_no_fault(root, overlay):
    mine = overlay({"rules/causes/x/power_bound.yaml": "id: power_bound\ndisabled: true\n"})
    assert [problem.check for problem in lint([mine], root=root)] == ["unused-symptoms"]


def test_hash_is_the_one_of_durable_rules():
    # Test vectors of FNV-1a, 32 bits (Fowler, Noll, Vo).
    assert fnv1a_32("") == 0x811C9DC5
    assert fnv1a_32("a") == 0xE40C292C
    assert fnv1a_32("foobar") == 0xBF9CF968


def test_ids_that_collide(root, put):
    # A known pair of FNV-1a, 32 bits.
    assert fnv1a_32("costarring") == fnv1a_32("liquid")
    for name in ("costarring", "liquid"):
        put({f"rules/symptoms/power/{name}.yaml": HOUSE[BIT].replace("brake_bit", name)})
    found = [problem for problem in lint(root=root) if problem.check == "rule-engine-ids"]
    assert [problem.message for problem in found] == [
        "'liquid' and 'costarring' hash to the same 32 bits"
    ]


def test_placeholders_are_those_that_answers_fill():
    assert set(NAMES) == ENTITY_WORDS
    assert PLACEHOLDER.pattern == _PLACEHOLDER.pattern


def test_checks_have_names_and_say_why():
    names = [check.name for check in CHECKS]
    assert len(set(names)) == len(names)
    assert all(check.__doc__ and check.severity in {"error", "warning"} for check in CHECKS)
