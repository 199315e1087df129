"""Certificates for tests of TLS, made anew for each run by the `openssl` of the path."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

NAMES = "DNS:localhost,IP:127.0.0.1,IP:::1"


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its key, both PEM.

    Attributes:
        certificate: Path of the certificate.
        key: Path of the key, PKCS#8 without a password.
    """

    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Authority:
    """Who signs: what trusts its certificate trusts what it has signed.

    Attributes:
        folder: Where everything lies.
        pair: Its own certificate and key.
    """

    folder: Path
    pair: KeyPair

    @property
    def certificate(self) -> Path:
        """What others have to trust."""
        return self.pair.certificate

    def server(self, name: str = "server", *, names: str = NAMES, days: int = 2) -> KeyPair:
        """A certificate of a server.

        Args:
            name: Of its files, and its common name.
            names: What it is valid for; this machine's loopback unless given.
            days: How long it is valid; negative for one that has ended.
        """
        return self._signed(name, f"subjectAltName={names}\nextendedKeyUsage=serverAuth\n", days)

    def client(self, name: str = "client", *, days: int = 2) -> KeyPair:
        """A certificate of a client; the arguments as for a server."""
        return self._signed(name, "extendedKeyUsage=clientAuth\n", days)

    def _signed(self, name: str, extensions: str, days: int) -> KeyPair:
        pair = KeyPair(self.folder / f"{name}.pem", self.folder / f"{name}.key")
        request, config = self.folder / f"{name}.csr", self.folder / f"{name}.ext"
        config.write_text(f"basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\n{extensions}")
        _make_key(pair.key)
        _openssl("req", "-new", "-key", pair.key, "-subj", f"/CN={name}", "-out", request)
        ca = ("-CA", self.pair.certificate, "-CAkey", self.pair.key, "-CAcreateserial")
        _openssl("x509", "-req", "-in", request, *ca, "-days", days, "-extfile", config, "-out", pair.certificate)
        return pair


def make_authority(folder: Path, name: str = "ca") -> Authority:
    """A new authority.

    Args:
        folder: Where its files and those of what it signs go.
        name: Of its files, and its common name; another one in the same folder needs another name.
    """
    folder.mkdir(parents=True, exist_ok=True)
    pair = KeyPair(folder / f"{name}.pem", folder / f"{name}.key")
    _make_key(pair.key)
    extensions = ("basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign,cRLSign")
    added = [argument for extension in extensions for argument in ("-addext", extension)]
    _openssl("req", "-x509", "-key", pair.key, "-subj", f"/CN={name}", "-days", 2, *added, "-out", pair.certificate)
    return Authority(folder, pair)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Whom both sides of a test trust."""
    return make_authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Whom nobody trusts."""
    return make_authority(tmp_path_factory.mktemp("stranger"), "stranger")


def _make_key(path: Path) -> None:
    _openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", path)


def _openssl(*arguments: object) -> None:
    command = ["openssl", *map(str, arguments)]
    # no settings of the machine: the extensions here are all there are
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "OPENSSL_CONF": os.devnull})
