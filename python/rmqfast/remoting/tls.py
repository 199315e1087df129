"""TLS of a server or a client: certificates, trust, and RocketMQ's TLS properties.

RocketMQ reads the properties from the JVM and `/etc/rocketmq/tls.properties`; here, only explicitly named files count.

Source: RocketMQ's `TlsMode`, `tls.server.need.client.auth`, `TlsSystemConfig`, `TlsHelper`,
`TlsHelper.extractTlsConfigFromFile`, `TlsHelper.buildSslContext`, `BrokerStartup`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from rmqfast.errors import ArgumentError
from rmqfast.paths import local_path
from rmqfast.remoting import properties
from rmqfast.remoting.text_file import read_text


class TlsMode(StrEnum):
    """The connections that a server accepts: without TLS only, with and without, or with TLS only."""

    DISABLED = "disabled"
    PERMISSIVE = "permissive"
    ENFORCING = "enforcing"


class ClientAuth(StrEnum):
    """Whether a server asks clients for certificates, and whether it accepts clients without a certificate."""

    NONE = "none"
    OPTIONAL = "optional"
    REQUIRE = "require"


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsOptions:
    """TLS options of a server or a client, for TLS 1.2 and 1.3. All files are PEM.

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


#: Names of all TLS properties.
TLS_KEYS = frozenset(
    {
        "tls.enable",
        "tls.config.file",
        "tls.test.mode.enable",
        "tls.server.mode",
        "tls.server.certPath",
        "tls.server.keyPath",
        "tls.server.keyPassword",
        "tls.server.need.client.auth",
        "tls.server.authClient",
        "tls.server.trustCertPath",
        "tls.client.certPath",
        "tls.client.keyPath",
        "tls.client.keyPassword",
        "tls.client.authServer",
        "tls.client.trustCertPath",
    }
)


def server_tls(values: Mapping[str, str]) -> TlsOptions:
    """Returns the TLS options of a server. Raises `ArgumentError` for illegal or contradictory values.

    As in RocketMQ, a server without settings accepts TLS with a self-signed certificate. Two defaults differ: with a
    configured certificate, the mode is `enforcing`, and clients' certificates are verified unless
    `tls.server.authClient` is `false`.
    """
    settings = _merge_file(values)
    mode = settings.get("tls.server.mode")
    # With TLS off, certificates are not even looked at.
    if mode == TlsMode.DISABLED:
        return TlsOptions(mode=mode)
    certificate, key = settings.get("tls.server.certPath"), settings.get("tls.server.keyPath")
    if _makes_its_own(settings):
        if certificate is not None:
            raise ArgumentError("tls.test.mode.enable=true: expected no tls.server.certPath, since it makes its own")
        return TlsOptions(mode=mode)
    if certificate is None:
        if mode is not None:
            raise ArgumentError("tls.server.certPath: expected a file, or tls.test.mode.enable=true, got none")
        # Without any certificate, there is no TLS to offer.
        return TlsOptions(mode=TlsMode.DISABLED)
    return TlsOptions(
        mode=mode,
        certificate=certificate,
        key=key,
        client_auth=settings.get("tls.server.need.client.auth", ClientAuth.NONE),
        verify=_flag(settings, "tls.server.authClient", default=True),
        trust=settings.get("tls.server.trustCertPath"),
    )


def client_tls(values: Mapping[str, str], *, use_tls: bool = False) -> TlsOptions | None:
    """Returns the TLS options for connecting to servers. `None` for connections without TLS.

    A server that refuses plain connections uses TLS itself unless `tls.enable` is `false`; `use_tls` is another default
    of this key. Servers are verified unless `tls.client.authServer` is `false` or `tls.test.mode.enable` is `true`;
    `ArgumentError` if `tls.client.trustCertPath` is missing then.
    """
    settings = _merge_file(values)
    # Servers of a cluster that refuse plain connections can be reached by its brokers only with TLS.
    enforced = server_tls(values).mode is TlsMode.ENFORCING
    if not _flag(settings, "tls.enable", default=use_tls or enforced):
        return None
    is_test = _flag(settings, "tls.test.mode.enable", default=False)
    verify = _flag(settings, "tls.client.authServer", default=not is_test)
    trust = settings.get("tls.client.trustCertPath")
    if verify and trust is None:
        expected = "expected a file of authorities, or tls.client.authServer=false, or tls.enable=false, got none"
        raise ArgumentError(f"tls.client.trustCertPath: {expected}")
    certificate, key = settings.get("tls.client.certPath"), settings.get("tls.client.keyPath")
    return TlsOptions(certificate=certificate, key=key, trust=trust, verify=verify)


def _merge_file(values: Mapping[str, str]) -> dict[str, str]:
    """Returns the TLS properties that are not empty. Those in the file `tls.config.file` replace those in `values`."""
    file = values.get("tls.config.file", "").strip()
    settings = {**values, **(_read(Path(file)) if file else {})}
    values = {name: settings[name].strip() for name in TLS_KEYS if settings.get(name, "").strip()}
    for name in ("tls.server.keyPassword", "tls.client.keyPassword"):
        if name in values:
            raise ArgumentError(f"{name}: expected none, since keys are read without a password")
    return values


def _read(path: Path) -> dict[str, str]:
    text = read_text(path)
    if text is None:
        raise ArgumentError(f"tls.config.file: expected a file, got {path}, which is not there or empty")
    return properties.loads(text)


def _makes_its_own(values: Mapping[str, str]) -> bool:
    return _flag(values, "tls.test.mode.enable", default="tls.server.certPath" not in values)


def _flag(values: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = values.get(name, str(default)).lower()
    if text not in {"true", "false"}:
        raise ArgumentError(f"{name}: expected true or false, got {text[:40]!r}")
    return text == "true"
