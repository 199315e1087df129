"""Messages whose body is said to be compressed, and does not decompress: a broker looks into none."""

from __future__ import annotations

from rmqfast.remoting import RemotingClient, RequestCode

_COMPRESSED = "1"
_FIELDS = {"a": "torn", "c": "TBW102", "d": "1", "e": "0", "f": _COMPRESSED, "g": "1", "h": "0", "j": "0", "k": "false"}


def send_torn(broker: str, topic: str, properties: dict[str, str] | None = None) -> None:
    """Stores one at queue 0 of a topic.

    Args:
        broker: `host:port`.
        topic: The topic, which is there.
        properties: Of the message.
    """
    text = "\x02".join(f"{name}\x01{value}" for name, value in (properties or {}).items())
    with RemotingClient(broker) as client:
        client.ask(RequestCode.SEND_MESSAGE_V2, _FIELDS | {"b": topic, "i": text}, b"no zlib")
