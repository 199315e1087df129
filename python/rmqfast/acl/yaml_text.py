"""Reads and writes YAML that may be hostile: only plain values, up to a limit of size and depth.

Source: `AclUtils.getYamlDataObject`, `AclUtils.writeDataObject`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

from rmqfast.errors import ArgumentError
from rmqfast.extras import import_extra

if TYPE_CHECKING:
    from yaml import SafeLoader
    from yaml.nodes import Node

MAX_BYTES = 1 << 20
MAX_NODES = 50_000
MAX_SCALAR = 4096

# Errors of PyYAML's constructors for values such as `!!int ""`, `!!timestamp x` or 2020-99-99.
_MALFORMED = (RecursionError, ValueError, ArithmeticError, LookupError, TypeError, AttributeError)


def load(data: bytes) -> dict[str, Any]:
    r"""Parses YAML whose top level is a mapping. An empty file is an empty mapping.

    Raises:
        ArgumentError: Not a YAML mapping, too deep, or more than 50,000 values after expanding aliases.
        MissingExtraError: PyYAML is not installed.
    """
    yaml = _library()
    if len(data) > MAX_BYTES:
        raise ArgumentError(f"expected at most {MAX_BYTES} bytes of YAML, got {len(data)}")
    try:
        loader = _loader()(data)
        try:
            root = loader.get_single_node()
            if root is None:
                return {}
            # Aliases of aliases ("billion laughs") make a short file expand to huge values.
            _weigh(root, {})
            value = loader.construct_document(root)
        finally:
            loader.dispose()
    except (yaml.YAMLError, *_MALFORMED) as error:
        raise ArgumentError(f"no YAML of plain values: {error}") from error
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ArgumentError(f"expected a mapping, got a value of type {type(value).__name__}")
    return value


def dump(members: Mapping[str, Any]) -> bytes:
    """Returns a mapping as YAML, in the given order, each key on a line of its own."""
    text = _library().safe_dump(dict(members), sort_keys=False, allow_unicode=True, default_flow_style=False)
    return str(text).encode()


@cache
def _loader() -> type[SafeLoader]:
    import yaml

    class BoundedLoader(yaml.SafeLoader):
        """Stops at too many values while parsing, before objects are built for all of them."""

        nodes = 0

        def compose_node(self, parent: Node | None, index: int) -> Node | None:
            self.nodes += 1
            if self.nodes > MAX_NODES:
                raise ValueError(f"more than {MAX_NODES} values")
            return super().compose_node(parent, index)

    return BoundedLoader


def _weigh(node: Node, weights: dict[int, int]) -> int:
    """Returns the number of values in a node, counted as if all its aliases were expanded."""
    # An alias refers to the same node object.
    weight_so_far = weights.get(id(node))
    if weight_so_far is not None:
        return weight_so_far
    weights[id(node)] = MAX_NODES + 1  # too heavy until known, so that a node containing itself is refused
    weight = 1
    if isinstance(node.value, str):
        if len(node.value) > MAX_SCALAR:
            raise ValueError(f"a text of more than {MAX_SCALAR} characters")
    else:
        for entry in node.value:
            weight += sum(_weigh(part, weights) for part in (entry if isinstance(entry, tuple) else (entry,)))
    if weight > MAX_NODES:
        raise ValueError(f"more than {MAX_NODES} values")
    weights[id(node)] = weight
    return weight


def _library() -> ModuleType:
    library: ModuleType = import_extra("yaml", "broker", library="PyYAML")
    return library
