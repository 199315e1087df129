"""Signs requests with an account, as ACL 1.0 requires.

The signature covers the body and the values of the header fields, concatenated without their names. It covers neither
code nor time, so anyone who reads the connection can replay a request; TLS prevents that.

Source: `AclClientRPCHook`, `AclSigner`, `AclUtils.combineRequestContent`, `StreamTypeRPCHook`, `SessionCredentials`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from rmqfast import _native

ACCESS_KEY = "AccessKey"
SIGNATURE = "Signature"
SECURITY_TOKEN = "SecurityToken"  # noqa: S105  # the name of a field
#: Set in queries by unique key. Clients of 4.9 sign this field though its broker ignores it; 5.x brokers include it.
UNIQUE_KEY_QUERY = "_UNIQUE_KEY_QUERY"
#: Fields that pull consumers add to each request before signing.
STREAM_FIELDS: Mapping[str, str] = {"ReqT": "0"}


class Signer(Protocol):
    def signed_fields(self, ext_fields: Mapping[str, str], body: bytes = b"") -> dict[str, str]:
        """Returns the fields to send: those of the request, the account, and the signature."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """Access key and secret key of a client.

    Attributes:
        access_key: Name of the account.
        secret_key: Known only to the client and the broker.
        security_token: Sent and signed if set.

    Example:
        >>> Credentials("RocketMQ", "12345678").signed_fields({}, b"{}")["Signature"]
        'pq0tPL2lAz7bhIfEGHu4hhut1Yw='
    """

    access_key: str
    secret_key: str = field(repr=False)
    security_token: str | None = field(default=None, repr=False)

    def signed_fields(self, ext_fields: Mapping[str, str], body: bytes = b"") -> dict[str, str]:
        """Returns the fields to send: those of the request, the account, and the signature over all of them."""
        return {**ext_fields, **self.sign(0, ext_fields, body)}

    def sign(self, code: int, ext_fields: Mapping[str, str], body: bytes) -> dict[str, str]:  # noqa: ARG002
        """Returns the fields to add to a request. The method can be used as `Connections.sign`."""
        return _native.sign_fields(self.access_key, self.secret_key, self.security_token, ext_fields, body)


def signature_of(ext_fields: Mapping[str, str], body: bytes, secret_key: bytes, *, without: str = SIGNATURE) -> bytes:
    return _native.signature_of(ext_fields, body, secret_key, without)
