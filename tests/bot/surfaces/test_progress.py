from __future__ import annotations

import io
import sys
import time

import pytest

from bot.surfaces.cli import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def fast(monkeypatch):
    monkeypatch.setattr(progress, "_DELAY_S", 0.05)
    monkeypatch.setenv("TERM", "xterm")


def test_slow_work_shows_a_bar_and_takes_it_away(fast, monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with progress.Progress("reading [red]x") as bar:
        for done in range(8):
            bar(done, 8)
            time.sleep(0.05)
    assert "reading [red]x" in screen.getvalue()


def test_quick_work_shows_nothing(monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with progress.Progress("reading") as bar:
        bar(1, 2)
    assert screen.getvalue() == ""


def test_a_pipe_shows_nothing(fast, monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    with progress.Progress("reading"):
        time.sleep(0.15)
    assert screen.getvalue() == ""
