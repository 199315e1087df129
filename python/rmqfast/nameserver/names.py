"""Limits of a name server: which names it takes, and how many.

RocketMQ has no such limits: whoever reaches its name server fills its memory. Names are never paths here, but they go
on to clients that may take them for some.
"""

from __future__ import annotations

from rmqfast.errors import ResponseError
from rmqfast.remoting import ResponseCode

#: Characters of the name of a cluster, a broker, of an address, and of a key and its namespace.
MAX_NAME = 255
#: Names of brokers.
MAX_BROKERS = 1_000
#: Clusters.
MAX_CLUSTERS = 256
#: Addresses of one broker name: a master and its slaves.
MAX_ADDRESSES = 64
#: Addresses from which a broker was heard in the last two minutes.
MAX_LIVE = 10_000
#: Topics, counted once for each broker that has them.
MAX_QUEUE_DATA = 500_000
#: Filter servers of one broker.
MAX_FILTER_SERVERS = 64
#: Characters of all namespaces, keys and values together, each entry counted 64 more.
MAX_KV_CHARACTERS = 4 << 20
#: Bytes that the body of a registration may have once it is inflated.
MAX_REGISTRATION = 16 << 20


def is_name(text: str, *, most: int = MAX_NAME) -> bool:
    r"""Returns whether a text is a name: printable characters, at least one, no separator of folders.

    Example:
        >>> [is_name(text) for text in ("%RETRY%group", "broker.a", "../x", "", "a\nb")]
        [True, True, False, False, False]
    """
    return 0 < len(text) <= most and text.isprintable() and not set("/\\") & set(text) and text not in {".", ".."}


def checked_name(field: str, text: str) -> str:
    """Returns a name; refuses a text that is none."""
    if not is_name(text):
        raise ResponseError(ResponseCode.SYSTEM_ERROR, f"the header field {field} is no name: {text[:40]!r}")
    return text
