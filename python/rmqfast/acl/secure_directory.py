"""Creates a directory with the certificates, accounts and configuration of a secured cluster.

Source: `AclUtils`, `TlsSystemConfig`, `MQAdminStartup`.
"""

from __future__ import annotations

import os
import secrets
import socket
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rmqfast._native import make_certificates
from rmqfast.errors import ArgumentError
from rmqfast.paths import exists, list_directory

_YEARS = timedelta(days=10 * 365)
_ADMINISTRATOR, _APPLICATION = "administrator", "application"
_MARK = "conf/plain_acl.yml"


@dataclass(frozen=True, slots=True)
class SecureDirectory:
    """A directory with the files of a secured cluster; only its owner can read it.

    | file | content |
    |---|---|
    | `conf/plain_acl.yml` | the accounts `administrator` and `application`, for the servers |
    | `conf/tools.yml` | the administrator's account, for `mqadmin` with `ROCKETMQ_HOME=DIR` |
    | `ca.pem`, `ca.key` | the authority; clients trust `ca.pem`, the key is needed only to make certificates |
    | `server.pem`, `server.key` | the servers' certificate |
    | `broker.conf` | the configuration of `rmqfast server` |
    | `client.properties` | for Java clients: `-Dtls.enable=true -Dtls.config.file=DIR/client.properties` |
    | `rmqfast.toml` | profiles `default` and `administrator` of the command line; `XDG_CONFIG_HOME=DIR` finds it |
    """

    path: Path

    @classmethod
    def at(cls, path: Path, *, address: str = "127.0.0.1", name_server_port: int = 9876) -> SecureDirectory:
        """Returns the directory at a path, which is created if missing or empty. An existing directory is not changed.

        Args:
            path: The directory.
            address: Address of the servers for clients. Beyond loopback, servers listen at all addresses.
            name_server_port: Port of the name server, for the profiles.

        Raises:
            ArgumentError: The directory has other files.
        """
        path = path.absolute()
        if exists(path / _MARK):
            return cls(path)
        if exists(path) and list_directory(path):
            raise ArgumentError(f"{path}: expected {_MARK} in it, or an empty directory to make it in, got neither")
        directory = cls(path)
        directory._make(address, name_server_port)
        return directory

    @property
    def config(self) -> Path:
        return self.path / "broker.conf"

    @property
    def profiles(self) -> Path:
        return self.path / "rmqfast.toml"

    def _make(self, address: str, name_server_port: int) -> None:
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path.chmod(0o700)
        (self.path / "conf").mkdir(mode=0o700)
        secret = {name: secrets.token_hex(24) for name in (_ADMINISTRATOR, _APPLICATION)}
        self._make_certificates(address)
        self._write("broker.conf", _broker_conf(self.path, address))
        self._write("client.properties", _client_properties(self.path))
        self._write("rmqfast.toml", _profiles(secret, self.path, f"{address}:{name_server_port}"))
        self._write("conf/tools.yml", _account(_ADMINISTRATOR, secret))
        self._write(_MARK, _plain_acl(secret))  # last, since this file marks the directory as complete

    def _make_certificates(self, address: str) -> None:
        today = datetime.now(UTC)
        # A day earlier, since a client's clock may be behind.
        begin, end = today - timedelta(days=1), today + _YEARS
        # A dict drops duplicates and keeps the order.
        names = dict.fromkeys(["localhost", "127.0.0.1", "::1", address, socket.gethostname()])
        texts = make_certificates(list(names), (begin.year, begin.month, begin.day), (end.year, end.month, end.day))
        for name, text in zip(("ca.pem", "ca.key", "server.pem", "server.key"), texts, strict=True):
            self._write(name, text)

    def _write(self, name: str, text: str) -> None:
        """Creates a file that only its owner can read."""
        # The mode is set at creation, before the secret is written.
        descriptor = os.open(self.path / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)


def _client_properties(path: Path) -> str:
    # In test mode, its default, a Java client accepts every certificate.
    return f"tls.test.mode.enable=false\ntls.client.authServer=true\ntls.client.trustCertPath={path}/ca.pem\n"


def _account(name: str, secret: dict[str, str]) -> str:
    return f"accessKey: {name}\nsecretKey: {secret[name]}\n"


def _plain_acl(secret: dict[str, str]) -> str:
    return (
        "accounts:\n"
        f"- accessKey: {_ADMINISTRATOR}\n  secretKey: {secret[_ADMINISTRATOR]}\n  admin: true\n"
        f"- accessKey: {_APPLICATION}\n  secretKey: {secret[_APPLICATION]}\n  admin: false\n"
        "  defaultTopicPerm: PUB|SUB\n  defaultGroupPerm: SUB\n"
    )


def _broker_conf(path: Path, address: str) -> str:
    from rmqfast.remoting.loopback import is_loopback

    lines = {
        "aclEnable": "true",
        "rocketmqHome": str(path),
        "tls.server.mode": "enforcing",
        "tls.server.certPath": f"{path}/server.pem",
        "tls.server.keyPath": f"{path}/server.key",
        "tls.client.trustCertPath": f"{path}/ca.pem",
        "useTLS": "true",
        "storePathRootDir": f"{path}/store",
    }
    if not is_loopback(address):
        lines |= {"bindAddress": "0.0.0.0", "brokerIP1": address}  # noqa: S104 - with accounts and TLS
    return "".join(f"{key}={value}\n" for key, value in lines.items())


def _profiles(secret: dict[str, str], path: Path, name_server: str) -> str:
    accounts = {"default": _APPLICATION, _ADMINISTRATOR: _ADMINISTRATOR}
    return "\n".join(
        f'[profiles.{profile}]\nname_server = "{name_server}"\naccess_key = "{name}"\n'
        f'secret_key = "{secret[name]}"\ntls_trust = "{path}/ca.pem"\n'
        for profile, name in accounts.items()
    )
