"""A broker, its cluster and its addresses.

Source: `BrokerData`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rmqfast.remoting.protocol.json_object import JsonObject

#: Id of a master; slaves have higher ids.
MASTER_ID = 0
#: Limit of addresses read for one broker.
MAX_ADDRESSES = 1000


@dataclass(slots=True)
class BrokerData:
    """A master and its slaves. `addresses` are `ip:port` by broker id; `cluster` is from the first registration."""

    cluster: str
    broker_name: str
    addresses: dict[int, str] = field(default_factory=dict)

    @classmethod
    def from_json(cls, members: JsonObject) -> BrokerData:
        """Parses a broker in a route. Ids may be strings. Raises `ResponseError` for a malformed object."""
        addresses = members.object("brokerAddrs")
        return cls(
            cluster=members.optional_text("cluster") or "",
            broker_name=members.text("brokerName"),
            addresses={} if addresses is None else addresses.texts_by_number(most=MAX_ADDRESSES),
        )

    def to_json(self) -> dict[str, Any]:
        return {"brokerAddrs": self.addresses, "brokerName": self.broker_name, "cluster": self.cluster}
