"""Signs a broker's requests to the name servers in its own process with the account of an administrator."""

from __future__ import annotations

from collections.abc import Mapping

from rmqfast.acl.access_validator import AccessValidator
from rmqfast.acl.account import Account
from rmqfast.errors import ArgumentError
from rmqfast.remoting.credentials import Credentials


class Administrator:
    """Signs requests with the first account of an administrator in the ACL files, which are read for each request."""

    def __init__(self, validator: AccessValidator) -> None:
        self._validator = validator
        # Fails early if the files have no administrator.
        self._account()

    def signed_fields(self, ext_fields: Mapping[str, str], body: bytes = b"") -> dict[str, str]:
        """Returns the request's fields with account and signature. Raises `ArgumentError` without an administrator."""
        # Looked up each time, since the files may have changed.
        return self.credentials().signed_fields(ext_fields, body)

    def credentials(self) -> Credentials:
        """Returns the account that signs. Raises `ArgumentError` if no administrator exists any more."""
        account = self._account()
        return Credentials(account.access_key, account.secret_key.decode())

    def _account(self) -> Account:
        for account in self._validator.rules.accounts.values():
            if account.is_admin:
                return account
        expected = "expected an account with admin: true, with which brokers sign what they ask name servers"
        raise ArgumentError(f"{self._validator.default_path}: {expected}, or nameServerAclFile, got none")
