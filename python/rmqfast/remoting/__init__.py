"""RocketMQ's remoting protocol: codes, headers, requests and answers, and both sides of a connection."""

from rmqfast.remoting.client import RemotingClient
from rmqfast.remoting.codes import RequestCode, ResponseCode
from rmqfast.remoting.connections import Connections, OnDone, Sign
from rmqfast.remoting.header import Header
from rmqfast.remoting.processor import Again, Later, Processor, process
from rmqfast.remoting.request import VERSION, Channel, Request, Response
from rmqfast.remoting.server import RemotingServer, ServerOptions
from rmqfast.remoting.tls import ClientAuth, TlsMode, TlsOptions

__all__ = [
    "VERSION",
    "Again",
    "Channel",
    "ClientAuth",
    "Connections",
    "Header",
    "Later",
    "OnDone",
    "Processor",
    "RemotingClient",
    "RemotingServer",
    "Request",
    "RequestCode",
    "Response",
    "ResponseCode",
    "ServerOptions",
    "Sign",
    "TlsMode",
    "TlsOptions",
    "process",
]
