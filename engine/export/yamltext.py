"""Plain data as YAML that people read: keys in the given order, long expressions folded."""

from __future__ import annotations

from typing import Any

import yaml

_WIDTH = 110


class _Folded(str):
    """A text written as a folded block: white space may become a line break and back."""

    __slots__ = ()


class _Dumper(yaml.SafeDumper):
    """Writes lists indented and never an alias."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write equal parts out each time."""
        del data
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Indent the items of a list under its key."""
        del indentless
        super().increase_indent(flow, indentless=False)


def _represent(dumper: yaml.SafeDumper, text: _Folded) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style=">")


_Dumper.add_representer(_Folded, _represent)


def folded(text: str) -> str:
    """Mark an expression to be written over several lines if it is long."""
    return _Folded(text) if len(text) > _WIDTH else text


def comment(lines: list[str]) -> str:
    """Return lines as a YAML comment."""
    return "".join(f"# {line}".rstrip() + "\n" for line in lines)


def dump(data: Any) -> str:
    """Return data as YAML text."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=False, width=_WIDTH)
