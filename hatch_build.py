"""Build hook: the wheel ships the compiled index, so that the first question is already fast."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class IndexHook(BuildHookInterface):  # type: ignore[type-arg, misc]
    """Compiles knowledge and rules before the wheel is put together."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the index into the package and name its files for the wheel."""
        if version == "editable":
            return  # a checkout changes: its index is kept per user, keyed by content
        sys.path.insert(0, self.root)
        try:
            from engine.catalogue import write_packaged_index  # noqa: PLC0415

            written = write_packaged_index()
        finally:
            sys.path.remove(self.root)
        for path in written:
            inside = str(Path(path).relative_to(self.root))
            build_data["force_include"][str(path)] = inside
