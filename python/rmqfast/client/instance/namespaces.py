"""Adds and removes the namespace of topics and groups: `ns%name`.

Source: `NamespaceUtil`.
"""

from __future__ import annotations

from rmqfast import _native

RETRY_PREFIX = "%RETRY%"


def wrap(namespace: str, resource: str) -> str:
    """The name of a topic or group as brokers know it.

    Args:
        namespace: Empty for none.
        resource: The name, which may have the namespace already.

    Example:
        >>> wrap("ns", "t"), wrap("ns", "ns%t"), wrap("ns", "%RETRY%g"), wrap("", "t"), wrap("ns", "TBW102")
        ('ns%t', 'ns%t', '%RETRY%ns%g', 't', 'TBW102')

    Source: `NamespaceUtil.wrapNamespace`.
    """
    return _native.wrap_namespace(namespace, resource)


def unwrap(namespace: str, resource: str) -> str:
    """The name of a topic or group as its user knows it.

    Example:
        >>> unwrap("ns", "ns%t"), unwrap("ns", "%RETRY%ns%g"), unwrap("ns", "other%t"), unwrap("", "ns%t")
        ('t', '%RETRY%g', 'other%t', 'ns%t')

    Source: `NamespaceUtil.withoutNamespace`.
    """
    return _native.unwrap_namespace(namespace, resource)


def without_namespace(resource: str) -> str:
    """The name of a topic or group without its namespace, whichever that is.

    Example:
        >>> without_namespace("ns%t"), without_namespace("%RETRY%ns%g"), without_namespace("%RETRY%g")
        ('t', '%RETRY%g', '%RETRY%g')

    Source: `NamespaceUtil.withoutNamespace` of one argument.
    """
    return _native.without_namespace(resource)
