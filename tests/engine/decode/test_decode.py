"""Decoding, on the packaged knowledge: what each form of input is read as."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.decode import decode
from engine.errors import GpuwhyError, UsageError
from engine.model import Decode, to_json
from tests.support import packaged


def kinds(found: Decode) -> list[str]:
    return [candidate.kind for candidate in found.candidates]


def ids(found: Decode) -> list[str]:
    return [item.id for item in found.candidates[0].items]


class TestMasks:
    @pytest.mark.parametrize(
        ("text", "reasons"),
        [
            ("0x48", ["hw_slowdown", "hw_thermal"]),
            ("0X48", ["hw_slowdown", "hw_thermal"]),
            ("0x0000000000000048", ["hw_slowdown", "hw_thermal"]),
            ("throttle 0x48", ["hw_slowdown", "hw_thermal"]),
            ("Throttle: 72", ["hw_slowdown", "hw_thermal"]),
            ("throttle_reasons=136", ["hw_slowdown", "hw_power_brake"]),
            ("clocks_event_reasons 0x4", ["sw_power_cap"]),
            ("clocks_throttle_reasons.active, 0x0000000000000001", ["gpu_idle"]),
            ("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS 136.0", ["hw_slowdown", "hw_power_brake"]),
            ("DCGM_FI_DEV_CLOCKS_EVENT_REASONS 7.2e+01", ["hw_slowdown", "hw_thermal"]),
            (
                "0x1ff",
                [
                    "gpu_idle",
                    "clocks_setting",
                    "sw_power_cap",
                    "hw_slowdown",
                    "sync_boost",
                    "sw_thermal",
                    "hw_thermal",
                    "hw_power_brake",
                    "display_clocks",
                ],
            ),
        ],
    )
    def test_bits_are_named_lowest_first(self, catalogue, text, reasons):
        found = decode(text, catalogue)
        assert kinds(found)[0] == "throttle"
        assert ids(found) == reasons
        assert found.candidates[0].unknown_bits == 0

    def test_an_item_says_what_to_do(self, catalogue):
        brake = decode("throttle 0x80", catalogue).candidates[0].items[0]
        assert (brake.id, brake.bit, brake.class_, brake.severity) == (
            "hw_power_brake",
            128,
            "fault",
            "critical",
        )
        assert brake.meaning
        assert brake.action

    def test_wrong_tables_are_corrected(self, catalogue):
        (candidate,) = decode("throttle 0x4", catalogue).candidates
        assert any("HW_POWER_BRAKE" in text and "0x80" in text for text in candidate.errata)
        assert candidate.sources

    def test_unknown_bits_are_counted_and_not_named(self, catalogue):
        (candidate,) = decode("throttle 0x100000000008", catalogue).candidates
        assert [item.id for item in candidate.items] == ["hw_slowdown"]
        assert candidate.unknown_bits == 0x100000000000

    def test_no_bit(self, catalogue):
        (candidate,) = decode("throttle 0", catalogue).candidates
        assert (candidate.value, candidate.items, candidate.unknown_bits) == (0, (), 0)


class TestBareNumbers:
    @pytest.mark.parametrize(
        ("text", "first"),
        [
            ("1", "throttle"),
            ("4", "throttle"),
            ("72", "throttle"),
            ("136", "throttle"),
            ("0x4f", "throttle"),
            ("13", "xid"),
            ("31", "xid"),
            ("48", "xid"),
            ("63", "xid"),
            ("64", "xid"),
            ("74", "xid"),
            ("79", "xid"),
            ("95", "xid"),
            ("119", "xid"),
            ("140", "xid"),
            ("154", "xid"),
            ("203", "dcgm_field"),
            ("252", "dcgm_field"),
            ("1003", "dcgm_field"),
            ("12028", "sxid"),
            ("9223372036854775794", "dcgm_blank"),
            ("9.223372036854776e18", "dcgm_blank"),
            ("2147483632", "dcgm_blank"),
            ("140737488355328", "dcgm_blank"),
        ],
    )
    def test_most_likely_reading_comes_first(self, catalogue, text, first):
        assert kinds(decode(text, catalogue))[0] == first

    def test_every_reading_is_given(self, catalogue):
        assert kinds(decode("72", catalogue)) == ["throttle", "xid", "dcgm_field"]
        assert kinds(decode("79", catalogue)) == ["xid", "throttle"]
        assert kinds(decode("150", catalogue)) == ["xid", "dcgm_field", "throttle"]

    def test_number_that_is_nothing_else_is_a_mask_of_unknown_bits(self, catalogue):
        (candidate,) = decode("16777216", catalogue).candidates
        assert (candidate.items, candidate.unknown_bits) == ((), 16777216)

    def test_blank_is_no_mask(self, catalogue):
        (candidate,) = decode("9223372036854775794", catalogue).candidates
        assert candidate.items[0].id == "DCGM_INT64_NOT_SUPPORTED"


class TestCodes:
    @pytest.mark.parametrize(
        "text",
        ["xid 79", "XID: 79", "Xid=79", "xid79", "xid-79", "xid (79)", "NVRM: Xid 79,", "xid 0x4f",
         "DCGM_FI_DEV_XID_ERRORS 79"],
    )  # fmt: skip
    def test_xid(self, catalogue, text):
        found = decode(text, catalogue)
        assert kinds(found) == ["xid"]
        assert ids(found) == ["79"]

    def test_xid_says_what_the_vendor_asks_for(self, catalogue):
        item = decode("xid 79", catalogue).candidates[0].items[0]
        assert item.severity == "critical"
        assert item.extra["taxonomy"] == "gpu_off_bus"
        assert item.extra["resolution"] == "RESTART_BM"
        assert "Restart" in item.extra["resolution_asks"]
        assert [74] in [chain["xids"] for chain in item.extra["followed_by"]]

    def test_wrong_hand_out_is_corrected(self, catalogue):
        (candidate,) = decode("xid 79", catalogue).candidates
        assert "requiring reset" in candidate.errata[0]

    def test_sxid(self, catalogue):
        (candidate,) = decode("sxid 12028", catalogue).candidates
        assert (candidate.kind, candidate.items[0].id) == ("sxid", "12028")
        assert candidate.items[0].unit is None

    @pytest.mark.parametrize(
        ("text", "near"),
        [
            ("xid 177", ("xid 176", "xid 185")),
            ("xid 9999", ("xid 185",)),
            ("sxid 5", ("sxid 10001",)),
        ],
    )
    def test_what_nobody_documented_is_not_invented(self, catalogue, text, near):
        found = decode(text, catalogue)
        (item,) = found.candidates[0].items
        assert item.name == "not documented"
        assert (item.severity, item.action, item.class_) == (None, None, None)
        assert found.nearest == near


class TestFieldsAndNames:
    @pytest.mark.parametrize(
        "text",
        ["field 1003", "Field: 1003", "dcgm 1003", "dcgm field 1003", "DCGM_FI_PROF_SM_OCCUPANCY",
         "DCGM_FI_PROF_SM_OCCUPANCY_RATIO", "sm_occupancy", "SM_OCCUPANCY", "sm occupancy",
         "PROF_SM_OCCUPANCY", "field sm_occupancy"],
    )  # fmt: skip
    def test_field_by_number_or_any_name(self, catalogue, text):
        found = decode(text, catalogue)
        assert kinds(found)[0] == "dcgm_field"
        item = found.candidates[0].items[0]
        assert (item.id, item.name, item.unit) == ("1003", "DCGM_FI_PROF_SM_OCCUPANCY", "ratio")
        assert item.extra["default_exported"] is False
        assert item.extra["csv"].startswith("DCGM_FI_PROF_SM_OCCUPANCY, gauge,")

    def test_field_that_a_hand_out_confuses(self, catalogue):
        (candidate,) = decode("field 1003", catalogue).candidates
        assert any("1002" in text for text in candidate.errata)

    def test_metric_with_its_signal(self, catalogue):
        found = decode("nvidia_smi_clocks_current_sm_clock_hz", catalogue)
        assert kinds(found) == ["metric"]
        item = found.candidates[0].items[0]
        assert (item.id, item.unit, item.extra["signal_unit"], item.extra["scale"]) == (
            "sm_clock",
            "Hz",
            "MHz",
            1e-6,
        )

    def test_name_with_two_meanings_gives_both(self, catalogue):
        assert kinds(decode("sm_active", catalogue)) == ["dcgm_field", "metric"]

    def test_kind_before_a_name_narrows(self, catalogue):
        assert kinds(decode("metric sm_active", catalogue)) == ["metric"]

    def test_metric_of_several_signals_gives_all(self, catalogue):
        found = decode("DCGM_EXP_CLOCK_EVENTS_COUNT", catalogue)
        items = found.candidates[-1].items
        assert "hw_thermal_events" in [item.id for item in items]
        assert {"clock_event": "hw_thermal"} in [item.extra.get("match") for item in items]

    @pytest.mark.parametrize(
        ("text", "kind", "item"),
        [
            ("hw_slowdown", "throttle", "hw_slowdown"),
            ("HW Slowdown", "throttle", "hw_slowdown"),
            ("nvmlClocksThrottleReasonHwThermalSlowdown", "throttle", "hw_thermal"),
            ("nvmlClocksEventReasonSwPowerCap", "throttle", "sw_power_cap"),
            ("DCGM_CLOCKS_EVENT_REASON_HW_POWER_BRAKE", "throttle", "hw_power_brake"),
            ("clocks_event_reasons.sw_power_cap", "throttle", "sw_power_cap"),
            ("ROBUST_CHANNEL_GPU_HAS_FALLEN_OFF_THE_BUS", "xid", "79"),
            ("NVSWITCH_ERR_HW_NPORT_EGRESS_PRIVRSPERR", "sxid", "12028"),
            ("NVIDIA H100 80GB HBM3", "gpu_model", "h100_sxm"),
            ("h100_sxm", "gpu_model", "h100_sxm"),
            ("gpu h100 sxm", "gpu_model", "h100_sxm"),
            ("gpu_off_bus", "cause", "gpu_off_bus"),
            ("cause power_brake", "cause", "power_brake"),
        ],
    )
    def test_names(self, catalogue, text, kind, item):
        found = decode(text, catalogue)
        assert kinds(found)[0] == kind
        assert ids(found) == [item]

    def test_nearest_names_when_nothing_is_called_so(self, catalogue):
        found = decode("DCGM_FI_DEV_SM_CLOK", catalogue)
        assert found.candidates == ()
        assert found.nearest[0] == "DCGM_FI_DEV_SM_CLOCK"
        assert decode("h100", catalogue).nearest[:3] == ("h100_nvl", "h100_sxm", "h100_pcie")
        assert decode("cause powr_brake", catalogue).nearest[0] == "power_brake"


class TestBadInput:
    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "nothing to decode; for example: gpuwhy decode 0x48"),
            (" \t\n", "nothing to decode; for example: gpuwhy decode 0x48"),
            ("xid 79 48", ("decode takes one thing, and 'xid 79 48' holds 2 numbers; ask for each"
             " alone; to read a log line use: gpuwhy read")),
            ("-1", "'-1' is negative; masks, codes and fields count from 0"),
            ("xid -79", "'-79' is negative; masks, codes and fields count from 0"),
            ("0.5", "'0.5' is no whole number; masks, codes and fields are whole numbers"),
            ("1e999", "'1e999' is no whole number; masks, codes and fields are whole numbers"),
            ("0x", "'0x' is no hexadecimal number; write it as in 0x48"),
            ("0xZZ", "'0xZZ' is no hexadecimal number; write it as in 0x48"),
            ("0x1ffffffffffffffff", "'0x1ffffffffffffffff' has more than 64 bits; masks have at most 64"),
            ("9" * 60, f"'{'9' * 60}' has more than 64 bits; masks have at most 64"),
            ("x" * 10_000, ("decode takes one thing, not 10000 characters; to read a log or other"
             " pasted text use: gpuwhy read")),
        ],
    )  # fmt: skip
    def test_one_clear_line(self, catalogue, text, message):
        with pytest.raises(UsageError) as caught:
            decode(text, catalogue)
        assert caught.value.one_line() == message

    @pytest.mark.parametrize(
        "text", ["xid ٧٩", "７２", "none", "nan", "inf", "💥", "a\x00b", "field"]
    )
    def test_what_is_no_thing_has_no_candidates(self, catalogue, text):
        assert decode(text, catalogue).candidates == ()

    def test_input_is_shown_clean(self, catalogue):
        assert decode(" xid\x1b \n79 ", catalogue).input == "xid 79"


CATALOGUE = packaged.knowledge()

WORDS = st.one_of(
    st.text(max_size=20),
    st.integers().map(str),
    st.integers(0, 2**64).map(hex),
    st.floats().map(str),
    st.sampled_from(
        ["xid", "sxid", "field", "throttle", "gpu", "metric", "cause", "0x", ":", "=", "-"]
    ),
    st.sampled_from(sorted(CATALOGUE.spellings)),
)


@settings(deadline=None)  # a busy machine is no fault
@given(st.lists(WORDS, max_size=4).map(" ".join))
@example("0x")
@example("٣")
@example("1_0")
@example("+5")
@example("xid ²")
def test_any_text_gives_an_answer_or_one_of_our_errors(text):
    try:
        found = decode(text, CATALOGUE)
    except GpuwhyError as error:
        answer = error.one_line()
        assert "\n" not in answer
    else:
        assert to_json(found)["schema"] == "gpuwhy/decode/1"
        assert decode(text, CATALOGUE) == found


@given(st.integers(0, 2**64 - 1))
def test_a_mask_is_the_sum_of_its_bits(value):
    found = decode(f"throttle {value:#x}", CATALOGUE).candidates[0]
    bits = [item.bit for item in found.items]
    assert bits == sorted(bits)
    assert sum(bits) + found.unknown_bits == value
