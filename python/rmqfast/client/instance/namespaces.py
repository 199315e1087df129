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
    """Removes this namespace from a topic or group."""
    return _native.unwrap_namespace(namespace, resource)


def without_namespace(resource: str) -> str:
    """Removes any namespace from a topic or group."""
    return _native.without_namespace(resource)
