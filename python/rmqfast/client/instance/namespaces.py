"""Adds and removes the namespace of topics and groups: `ns%name`.

Source: `NamespaceUtil`.
"""

from __future__ import annotations

from rmqfast import _native

RETRY_PREFIX = "%RETRY%"


def wrap(namespace: str, resource: str) -> str:
    """The name of a topic or group as brokers know it."""
    return _native.wrap_namespace(namespace, resource)


def unwrap(namespace: str, resource: str) -> str:
    """The name of a topic or group as its user knows it."""
    return _native.unwrap_namespace(namespace, resource)


def without_namespace(resource: str) -> str:
    """The name of a topic or group without its namespace, whichever that is."""
    return _native.without_namespace(resource)
