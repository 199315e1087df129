"""Signs requests with an account: ACL 1.0.

The signature covers the values of the header's fields, one behind the other without names, and the body. It covers
neither code nor time: who can read a connection can send the request again, which TLS prevents.

Source: `AclClientRPCHook`, `AclSigner`, `AclUtils.combineRequestContent`, `StreamTypeRPCHook`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from rmqfast import _native

ACCESS_KEY = "AccessKey"
SIGNATURE = "Signature"
SECURITY_TOKEN = "SecurityToken"  # noqa: S105 - the name of a field
#: Set in a query by unique key. Clients of 4.9 sign it, and its broker does not; 5.x does.
UNIQUE_KEY_QUERY = "_UNIQUE_KEY_QUERY"
#: What pull consumers add to each request, before it is signed.
STREAM_FIELDS: Mapping[str, str] = {"ReqT": "0"}


class Signer(Protocol):
    """Whoever signs requests with an account."""

    def signed(self, ext_fields: Mapping[str, str], body: bytes = b"") -> dict[str, str]:
        """The fields to send: those of the request, the account, and the signature of all of them."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """Who a client is, and the secret that proves it.

    Attributes:
        access_key: The account.
        secret_key: Known to the client and the broker alone.
        security_token: Goes along and is signed where it is set.

    Example:
        >>> Credentials("RocketMQ", "12345678").signed({}, b"{}")["Signature"]
        'pq0tPL2lAz7bhIfEGHu4hhut1Yw='

    Source: `SessionCredentials`.
    """

    access_key: str
    secret_key: str = field(repr=False)
    security_token: str | None = field(default=None, repr=False)

    def signed(self, ext_fields: Mapping[str, str], body: bytes = b"") -> dict[str, str]:
        """The fields to send: those of the request, the account, and the signature of all of them.

        Args:
            ext_fields: All fields of the request; a field that is added later breaks the signature.
            body: The bytes behind the header.

        Source: `AclClientRPCHook.doBeforeRequest`.
        """
        return {**ext_fields, **self.sign(0, ext_fields, body)}

    def sign(self, code: int, ext_fields: Mapping[str, str], body: bytes) -> dict[str, str]:  # noqa: ARG002
        """The further fields of a request, as `rmqfast.remoting.Connections` asks for them.

        Example:
            >>> sorted(Credentials("RocketMQ", "12345678", "token").sign(10, {"a": "b"}, b"{}"))
            ['AccessKey', 'SecurityToken', 'Signature']

        Source: `AclClientRPCHook.doBeforeRequest`.
        """
        return _native.sign_fields(self.access_key, self.secret_key, self.security_token, ext_fields, body)


def signature_of(ext_fields: Mapping[str, str], body: bytes, secret_key: bytes, *, without: str = SIGNATURE) -> bytes:
    """The signature of a request.

    Example:
        >>> signature_of({"AccessKey": "RocketMQ"}, b"{}", b"12345678")
        b'pq0tPL2lAz7bhIfEGHu4hhut1Yw='

    Source: `AclUtils.combineRequestContent`, `AclSigner.calSignature`.
    """
    return _native.signature_of(ext_fields, body, secret_key, without)
