"""TLS of a server or a client: its certificate, and which certificates it trusts.

Source: `TlsMode`, `tls.server.need.client.auth`, `TlsSystemConfig`, `TlsHelper`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import StrEnum

from rmqfast.errors import ArgumentError
from rmqfast.paths import local_path


class TlsMode(StrEnum):
    """The connections that a server accepts: only plain ones, plain ones and TLS, or only TLS."""

    DISABLED = "disabled"
    PERMISSIVE = "permissive"
    ENFORCING = "enforcing"


class ClientAuth(StrEnum):
    """Whether a server asks clients for certificates, and whether it accepts clients without one."""

    NONE = "none"
    OPTIONAL = "optional"
    REQUIRE = "require"


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsOptions:
    """TLS 1.2 and 1.3 of one side, a server or a client. All files are PEM.

    A server checks its files twice a second, and uses their new content for new connections. A client reads them for
    each connection.

    Attributes:
        mode: For servers. Default: `enforcing` with a certificate, `permissive` without.
        certificate: Certificate of this side, followed by intermediate authorities. A server without a certificate
            creates a self-signed one, which stops eavesdropping but not man-in-the-middle attacks.
        key: Private key of the certificate, without a password.
        trust: Authorities whose certificates are accepted.
        client_auth: For servers: whether clients must show a certificate.
        verify: Whether to verify the peer's certificate against `trust`; False accepts any certificate.
        check_host: For clients: whether the certificate must be valid for the requested host.

    Raises:
        ArgumentError: A certificate or a key is given without the other, or `trust` is missing.

    Example:
        >>> TlsOptions(certificate="server.pem", key="server.key").mode
        <TlsMode.ENFORCING: 'enforcing'>
        >>> TlsOptions().mode
        <TlsMode.PERMISSIVE: 'permissive'>
        >>> TlsOptions(client_auth="require")
        Traceback (most recent call last):
            ...
        rmqfast.errors.ArgumentError: trust: expected a file of authorities, or verify=False, got None
    """

    mode: TlsMode | str | None = None
    certificate: str | os.PathLike[str] | None = None
    key: str | os.PathLike[str] | None = None
    trust: str | os.PathLike[str] | None = None
    client_auth: ClientAuth | str = ClientAuth.NONE
    verify: bool = True
    check_host: bool = True

    def __post_init__(self) -> None:
        for name in ("certificate", "key", "trust"):
            path = getattr(self, name)
            object.__setattr__(self, name, None if path is None else local_path(path, name))
        if (self.certificate is None) != (self.key is None):
            raise ArgumentError(f"expected a certificate and its key, got {self.certificate} and {self.key}")
        usual = TlsMode.PERMISSIVE if self.certificate is None else TlsMode.ENFORCING
        object.__setattr__(self, "mode", _one_of(TlsMode, "mode", usual if self.mode is None else self.mode))
        object.__setattr__(self, "client_auth", _one_of(ClientAuth, "client_auth", self.client_auth))
        if self.client_auth is not ClientAuth.NONE:
            self.check_trust()

    def check_trust(self) -> None:
        """Raises `ArgumentError` if the options name no authority to trust, which a client needs."""
        if self.verify and self.trust is None:
            raise ArgumentError("trust: expected a file of authorities, or verify=False, got None")


def _one_of(kind: type[StrEnum], name: str, value: str) -> StrEnum:
    try:
        return kind(value)
    except ValueError:
        raise ArgumentError(f"{name}: expected {' or '.join(kind)}, got {value!r}") from None
