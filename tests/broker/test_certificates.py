"""The certificates that tests of TLS use are what they should be: Python's own TLS takes and refuses them."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from .certificates import Authority, KeyPair, make_authority


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return make_authority(tmp_path_factory.mktemp("certificates"))


def shake_hands(
    server: KeyPair, trusted: Authority, client: KeyPair | None = None, *, host: str = "127.0.0.1", mutual: bool = False
) -> None:
    """A handshake in memory; raises where one side refuses."""
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(server.certificate, server.key)
    serving.load_verify_locations(trusted.certificate)
    serving.verify_mode = ssl.CERT_REQUIRED if mutual else ssl.CERT_NONE
    asking = ssl.create_default_context(cafile=trusted.certificate)
    if client is not None:
        asking.load_cert_chain(client.certificate, client.key)
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [serving.wrap_bio(there, back, server_side=True), asking.wrap_bio(back, there, server_hostname=host)]
    for _ in range(4):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    ends[1].write(b"hello")
    assert ends[0].read(5) == b"hello"


def test_a_server_is_trusted_by_those_who_trust_its_authority(authority: Authority) -> None:
    for host in ("127.0.0.1", "localhost", "::1"):
        shake_hands(authority.server(), authority, host=host)


def test_both_sides_may_show_a_certificate(authority: Authority) -> None:
    shake_hands(authority.server(), authority, authority.client(), mutual=True)
    with pytest.raises(ssl.SSLError):
        shake_hands(authority.server(), authority, mutual=True)


def test_a_server_of_another_authority_is_refused(authority: Authority, tmp_path: Path) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(make_authority(tmp_path).server(), authority)


def test_a_client_of_another_authority_is_refused(authority: Authority, tmp_path: Path) -> None:
    with pytest.raises(ssl.SSLError):
        shake_hands(authority.server(), authority, make_authority(tmp_path).client(), mutual=True)


def test_a_certificate_for_another_name_is_refused(authority: Authority) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        shake_hands(authority.server("elsewhere", names="DNS:elsewhere"), authority)


def test_a_certificate_that_has_ended_is_refused(authority: Authority) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
        shake_hands(authority.server("ended", days=-1), authority)


def test_a_certificate_of_a_client_is_none_of_a_server(authority: Authority) -> None:
    with pytest.raises(ssl.SSLError):
        shake_hands(authority.client("masked"), authority)
