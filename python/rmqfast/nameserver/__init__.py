"""A name server: knows the brokers and their topics, and answers requests for routes."""

from rmqfast.nameserver.config import NamesrvConfig
from rmqfast.nameserver.kv_config import KVConfigManager
from rmqfast.nameserver.route_info import RouteInfoManager
from rmqfast.nameserver.server import NameServer

__all__ = ["KVConfigManager", "NameServer", "NamesrvConfig", "RouteInfoManager"]
