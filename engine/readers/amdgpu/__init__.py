"""AMD GPUs as the kernel and ROCm's runtime report them: amdgpu and amdkfd lines, ROCr messages.

`line` takes the prefixes off, `forms` knows the messages, `device` keeps what each GPU reported;
`ras`, `fault`, `hang` and `trouble` say what that shows, `rocr` reads the messages of programs.
"""

from __future__ import annotations

from engine.readers.amdgpu.reader import AmdgpuReader
from engine.readers.amdgpu.rocr import RocrReader

__all__ = ["AmdgpuReader", "RocrReader"]
