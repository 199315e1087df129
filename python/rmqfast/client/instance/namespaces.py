"""Adds the namespace to names of topics and groups, as in `ns%name`, and removes it.

Source: `NamespaceUtil`.
"""

from __future__ import annotations

from rmqfast import _native

RETRY_PREFIX = "%RETRY%"


def wrap(namespace: str, resource: str) -> str:
    """Adds the namespace to a topic or group. Returns the name unchanged if `namespace` is empty or already in it."""
    return _native.wrap_namespace(namespace, resource)


def unwrap(namespace: str, resource: str) -> str:
    """Returns a topic or group without the given namespace."""
    return _native.unwrap_namespace(namespace, resource)


def without_namespace(resource: str) -> str:
    """Returns a topic or group without its namespace, whatever that is."""
    return _native.without_namespace(resource)
