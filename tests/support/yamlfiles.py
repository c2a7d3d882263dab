"""YAML of test data, read by libyaml where it can: ten times as fast."""

from __future__ import annotations

from typing import Any

import yaml

_FAST = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def parse(text: str | bytes) -> Any:
    """Return what a text holds."""
    try:
        return yaml.load(text, Loader=_FAST)
    except yaml.YAMLError:
        # libyaml refuses some tabs that PyYAML takes; what neither takes is told by PyYAML.
        return yaml.safe_load(text)
