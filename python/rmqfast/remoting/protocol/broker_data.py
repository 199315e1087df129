"""A broker, its cluster and its addresses.

Source: `BrokerData`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rmqfast.remoting.protocol.json_object import JsonObject

#: The id of a master; all others are slaves.
MASTER_ID = 0
#: Addresses of one broker that are read.
MAX_ADDRESSES = 1000


@dataclass(slots=True)
class BrokerData:
    """A broker: a master and its slaves.

    Attributes:
        cluster: The cluster of its first registration.
        addresses: `ip:port` by broker id.
    """

    cluster: str
    broker_name: str
    addresses: dict[int, str] = field(default_factory=dict)

    @classmethod
    def from_json(cls, members: JsonObject) -> BrokerData:
        """Parses the object of a route; ids may be texts.

        Raises:
            ResponseError: A member of another type, or too many addresses.
        """
        addresses = members.object("brokerAddrs")
        return cls(
            cluster=members.optional_text("cluster") or "",
            broker_name=members.text("brokerName"),
            addresses={} if addresses is None else addresses.texts_by_number(most=MAX_ADDRESSES),
        )

    def to_json(self) -> dict[str, Any]:
        return {"brokerAddrs": self.addresses, "brokerName": self.broker_name, "cluster": self.cluster}
