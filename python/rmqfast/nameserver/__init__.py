"""A name server: keeps track of brokers and their topics, and answers routes."""

from rmqfast.nameserver.config import NamesrvConfig
from rmqfast.nameserver.kv_config import KVConfigManager
from rmqfast.nameserver.route_info import RouteInfoManager
from rmqfast.nameserver.server import NameServer

__all__ = ["KVConfigManager", "NameServer", "NamesrvConfig", "RouteInfoManager"]
