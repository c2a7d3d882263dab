"""Targets as people type them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import UsageError
from engine.model import Kind
from engine.topology import parse_target


@pytest.mark.parametrize(
    "text",
    [
        "node-3:5",
        "gpu 5 on node-3",
        "node-3 gpu5",
        "node-3/gpu-5",
        "GPU5@node-3",
        "gpu 5 of host node-3",
        "  node-3:5 ",
    ],
)
def test_one_gpu_has_many_spellings(text):
    target = parse_target(text)
    assert (target.kind, target.host, target.gpu) == (Kind.GPU, "node-3", 5)


def test_a_number_above_63_is_the_port_of_an_exporter():
    target = parse_target("node-3:9400")
    assert (target.kind, target.host, target.gpu) == (Kind.NODE, "node-3", None)
    assert parse_target("node-3:63").gpu == 63
    assert parse_target("node-3:64").kind is Kind.NODE


@pytest.mark.parametrize(
    ("text", "kind", "fields"),
    [
        ("GPU-3A4F", Kind.GPU, {"uuid": "GPU-3a4f"}),
        ("gpu-3aee3597-e367-4fa6-afb7-33020d47171b", Kind.GPU, {"host": None}),
        ("gpu-a17", Kind.NODE, {"host": "gpu-a17"}),
        ("gpu01", Kind.NODE, {"host": "gpu01", "gpu": None}),
        ("gpu01:3", Kind.GPU, {"host": "gpu01", "gpu": 3}),
        ("MIG-1b2c", Kind.GPU, {"mig": "MIG-1b2c"}),
        ("node-3", Kind.NODE, {"host": "node-3"}),
        ("10.0.4.9:3", Kind.GPU, {"host": "10.0.4.9", "gpu": 3}),
        ("[fe80::1]:3", Kind.GPU, {"host": "[fe80::1]", "gpu": 3}),
        ("gpu 5", Kind.GPU, {"host": None, "gpu": 5}),
        ("pod/ml/train-7", Kind.POD, {"namespace": "ml", "pod": "train-7"}),
        ("job/8812", Kind.JOB, {"job": "8812"}),
        ("job/8812/rank/58", Kind.RANK, {"job": "8812", "rank": 58}),
        (
            "svc/meta-llama/Llama-3#a",
            Kind.SERVICE,
            {"service": "meta-llama/Llama-3", "instance": "a"},
        ),
        ("job/llama 3 pretrain", Kind.JOB, {"job": "llama 3 pretrain"}),
        ("job/llama 3 pretrain/rank/7", Kind.RANK, {"job": "llama 3 pretrain", "rank": 7}),
        ("job/llama%203%2fbase", Kind.JOB, {"job": "llama 3/base"}),
        ("job/100%", Kind.JOB, {"job": "100%"}),
        ("job/a%2541", Kind.JOB, {"job": "a%41"}),
        ('"job/llama 3"', Kind.JOB, {"job": "llama 3"}),
        ("svc/a%23b#node-1:8000", Kind.SERVICE, {"service": "a#b", "instance": "node-1:8000"}),
        ("fs/mnt/data", Kind.FILESYSTEM, {"mount": "/mnt/data"}),
        ("fleet", Kind.FLEET, {}),
        ("east::node-3:5", Kind.GPU, {"cluster": "east", "host": "node-3", "gpu": 5}),
    ],
)
def test_every_form_of_the_grammar(text, kind, fields):
    target = parse_target(text)
    assert target.kind is kind
    assert {name: getattr(target, name) for name in fields} == fields


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "pod/ml",
        "job/",
        "node 3!",
        "x" * 600,
        "::node-3",
        "svc/",
        "svc/#a",
        "job/a%00b",
        "job/%20",
        "node-3:\uff15",
        "node-\u0663",
        "gpu \u0665 on node-3",
    ],
)
def test_what_is_no_target_is_refused_in_one_line(text):
    with pytest.raises(UsageError) as error:
        parse_target(text)
    assert "\n" not in error.value.one_line()
    assert "node-3:5" in error.value.hint


@given(st.text(max_size=80))
def test_any_text_is_a_target_or_a_usage_error(text):
    try:
        target = parse_target(text)
    except UsageError:
        return
    assert target.gpu is None or 0 <= target.gpu <= 63


@pytest.mark.parametrize(
    ("text", "models"),
    [
        ("svc/a", (("a", None),)),
        ("svc/a#b", (("a#b", None), ("a", "b"))),
        ("svc/a#b#c", (("a#b#c", None), ("a#b", "c"), ("a", "b#c"))),
        ("node-3", ()),
    ],
)
def test_a_number_sign_may_belong_to_the_model(text, models):
    assert parse_target(text).models == models


def test_the_longest_model_that_there_is_is_meant():
    target = parse_target("svc/a#b#c").among({"a", "a#b"})
    assert (target.service, target.instance) == ("a#b", "c")
    target = parse_target("svc/a#b").among({"z"})
    assert (target.service, target.instance) == ("a", "b")
