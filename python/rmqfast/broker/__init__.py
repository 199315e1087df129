"""The control plane of a broker: what happens per client, per group or per minute.

What happens per message is the data plane, in Rust.
"""

from rmqfast.broker.broker import Broker
from rmqfast.broker.configuration.config import BrokerConfig, ConfigFile

__all__ = ["Broker", "BrokerConfig", "ConfigFile"]
