"""The limits of a name server for the length of names, and for the number of names.

RocketMQ has no such limits, so that any client can fill the memory of its name server. Names are never used as paths
here, but are sent to clients, which may use them as paths.
"""

from __future__ import annotations

from rmqfast.errors import ResponseError
from rmqfast.remoting import ResponseCode

#: Characters of the name of a cluster or broker, of an address, of a key and of a namespace.
MAX_NAME = 255
#: Number of broker names.
MAX_BROKERS = 1_000
#: Number of clusters.
MAX_CLUSTERS = 256
#: Addresses of one broker name: a master and its slaves.
MAX_ADDRESSES = 64
#: Addresses of brokers heard in the last two minutes.
MAX_LIVE = 10_000
#: Pairs of topic and broker.
MAX_QUEUE_DATA = 500_000
#: Filter servers of one broker.
MAX_FILTER_SERVERS = 64
#: Characters of all namespaces, keys and values together, plus 64 per entry.
MAX_KV_CHARACTERS = 4 << 20
#: Bytes of a registration's body after inflating it.
MAX_REGISTRATION = 16 << 20


def is_name(text: str, *, most: int = MAX_NAME) -> bool:
    r"""Whether a string can be a name: at least one character, all printable, no path separator.

    Example:
        >>> [is_name(text) for text in ("%RETRY%group", "broker.a", "../x", "", "a\nb")]
        [True, True, False, False, False]
    """
    return 0 < len(text) <= most and text.isprintable() and not set("/\\") & set(text) and text not in {".", ".."}


def checked_name(field: str, text: str) -> str:
    """Returns a name unchanged. Raises `ResponseError` if it is illegal."""
    if not is_name(text):
        raise ResponseError(ResponseCode.SYSTEM_ERROR, f"the header field {field} is no name: {text[:40]!r}")
    return text
