"""A connection to one server, for a broker's requests to its name servers.

Source: `NettyRemotingClient`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from rmqfast._native import RemotingClient as NativeClient
from rmqfast.errors import ResponseError
from rmqfast.remoting.codes import ResponseCode
from rmqfast.remoting.request import Response, response_of
from rmqfast.remoting.tls import TlsOptions


class RemotingClient:
    """A client of one server. Threads may share it, but only one request is in flight at a time.

    After an error, the next request opens a new connection. Timeouts are in seconds. Without `tls`, the connection is
    plain; `ArgumentError` if the TLS options name no trusted authorities.

    Example:
        >>> from rmqfast.remoting import RemotingServer, Response, ServerOptions, TlsOptions
        >>> options = ServerOptions(tls=TlsOptions(mode="enforcing"))
        >>> with RemotingServer({7: lambda request: Response(body=request.body)}, options=options) as server:
        ...     with RemotingClient(server.listen("127.0.0.1:0"), tls=TlsOptions(verify=False)) as client:
        ...         client.request(7, body=b"secret").body
        b'secret'
    """

    def __init__(self, address: str, *, timeout: float = 3.0, tls: TlsOptions | None = None) -> None:
        if tls is not None:
            tls.check_trust()
        self.address = address
        self._timeout = timeout
        self._tls = tls
        self._native: NativeClient | None = None

    def request(
        self, code: int, ext_fields: Mapping[str, str] | None = None, body: bytes = b"", *, timeout: float | None = None
    ) -> Response:
        """Sends a request and returns the answer, with any response code.

        Raises:
            RemotingConnectError: No server listens at the address.
            RemotingTimeoutError: No answer came in time.
            ChannelClosedError: The connection ended.
            TlsError: The two sides do not agree on TLS.
            TlsFileError: A certificate or a key cannot be used.
            RemotingProtocolError: The received bytes are not an answer.
        """
        wait = self._timeout if timeout is None else timeout
        # Put back only after an answer. On a connection that failed, the late answer to this request could be taken for
        # the answer to the next one.
        native, self._native = self._native or self._connect(wait), None
        answer = response_of(native.request(code, dict(ext_fields or {}), body, wait))
        self._native = native
        return answer

    def ask(self, code: int, ext_fields: Mapping[str, str] | None = None, body: bytes = b"") -> Response:
        """Sends a request and returns the answer. Raises `ResponseError` unless the response code is SUCCESS."""
        answer = self.request(code, ext_fields, body)
        if answer.code != ResponseCode.SUCCESS:
            raise ResponseError(answer.code, answer.remark or "")
        return answer

    def send_oneway(self, code: int, ext_fields: Mapping[str, str] | None = None, body: bytes = b"") -> None:
        """Sends a request that gets no answer. Raises the same errors as `request`, but none for a missing answer."""
        native, self._native = self._native or self._connect(self._timeout), None
        native.send_oneway(code, dict(ext_fields or {}), body, self._timeout)
        self._native = native

    def close(self) -> None:
        self._native = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _connect(self, timeout: float) -> NativeClient:
        return NativeClient.connect(self.address, timeout, self._tls)
