"""Signs requests with an account: ACL 1.0.

The signature covers the values of the header's fields, one behind the other without names, and the body. It covers
neither code nor time: who can read a connection can send the request again, which TLS prevents.

Source: `AclClientRPCHook`, `AclSigner`, `AclUtils.combineRequestContent`, `StreamTypeRPCHook`.
"""

from __future__ import annotations

import binascii
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

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
        fields = {**ext_fields, ACCESS_KEY: self.access_key}
        if self.security_token is not None:
            fields[SECURITY_TOKEN] = self.security_token
        # a request that is sent again has the old one, which must not be signed
        fields.pop(SIGNATURE, None)
        fields[SIGNATURE] = signature_of(fields, body, self.secret_key.encode("utf-8", "replace")).decode("ascii")
        return fields

    def sign(self, code: int, ext_fields: Mapping[str, str], body: bytes) -> dict[str, str]:  # noqa: ARG002
        """The further fields of a request, as `rmqfast.remoting.Connections` asks for them.

        Example:
            >>> sorted(Credentials("RocketMQ", "12345678", "token").sign(10, {"a": "b"}, b"{}"))
            ['AccessKey', 'SecurityToken', 'Signature']

        Source: `AclClientRPCHook.doBeforeRequest`.
        """
        signed = self.signed(ext_fields, body)
        return {name: signed[name] for name in (ACCESS_KEY, SECURITY_TOKEN, SIGNATURE) if name in signed}


def signature_of(ext_fields: Mapping[str, str], body: bytes, secret_key: bytes, *, without: str = SIGNATURE) -> bytes:
    """The signature of a request.

    Example:
        >>> signature_of({"AccessKey": "RocketMQ"}, b"{}", b"12345678")
        b'pq0tPL2lAz7bhIfEGHu4hhut1Yw='

    Source: `AclUtils.combineRequestContent`, `AclSigner.calSignature`.
    """
    names = [name for name in ext_fields if name not in {SIGNATURE, without}]
    # Java's TreeMap sorts by UTF-16 units; for ASCII that is Python's order, and faster
    names.sort(key=None if all(map(str.isascii, names)) else _utf16)
    # of half a surrogate pair Java, too, makes a question mark
    content = "".join([ext_fields[name] for name in names]).encode("utf-8", "replace")
    return binascii.b2a_base64(hmac.digest(secret_key, content + body, "sha1"), newline=False)


def _utf16(name: str) -> bytes:
    """What Java sorts texts by; it differs from the order of code points above U+FFFF."""
    return name.encode("utf-16-be", "surrogatepass")
