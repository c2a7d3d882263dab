"""Loading: the base, overlays over it, and what is said when something is wrong."""

import pytest

from engine.catalogue import load_catalogue
from engine.catalogue.files import check_overlay
from engine.catalogue.loader import load_from
from engine.errors import CatalogueError, UsageError
from engine.model import Class, Confidence, Severity
from tests.support.house import CAUSE, KNOWLEDGE, RULES, SYMPTOM


def problems(root, overlays=()):
    with pytest.raises(CatalogueError) as caught:
        load_from(root, overlays)
    return [str(problem) for problem in caught.value.problems]


def test_everything_is_loaded(root):
    catalogue = load_from(root)
    brake = catalogue.causes["power_brake"]
    assert (brake.class_, brake.scope, brake.severity) == (Class.FAULT, "node", Severity.CRITICAL)
    assert brake.patterns[0].all == ("brake_bit",)
    assert brake.patterns[0].confidence is Confidence.CERTAIN
    assert brake.name == "power_brake@2"
    symptom = catalogue.symptoms["brake_bit"]
    assert str(symptom.when_place) == "rules/symptoms/power/brake_bit.yaml:6:7"
    assert [test.expect for test in symptom.tests] == ["true", "false", "unknown"]
    assert str(symptom.tests[1].place) == "rules/symptoms/power/brake_bit.yaml:11:5"
    hertz = catalogue.signals["sm_clock"].spellings[1]
    assert (hertz.name, hertz.scale) == ("DCGM_FI_DEV_SM_CLOCK_HERTZ", 1e-6)
    assert catalogue.bits == {"throttle_reasons": {"sw_power_cap": 4, "hw_power_brake": 128}}
    assert catalogue.origins["rule/power_brake"] == "rules/causes/power/power_brake.yaml"
    assert catalogue.origins["symptom/cap_bit"] == "rules/symptoms/power/cap_bit.yaml"
    assert catalogue.origins["signals/sm_clock"] == "knowledge/signals/clocks.yaml"


def test_rules_can_be_left_out(root, put):
    put({"rules/causes/power/broken.yaml": "\t"})
    catalogue = load_from(root, rules=False)
    assert catalogue.signals
    assert not catalogue.causes


def test_hash_follows_content(root, put):
    first = load_from(root).hash
    assert load_from(root, use_index=False).hash == first
    put({"knowledge/taxonomy.yaml": KNOWLEDGE["knowledge/taxonomy.yaml"] + "# a remark\n"})
    assert load_from(root).hash != first


def test_hidden_files_are_not_ours(root, put):
    put({"rules/causes/.old/x.yaml": "\t", "knowledge/.taxonomy.yaml": "\t"})
    assert load_from(root).causes


def test_unreadable_file_is_named(root):
    (root / "knowledge/gone.yaml").symlink_to(root / "nowhere")
    (problem,) = problems(root)
    assert problem.startswith("knowledge/gone.yaml:1:1: cannot be read: No such file")


def test_too_big_file_is_not_read(root):
    (root / "knowledge/big.yaml").write_bytes(b"#" * (8 * 1024 * 1024 + 1))
    assert problems(root) == [
        "knowledge/big.yaml:1:1: is too big: 8.0 MiB; split it; one file may have 8 MiB"
    ]


class TestMistakesInKnowledge:
    def knowledge(self, root, put, old, new):
        text = KNOWLEDGE["knowledge/signals/clocks.yaml"]
        assert old in text
        put({"knowledge/signals/clocks.yaml": text.replace(old, new, 1)})
        return problems(root)

    def test_unknown_key(self, root, put):
        assert self.knowledge(root, put, "kind: gauge", "kind: gauge\n    exprot: x") == [
            "knowledge/signals/clocks.yaml:17:5: unknown key 'exprot'; did you mean 'export'?"
        ]

    def test_missing_key(self, root, put):
        assert self.knowledge(root, put, "    kind: gauge\n", "") == [
            "knowledge/signals/clocks.yaml:13:5: 'kind' is missing; add 'kind:'"
        ]

    def test_wrong_word(self, root, put):
        assert self.knowledge(root, put, "kind: gauge", "kind: guage") == [
            (
                "knowledge/signals/clocks.yaml:16:11: 'kind' must be one of gauge, counter, static, mask,"
                " code, enum; found the text 'guage'; did you mean 'gauge'?"
            )
        ]

    def test_number_where_text_is_wanted(self, root, put):
        assert self.knowledge(root, put, "title: SM clock", "title: 12") == [
            (
                "knowledge/signals/clocks.yaml:14:12: 'title' must be text, found the number 12;"
                " put it in quotes"
            )
        ]

    def test_text_where_list_is_wanted(self, root, put):
        assert self.knowledge(root, put, "source: [dcgm_fields.h]", "source: dcgm_fields.h") == [
            (
                "knowledge/signals/clocks.yaml:11:13: 'source' must be a list, found the text"
                " 'dcgm_fields.h'; write [dcgm_fields.h]"
            )
        ]

    def test_unknown_key_deep_inside(self, root, put):
        found = self.knowledge(root, put, "unit: Hz, scale: 1.0e-6", "unit: Hz, scael: 1.0e-6")
        assert found == [
            "knowledge/signals/clocks.yaml:23:54: unknown key 'scael'; did you mean 'scale'?"
        ]

    def test_link_that_leads_nowhere(self, root, put):
        found = self.knowledge(
            root, put, "throttle_reasons/sw_power_cap", "throttle_reasons/sw_cap"
        )
        assert found == [
            (
                "knowledge/signals/clocks.yaml:26:11: link 'throttle_reasons/sw_cap' leads nowhere;"
                " did you mean 'sw_power_cap'?"
            )
        ]

    def test_unknown_table_of_bits(self, root, put):
        found = self.knowledge(root, put, "bits: throttle_reasons", "bits: throttle_reason")
        assert found == [
            (
                "knowledge/signals/clocks.yaml:7:11: no knowledge table 'throttle_reason';"
                " did you mean 'throttle_reasons'?"
            )
        ]

    def test_id_in_two_files(self, root, put):
        put(
            {
                "knowledge/more.yaml": KNOWLEDGE["knowledge/taxonomy.yaml"].split(
                    "\n  - {id: power_bo"
                )[0]
            }
        )
        assert problems(root) == [
            (
                "knowledge/taxonomy.yaml:2:10: 'taxonomy/power_brake' is already defined at"
                " knowledge/more.yaml:2:10; remove one, or give it another id"
            )
        ]

    def test_entry_that_is_no_mapping(self, root, put):
        put({"knowledge/more.yaml": "tools:\n  - nsys\n"})
        assert problems(root) == [
            "knowledge/more.yaml:2:5: this must be a mapping, found the text 'nsys'; write 'key: value' lines"
        ]

    def test_concern_that_is_no_list(self, root, put):
        put({"knowledge/more.yaml": "tools: {id: nsys}\n"})
        assert problems(root) == [
            (
                "knowledge/more.yaml:1:8: 'tools' must be a list of entries, found a mapping;"
                " start each entry with '- '"
            )
        ]

    def test_all_files_are_reported_at_once(self, root, put):
        put({"knowledge/a.yaml": "\t", "knowledge/b.yaml": "x: [\n", "knowledge/c.yaml": "- 1\n"})
        assert {text.split(":")[0] for text in problems(root)} == {
            "knowledge/a.yaml",
            "knowledge/b.yaml",
            "knowledge/c.yaml",
        }


class TestMistakesInRules:
    def cause(self, root, put, old, new):
        text = RULES["rules/causes/power/power_brake.yaml"]
        assert old in text
        put({"rules/causes/power/power_brake.yaml": text.replace(old, new, 1)})
        return problems(root)

    def test_unknown_symptom(self, root, put):
        assert self.cause(root, put, "all: [brake_bit]", "all: [brake_bti]") == [
            (
                "rules/causes/power/power_brake.yaml:7:11: unknown symptom 'brake_bti';"
                " did you mean 'brake_bit'?"
            )
        ]

    def test_cause_named_without_its_prefix(self, root, put):
        assert self.cause(root, put, "all: [brake_bit]", "all: [power_bound]") == [
            (
                "rules/causes/power/power_brake.yaml:7:11: unknown symptom 'power_bound';"
                " write cause/power_bound to refer to the cause"
            )
        ]

    def test_unknown_cause(self, root, put):
        assert self.cause(root, put, "all: [brake_bit]", "all: [cause/power_bond]") == [
            (
                "rules/causes/power/power_brake.yaml:7:11: unknown cause 'cause/power_bond': no rule has this"
                " id; did you mean 'cause/power_bound'?"
            )
        ]

    def test_id_that_is_not_in_the_taxonomy(self, root, put):
        (problem,) = self.cause(root, put, "id: power_brake", "id: power_break")
        assert problem == (
            "rules/causes/power/power_brake.yaml:1:5: unknown cause 'power_break' in the taxonomy;"
            " did you mean 'power_brake'? else add it under taxonomy: in DIR/knowledge/*.yaml"
        )

    def test_id_that_is_like_none_of_the_taxonomy(self, root, put):
        (problem,) = self.cause(root, put, "id: power_brake", "id: xyzzy")
        assert problem.endswith(" in the taxonomy; add it under taxonomy: in DIR/knowledge/*.yaml")

    def test_unknown_signal_in_a_test(self, root, put):
        old = "given: {throttle_reasons: 128}"
        (problem,) = self.cause(root, put, old, "given: {throttle_reason: 128}")
        assert problem.startswith("rules/causes/power/power_brake.yaml:16:")
        assert problem.endswith(
            "unknown signal 'throttle_reason'; did you mean 'throttle_reasons'?"
        )

    def test_reading_that_is_none(self, root, put):
        old = "given: {throttle_reasons: 128}"
        (problem,) = self.cause(root, put, old, "given: {throttle_reasons: {was: 1, now: 2}}")
        assert "'throttle_reasons': is no reading; write a number" in problem

    def test_pattern_without_anything_true(self, root, put):
        (problem,) = self.cause(root, put, "all: [brake_bit]", "none: [brake_bit]")
        assert problem.endswith("a pattern needs at least one symptom in 'all' or 'any'")

    def test_wrong_expectation(self, root, put):
        rule = RULES["rules/symptoms/power/cap_bit.yaml"].replace(
            "expect: unknown", "expect: unkown"
        )
        put({"rules/symptoms/power/cap_bit.yaml": rule})
        (problem,) = problems(root)
        assert problem.endswith(
            "'expect' must be one of true, false, unknown; found the text 'unkown';"
            " did you mean 'unknown'?"
        )

    @pytest.mark.parametrize("text", ["for: 5 minutes", "for: 5"])
    def test_duration(self, root, put, text):
        rule = RULES["rules/symptoms/power/cap_bit.yaml"].replace(
            "threshold:", f"{text}\nthreshold:"
        )
        put({"rules/symptoms/power/cap_bit.yaml": rule})
        (problem,) = problems(root)
        assert problem.startswith("rules/symptoms/power/cap_bit.yaml:7:6: 'for' ")

    def test_causes_that_need_each_other(self, root, put):
        put(
            {
                f"rules/causes/power/{one}.yaml": RULES[f"rules/causes/power/{one}.yaml"].replace(
                    "all: [", f"all: [cause/{other}, "
                )
                for one, other in (("power_brake", "power_bound"), ("power_bound", "power_brake"))
            }
        )
        assert problems(root) == [
            (
                "rules/causes/power/power_bound.yaml:7:3: causes need each other in a circle:"
                " power_bound -> power_brake -> power_bound; take one of these references out"
            )
        ]

    def test_effect_of_itself(self, root, put):
        assert self.cause(root, put, "says:", "effects: [power_brake]\nsays:") == [
            (
                "rules/causes/power/power_brake.yaml:10:10: causes are effects of each other in a circle:"
                " power_brake -> power_brake; take one of these references out"
            )
        ]

    def test_rule_outside_of_its_folders(self, root, put):
        put({"rules/power_brake.yaml": "id: x\n"})
        assert problems(root) == [
            "rules/power_brake.yaml:1:1: a rule file must lie under symptoms/ or causes/; move it there"
        ]

    def test_condition_with_unknown_signal(self, root, put):
        text = RULES["rules/symptoms/power/cap_bit.yaml"].replace(
            'has(throttle_reasons, "sw_power_cap")', "sm_clok < 100"
        )
        put({"rules/symptoms/power/cap_bit.yaml": text})
        (problem,) = problems(root)
        assert problem.startswith("rules/symptoms/power/cap_bit.yaml:6:7: ")
        assert "sm_clok" in problem
        assert "sm_clock" in problem


class TestOverlays:
    def test_knowledge_entry_is_replaced_and_added(self, root, overlay):
        entry = (
            "taxonomy:\n  - {id: power_bound, class: limit, scope: gpu, title: ours, is: ours}\n"
        )
        more = "  - {id: site_cap, class: limit, scope: gpu, title: site cap, is: our cap}\n"
        mine = overlay({"knowledge/t.yaml": entry + more})
        catalogue = load_from(root, [mine])
        assert list(catalogue.taxonomy) == ["power_brake", "power_bound", "straggler", "site_cap"]
        assert catalogue.taxonomy["power_bound"].title == "ours"
        assert catalogue.causes["power_bound"].class_ is Class.LIMIT
        assert catalogue.origins["taxonomy/power_bound"] == f"{mine}/knowledge/t.yaml"

    def test_rule_is_replaced_whole(self, root, overlay):
        text = CAUSE.format(id="power_brake", severity="low", symptom="cap_bit", mask=4)
        mine = overlay({"rules/causes/site/power_brake.yaml": text})
        catalogue = load_from(root, [mine])
        assert catalogue.causes["power_brake"].severity is Severity.LOW
        assert catalogue.origins["rule/power_brake"] == f"{mine}/rules/causes/site/power_brake.yaml"
        assert catalogue.hash != load_from(root).hash

    def test_rule_is_added(self, root, overlay):
        mine = overlay(
            {
                "rules/symptoms/site/both.yaml": SYMPTOM.format(
                    id="both", bit="sw_power_cap", mask=4
                ),
                "rules/causes/site/straggler.yaml": CAUSE.format(
                    id="straggler", severity="low", symptom="both", mask=4
                ),
            }
        )
        assert "straggler" in load_from(root, [mine]).causes

    def test_later_overlay_wins(self, root, overlay, tmp_path):
        mine = overlay({"rules/causes/x/power_brake.yaml": "id: power_brake\ndisabled: true\n"})
        other = tmp_path / "other"
        (other / "rules/causes/x").mkdir(parents=True)
        text = CAUSE.format(id="power_brake", severity="low", symptom="cap_bit", mask=4)
        (other / "rules/causes/x/power_brake.yaml").write_text(text)
        assert "power_brake" not in load_from(root, [other, mine]).causes
        assert "power_brake" in load_from(root, [mine, other]).causes

    def test_disabled_cause(self, root, overlay):
        mine = overlay({"rules/causes/x/power_brake.yaml": "id: power_brake\ndisabled: true\n"})
        catalogue = load_from(root, [mine])
        assert list(catalogue.causes) == ["power_bound"]
        assert (
            catalogue.origins["disabled/rule/power_brake"]
            == f"{mine}/rules/causes/x/power_brake.yaml"
        )

    def test_disabled_symptom_takes_along_what_needs_it(self, root, put, overlay):
        two = RULES["rules/causes/power/power_bound.yaml"].replace(
            "explains:", "  - any: [brake_bit, cap_bit]\n    confidence: likely\nexplains:"
        )
        put({"rules/causes/power/power_bound.yaml": two})
        mine = overlay({"rules/symptoms/x/brake_bit.yaml": "id: brake_bit\ndisabled: true\n"})
        catalogue = load_from(root, [mine])
        assert list(catalogue.causes) == ["power_bound"]
        assert [p.refs for p in catalogue.causes["power_bound"].patterns] == [
            ("cap_bit",),
            ("cap_bit",),
        ]
        assert "disabled/rule/power_brake" in catalogue.origins

    def test_disabling_what_is_not_there(self, root, overlay):
        mine = overlay({"rules/causes/x/b.yaml": "id: power_brak\ndisabled: true\n"})
        assert problems(root, [mine]) == [
            (
                f"{mine}/rules/causes/x/b.yaml:1:5: there is no rule 'power_brak' in causes to disable;"
                " did you mean 'power_brake'?"
            )
        ]

    def test_unknown_concern(self, root, overlay):
        mine = overlay({"knowledge/s.yaml": "signal: []\n"})
        assert problems(root, [mine]) == [
            f"{mine}/knowledge/s.yaml:1:1: unknown concern 'signal'; did you mean 'signals'?"
        ]

    def test_folder_that_is_none(self, root, tmp_path):
        with pytest.raises(UsageError, match="no folder"):
            load_from(root, [tmp_path / "nowhere"])

    def test_folder_with_something_else(self, root, tmp_path):
        with pytest.raises(UsageError, match="neither knowledge/ nor rules/"):
            load_from(root, [tmp_path])

    def test_base_is_not_changed_by_an_overlay(self, root, overlay):
        before = load_from(root)
        load_from(root, [overlay({"rules/causes/x/p.yaml": "id: power_brake\ndisabled: true\n"})])
        assert load_from(root).causes.keys() == before.causes.keys()


def test_packaged_catalogue_loads():
    catalogue = load_catalogue()
    assert catalogue.causes.keys() <= catalogue.taxonomy.keys()
    for symptom in catalogue.symptoms.values():
        assert symptom.when_place.file == catalogue.origins[f"symptom/{symptom.id}"]


def test_an_overlay_that_may_not_be_entered(tmp_path, monkeypatch):
    def forbidden(_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(tmp_path), "is_dir", forbidden)
    with pytest.raises(UsageError, match="cannot be read: Permission denied; check"):
        check_overlay(tmp_path)
