"""The control plane of a broker: work that occurs per client, per group or per minute, not per message.

Work per message is done by the data plane, in Rust.
"""

from rmqfast.broker.broker import Broker
from rmqfast.broker.configuration.config import BrokerConfig, ConfigFile

__all__ = ["Broker", "BrokerConfig", "ConfigFile"]
