"""Sentences and commands: names from labels are untrusted text."""

import shlex
from dataclasses import replace

import numpy as np
import pytest

from engine.catalogue.types import NextStep
from engine.diagnosis.words import sentence, step
from engine.model import Entity, Kind
from engine.samples import Column, Frame
from tests.support import packaged

GPU = Entity(Kind.GPU, "node-3:5", host="node-3", gpu=5, pci="00000000:1a:00.0")
LSPCI = NextStep("look at {host}", "ssh {host} lspci -vv -s {pci}")


@pytest.fixture(scope="module")
def catalogue():
    return packaged.catalogue()


def frame(entity, **readings):
    columns = {
        name: Column(np.array([60.0]), np.array([value]), np.array([0, 1]))
        for name, value in readings.items()
    }
    return Frame([entity], 60.0, timed=True, columns=columns, attrs={}, host=np.array([0]))


def test_a_command_names_the_target(catalogue):
    made = step(LSPCI, frame(GPU), 0, catalogue)
    assert made.command == "ssh node-3 lspci -vv -s 00000000:1a:00.0"
    assert made.argv == tuple(shlex.split(made.command))


@pytest.mark.parametrize(
    "name",
    [
        "-oProxyCommand=touch /tmp/x",
        "--help",
        "x; rm -rf /",
        "$(id)",
        "`id`",
        "a'b",
        "a\nb",
        "\x1b[31mred",
        "\u202eevil",
        "n\u00f6de",
        "root@node-3",
        "h" * 300,
        " ",
        None,
    ],
)
def test_a_command_takes_no_name_that_a_second_shell_or_ssh_would_read(name, catalogue):
    """ssh joins its words for the shell of the host, so quoting them here protects nothing."""
    entity = replace(GPU, host=name, pci=name)
    made = step(LSPCI, frame(entity), 0, catalogue)
    assert made.command == "ssh HOST lspci -vv -s BUS_ID"
    assert made.argv == ("ssh", "HOST", "lspci", "-vv", "-s", "BUS_ID")


def test_a_reading_that_is_not_there_leaves_a_placeholder_in_a_command(catalogue):
    template = NextStep("set it", "nvidia-smi -pl {power_limit_default.value}")
    given = frame(GPU, power_limit_default=700.0)
    assert step(template, given, 0, catalogue).command == "nvidia-smi -pl 700"
    missing = step(template, frame(GPU), 0, catalogue)
    assert missing.command == "nvidia-smi -pl POWER_LIMIT_DEFAULT"


def test_a_sentence_keeps_names_as_they_are(catalogue):
    entity = replace(GPU, host="x; rm -rf /")
    assert sentence("{host} is hot", frame(entity), 0, catalogue) == "x; rm -rf / is hot"
    assert sentence("{pod} is hot", frame(entity), 0, catalogue) == "an unknown pod is hot"
