"""RocketMQ's remoting protocol: codes, headers, requests and answers, and both sides of a connection."""

from rmqfast.remoting.callbacks import OnDone
from rmqfast.remoting.channel import Channel
from rmqfast.remoting.client import RemotingClient
from rmqfast.remoting.connections import Connections, Sign
from rmqfast.remoting.header import Header
from rmqfast.remoting.processor import Again, Later, Processor, process
from rmqfast.remoting.request import Request
from rmqfast.remoting.request_code import RequestCode
from rmqfast.remoting.response import VERSION, Response
from rmqfast.remoting.response_code import ResponseCode
from rmqfast.remoting.server import RemotingServer
from rmqfast.remoting.server_options import ServerOptions
from rmqfast.remoting.tls_options import ClientAuth, TlsMode, TlsOptions

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
