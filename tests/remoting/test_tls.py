"""TLS of the server and the client, against each other and against OpenSSL."""

from __future__ import annotations

import logging
import shutil
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rmqfast.errors import (
    ArgumentError,
    ChannelClosedError,
    RmqError,
    TlsError,
    TlsFileError,
)
from rmqfast.remoting import Channel, RemotingClient, RemotingServer, Response, ServerOptions, TlsMode, TlsOptions
from tests.broker.certificates import Authority, KeyPair
from tests.waiting import PATIENCE, until

#: Request 7 without fields and body, opaque 3, and how its answer begins: after two lengths.
HEADER = b'{"code":7,"flag":0,"language":"JAVA","opaque":3,"serializeTypeCurrentRPC":"JSON","version":401}'
FRAME = (4 + len(HEADER)).to_bytes(4, "big") + len(HEADER).to_bytes(4, "big") + HEADER


def of(pair: KeyPair, **more: object) -> TlsOptions:
    return TlsOptions(certificate=pair.certificate, key=pair.key, **more)  # type: ignore[arg-type]


@contextmanager
def serving(
    tls: TlsOptions | None, max_handshake_time: float = PATIENCE, closed: Callable[[Channel], None] | None = None
) -> Iterator[str]:
    options = ServerOptions(tls=tls, max_handshake_time=max_handshake_time)
    with RemotingServer(
        {7: lambda request: Response(body=request.body[::-1])}, options=options, closed=closed
    ) as server:
        yield server.listen("127.0.0.1:0")


def ask(address: str, tls: TlsOptions | None = None, body: bytes = b"abc") -> bytes:
    with RemotingClient(address, tls=tls) as client:
        return client.request(7, body=body).body


def ask_with_openssl(address: str, context: ssl.SSLContext) -> str:
    """Asks with Python's own TLS; the version that was agreed on."""
    host, _, port = address.rpartition(":")
    with (
        socket.create_connection((host, int(port)), timeout=PATIENCE) as plain,
        context.wrap_socket(plain, server_hostname=host) as secure,
    ):
        secure.sendall(FRAME)
        assert b'"opaque":3' in secure.recv(1000)
        return secure.version() or ""


def test_each_mode_takes_what_it_says(authority: Authority) -> None:
    trusting = TlsOptions(trust=authority.certificate)
    for mode in TlsMode:
        with serving(of(authority.server(), mode=mode)) as address:
            if mode is TlsMode.ENFORCING:
                with pytest.raises(ChannelClosedError):
                    ask(address)
            else:
                assert ask(address) == b"cba"
            if mode is TlsMode.DISABLED:
                with pytest.raises(TlsError, match=r"the peer closed the connection|reset"):
                    ask(address, trusting)
            else:
                assert ask(address, trusting, b"x" * 1_000_000) == b"x" * 1_000_000


def test_openssl_takes_the_server_in_both_versions(authority: Authority, caplog: pytest.LogCaptureFixture) -> None:
    context = ssl.create_default_context(cafile=authority.certificate)
    ended: list[Channel] = []
    with serving(of(authority.server()), closed=ended.append) as address:
        assert ask_with_openssl(address, context) == "TLSv1.3"
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        assert ask_with_openssl(address, context) == "TLSv1.2"
        until(lambda: len(ended) == 2)  # what is wrong with an end is logged before
    assert caplog.text == "", "a client that goes away without TLS's last word is no reason to warn"


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_what_is_older_is_refused(authority: Authority) -> None:
    context = ssl.create_default_context(cafile=authority.certificate)
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    with serving(of(authority.server())) as address, pytest.raises((ssl.SSLError, ConnectionError)):
        ask_with_openssl(address, context)


def test_both_sides_show_who_they_are(authority: Authority, stranger: Authority) -> None:
    required = of(authority.server(), trust=authority.certificate, client_auth="require")
    with serving(required) as address:
        assert ask(address, of(authority.client(), trust=authority.certificate)) == b"cba"
        context = ssl.create_default_context(cafile=authority.certificate)
        context.load_cert_chain(authority.client().certificate, authority.client().key)
        assert ask_with_openssl(address, context) == "TLSv1.3"
        # the server says so after the client has sent, and may have closed the connection by then
        with pytest.raises((TlsError, ChannelClosedError)):
            ask(address, TlsOptions(trust=authority.certificate))
        with pytest.raises((TlsError, ChannelClosedError)):
            ask(address, of(stranger.client(), trust=authority.certificate))


def test_files_that_are_of_no_use_are_named_by_both_sides(authority: Authority, tmp_path: Path) -> None:
    good, other = authority.server(), authority.client("other")
    ended = authority.server("ended", days=-1)
    cases = [
        (of(KeyPair(tmp_path / "no.pem", good.key)), r"no\.pem: certificate: expected a file that can be read, got No"),
        (of(KeyPair(good.certificate, other.key)), r"other\.key: key: expected the key of the certificate, got keys"),
        (of(ended), r"ended\.pem: certificate: expected a certificate that is valid now, got one that expired at 20"),
    ]
    for tls, match in cases:
        with pytest.raises(TlsFileError, match=match) as raised, serving(tls):
            pass
        assert isinstance(raised.value, RmqError)
        client = of(KeyPair(Path(str(tls.certificate)), Path(str(tls.key))), trust=authority.certificate)
        with serving(of(good)) as address, pytest.raises(TlsFileError, match=match):
            ask(address, client)


def test_a_client_knows_whom_it_trusts() -> None:
    with pytest.raises(ArgumentError, match="trust: expected a file of authorities, or verify=False, got None"):
        RemotingClient("127.0.0.1:1", tls=TlsOptions())


def test_changed_certificates_that_are_of_no_use_are_logged_and_change_nothing(
    authority: Authority, stranger: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pair, own = KeyPair(tmp_path / "s.pem", tmp_path / "s.key"), authority.server()
    shutil.copy(own.certificate, pair.certificate)
    shutil.copy(own.key, pair.key)
    with serving(of(pair)) as address:
        shutil.copy(stranger.server().certificate, tmp_path / "new.pem")
        # at once: half of a file would be told of, too
        (tmp_path / "new.pem").replace(pair.certificate)
        # The handler keeps a record before it writes its text, so a wait for records alone can see no text.
        until(lambda: "expected the key of the certificate" in caplog.text, lambda: caplog.text)
        assert [record.levelno for record in caplog.records] == [logging.WARNING]
        assert ask(address, TlsOptions(trust=authority.certificate)) == b"cba"
