"""Adds and removes the namespace of topics and groups: `ns%name`.

Source: `NamespaceUtil`.
"""

from __future__ import annotations

RETRY_PREFIX = "%RETRY%"
DLQ_PREFIX = "%DLQ%"
_SEPARATOR = "%"
#: Names that are the same in all namespaces.
_SYSTEM_TOPICS = frozenset(
    {
        "TBW102",
        "SCHEDULE_TOPIC_XXXX",
        "BenchmarkTest",
        "RMQ_SYS_TRANS_HALF_TOPIC",
        "RMQ_SYS_TRACE_TOPIC",
        "RMQ_SYS_TRANS_OP_HALF_TOPIC",
        "TRANS_CHECK_MAX_TIME_TOPIC",
        "SELF_TEST_TOPIC",
        "OFFSET_MOVED_EVENT",
    }
)
_SYSTEM_TOPIC_PREFIX = "rmq_sys_"
_SYSTEM_GROUP_PREFIX = "CID_RMQ_SYS_"


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
    if not namespace or not resource or _is_system(resource) or _has(namespace, resource):
        return resource
    prefix, name = _cut(resource)
    return f"{prefix}{namespace}{_SEPARATOR}{name}"


def unwrap(namespace: str, resource: str) -> str:
    """The name of a topic or group as its user knows it.

    Example:
        >>> unwrap("ns", "ns%t"), unwrap("ns", "%RETRY%ns%g"), unwrap("ns", "other%t"), unwrap("", "ns%t")
        ('t', '%RETRY%g', 'other%t', 'ns%t')

    Source: `NamespaceUtil.withoutNamespace`.
    """
    if not namespace or not resource:
        return resource
    prefix, name = _cut(resource)
    return prefix + name.removeprefix(f"{namespace}{_SEPARATOR}")


def without_namespace(resource: str) -> str:
    """The name of a topic or group without its namespace, whichever that is.

    Example:
        >>> without_namespace("ns%t"), without_namespace("%RETRY%ns%g"), without_namespace("%RETRY%g")
        ('t', '%RETRY%g', '%RETRY%g')

    Source: `NamespaceUtil.withoutNamespace` of one argument.
    """
    if _is_system(resource):
        return resource
    prefix, name = _cut(resource)
    namespace, separator, bare = name.partition(_SEPARATOR)
    return prefix + bare if separator and namespace else resource


def wrap_group_and_retry(namespace: str, group: str) -> str:
    """The retry topic of a group.

    Source: `NamespaceUtil.wrapNamespaceAndRetry`.
    """
    return RETRY_PREFIX + wrap(namespace, group)


def _has(namespace: str, resource: str) -> bool:
    return _cut(resource)[1].startswith(f"{namespace}{_SEPARATOR}")


def _cut(resource: str) -> tuple[str, str]:
    """Splits the prefix of retry and dead-letter topics off."""
    for prefix in (RETRY_PREFIX, DLQ_PREFIX):
        if resource.startswith(prefix):
            return prefix, resource[len(prefix) :]
    return "", resource


def _is_system(resource: str) -> bool:
    return resource in _SYSTEM_TOPICS or resource.startswith((_SYSTEM_TOPIC_PREFIX, _SYSTEM_GROUP_PREFIX))
