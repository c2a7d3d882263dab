"""Frames of stacks as py-spy writes them, and what a process in them does."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from engine.catalogue.types import Catalogue

MAX_FRAMES: Final = 512
_ROOT: Final = re.compile(r"^.*(?:site-packages|dist-packages|lib/python3\.\d{1,2})/")
_FRAME: Final = re.compile(
    r"^(?P<function>.{1,300}?) \((?P<file>[^()]{1,400}?)(?::(?P<line>\d{1,7}))?\)$"
)
# Packages that frames of a program pass through; the standard library is known by its modules.
_PACKAGES: Final = frozenset(
    (
        "accelerate", "aiohttp", "botocore", "click", "cv2", "datasets", "deepspeed", "fsspec",
        "grpc", "h5py", "horovod", "jax", "lightning", "numpy", "nvidia", "pandas", "peft", "PIL",
        "pyarrow", "pytorch_lightning", "ray", "requests", "s3fs", "safetensors", "sglang",
        "tokenizers", "torch", "torchaudio", "torchvision", "tqdm", "transformers", "triton", "trl",
        "urllib3", "vllm", "wandb", "webdataset",
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame: function, file without the place of its package, and line (None: not known)."""

    function: str
    file: str
    line: int | None = None

    @property
    def text(self) -> str:
        """The frame as `StackFrameEntry.match` is compared with it."""
        return f"{self.function} ({self.file}"

    @property
    def shown(self) -> str:
        """The frame for people: ``train_step (train.py:88)``."""
        line = f":{self.line}" if self.line is not None else ""
        return f"{_printable(self.function)} ({_printable(self.file)}{line})"


def frame_of(text: str) -> Frame | None:
    """Return the frame that a text names: ``wait (threading.py:324)``; None if it names none."""
    hit = _FRAME.match(text.strip())
    if hit is None:
        return None
    line = int(hit["line"]) if hit["line"] else None
    return Frame(hit["function"], short_file(hit["file"]), line)


def short_file(path: str) -> str:
    """Return a path from the package on: ``torch/utils/data/dataloader.py``."""
    return _ROOT.sub("", path.replace("\\", "/"))


def own_frame(frames: Sequence[Frame]) -> Frame | None:
    """Return the innermost frame that is the program's own, of frames innermost first."""
    return next((f for f in frames if f.file.endswith((".py", ".pyx")) and _own(f.file)), None)


def _own(file: str) -> bool:
    top = file.lstrip("./").split("/", 1)[0].removesuffix(".py")
    return top not in _PACKAGES and top not in sys.stdlib_module_names and "<frozen" not in file


class Activities:
    """What a stack shows, by the table `stack_frames`."""

    def __init__(self, catalogue: Catalogue) -> None:
        table = catalogue.entries.get("stack_frames", {}).values()
        self._close = [(e, tuple(e["match"])) for e in table if e["role"] != "usual"]
        self._usual = [(e, tuple(e["match"])) for e in table if e["role"] == "usual"]
        self._of = lru_cache(maxsize=8_192)(self._find)

    def of(self, frames: Sequence[Frame]) -> Mapping[str, Any] | None:
        """Return the entry that fits a stack (innermost frame first), None if none does."""
        return self._of(tuple(f.text for f in frames[:MAX_FRAMES]))

    def _find(self, texts: tuple[str, ...]) -> Mapping[str, Any] | None:
        for entries in (self._close, self._usual):
            for text in texts:
                for entry, matches in entries:
                    if any(match in text for match in matches):
                        return entry
        return None


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)[-80:]
