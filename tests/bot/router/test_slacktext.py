"""Slack's forms, undone."""

import pytest

from bot.router.slacktext import plain, read_message


@pytest.mark.parametrize(
    ("sent", "typed"),
    [
        ("a &lt; b &amp;&amp; c &gt; d", "a < b && c > d"),
        ("&amp;lt;", "&lt;"),
        ("&lt;!channel&gt;", "<!channel>"),
        ("<!channel> x", " x"),
        ("<!here|here> x", " x"),
        ("<!subteam^S1|@gpu> x", " x"),
        ("<@U123> x", " x"),
        ("<@U123|bob> x", " x"),
        ("<#C123|gpu-help>", "#gpu-help"),
        ("<http://node-3|node-3>", "node-3"),
        ("<http://node-3:9400/metrics>", "http://node-3:9400/metrics"),
        ("<mailto:GPU5@node-3.lab|GPU5@node-3.lab>", "GPU5@node-3.lab"),
        ("<!date^1392734382^{date}|18 Feb 2014>", "18 Feb 2014"),
        ("a\u00a0b\u200bc\u202ed", "a bcd"),
        ("a\tb\nc", "a\tb\nc"),
        ("a\ue000b\x00c", "ab c"),
        ("a < b", "a < b"),
    ],
)
def test_forms_are_undone(sent, typed):
    assert plain(sent) == typed


@pytest.mark.parametrize(
    ("sent", "prose"),
    [
        ("“a” ‘b’ c’s", "\"a\" 'b' c's"),
        ("why x —window 5m", "why x --window 5m"),
        ("slow — why?", "slow, why?"),
        ("node‑3", "node-3"),
        ("03:00–03:30", "03:00-03:30"),
        ("*bold* _thin_ sw_power_cap *.*", "bold thin sw_power_cap ."),
        ("~gone~ here", "here"),
        ('a=~"n.*",b=~"m.*"', 'a=~"n.*",b=~"m.*"'),
        ("hi :wave: node-3:5", "hi  node-3:5"),
        ("gpu５", "gpu5"),
        ("see ```0x48``` and `x`", "see  `0x48`  and `x`"),
        ("a\n&gt; quoted\nb", "a\n\nb"),
        ("a\n&gt;&gt;&gt; all\nthe rest", "a"),
    ],
)
def test_prose_is_what_would_be_typed_on_a_terminal(sent, prose):
    assert read_message(sent).prose == prose


def test_fences_and_quotations_keep_their_spacing():
    message = read_message("x\n```\n  a\n    b &amp; c\n```\n&gt; one\n&gt; two")
    assert message.fences == ("  a\n    b & c",)
    assert message.quoted == "one\ntwo"
    assert message.prose == "x"


def test_a_fence_that_is_not_closed_goes_to_the_end():
    assert read_message("x ```\na\nb").fences == ("a\nb",)
