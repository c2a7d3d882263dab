"""What tests of captures share: targets, journals, real nsys, a real ssh server."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from subprocess import Popen

import pytest

from engine.capture import CaptureRequest, CaptureSettings, Phase, Via
from engine.model import Entity, Kind
from tests.support import nsys as nsys_support
from tests.support.sshd import start_sshd

_numbers = count(1)


def gpu(host="node-3", index=5):
    return Entity(Kind.GPU, f"{host}:{index}", host=host, gpu=index)


def node(host="node-3"):
    return Entity(Kind.NODE, host, host=host)


def request_for(target, seconds=0.5, profiler="nsys"):
    return CaptureRequest(f"test-{next(_numbers)}", profiler, target, seconds)


@dataclass
class MemoryJournal:
    """Keeps entries; ``before`` is called with each one first, and may raise."""

    entries: list = field(default_factory=list)
    before: object = None

    async def append(self, entry):
        if self.before:
            self.before(entry)
        self.entries.append(entry)

    def steps(self, phase=Phase.DONE):
        return [entry.step for entry in self.entries if entry.phase is phase]


@pytest.fixture
def journal():
    return MemoryJournal()


@dataclass(frozen=True)
class Program:
    """A program under ``nsys launch``: its GPU (by the session's name) and its launcher."""

    target: Entity
    session: str
    process: Popen[bytes]
    until: Path

    def end(self):
        self.until.touch()

    @property
    def runs(self):
        return self.process.poll() is None


@pytest.fixture(scope="session")
def nsys():
    return nsys_support.installed()


@pytest.fixture
def program(nsys, tmp_path):
    """A program under ``nsys launch``, in a session of a name of its own."""
    index = nsys.free_gpu()
    session = f"gpuwhy-{index}"
    until = tmp_path / "until"
    with nsys.armed(session, until=until) as process:
        yield Program(gpu(index=index), session, process, until)


@pytest.fixture(scope="session")
def sshd(tmp_path_factory):
    with start_sshd(tmp_path_factory.mktemp("sshd")) as server:
        yield server


@pytest.fixture
def local(nsys, tmp_path):
    """Settings that reach real nsys on this machine."""
    return CaptureSettings(
        folder=tmp_path / "captures",
        via=Via.LOCAL,
        target_folder=str(tmp_path),
        max_file_bytes=100_000_000,
    )


@pytest.fixture
def pretended(tmp_path):
    return nsys_support.pretend(tmp_path)


@pytest.fixture
def pretending(pretended, tmp_path):
    """Settings that reach the stand-in for nsys."""
    return CaptureSettings(
        folder=tmp_path / "captures",
        via=Via.LOCAL,
        nsys=str(pretended.command),
        importer=str(pretended.folder / "QdstrmImporter"),
        target_folder=str(tmp_path),
        max_file_bytes=1_000_000,
        command_timeout_s=5.0,
        stop_timeout_s=5.0,
        import_timeout_s=5.0,
        fetch_timeout_s=5.0,
    )
