"""Checks each request against accounts and white lists. Without them, restricts a server that other machines reach.

Source: RocketMQ's `PlainAccessValidator`, `PlainPermissionManager`, `AclFileWatchService`.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, NoReturn

from rmqfast.acl import yaml_text
from rmqfast.acl.account import Account
from rmqfast.acl.acl_files import AclFiles
from rmqfast.acl.address import address_of
from rmqfast.acl.permission import PUB, RETRY_PREFIX
from rmqfast.acl.resources import TRACE_TOPIC, Permissions, TopicsAt
from rmqfast.acl.rights import RIGHTS, UNKNOWN, Requirement
from rmqfast.acl.rules import Change, Rules, next_version, rules_of
from rmqfast.errors import ArgumentError, RemotingProtocolError, ResponseError
from rmqfast.logs import QuietLock, logger_of
from rmqfast.remoting import Request, RequestCode, ResponseCode
from rmqfast.remoting.credentials import ACCESS_KEY, SIGNATURE, UNIQUE_KEY_QUERY, Credentials, signature_of
from rmqfast.remoting.hash_map import hash_order
from rmqfast.remoting.loopback import is_loopback
from rmqfast.remoting.processor import Check

_log = logger_of(__name__)

#: `java` for the exact checks of 4.9.4, `strict` to also check requests that it forgot; see `rights`.
Mode = Literal["strict", "java"]

# Java's refusals end with a stack frame, which is part of the text that clients see.
_MANAGER = "org.apache.rocketmq.acl.plain.PlainPermissionManager"
_VALIDATE, _CHECK = (
    f"{_MANAGER}.validate(PlainPermissionManager.java",
    f"{_MANAGER}.checkPerm(PlainPermissionManager.java",
)
_PARSE = "org.apache.rocketmq.acl.plain.PlainAccessValidator.parse(PlainAccessValidator.java"


class AccessValidator:
    """Checks requests against the accounts and white lists in the ACL files.

    Args:
        files: The files.
        now: Returns the time in milliseconds since 1970.
        mode: `strict`, or `java` for exactly the checks of RocketMQ 4.9.4.

    Attributes:
        topics_at: Returns the topics of a stored message. A server without a store returns None for all messages.

    Raises:
        ArgumentError: A file is not valid for RocketMQ.
        MissingExtraError: PyYAML is not installed.
    """

    def __init__(self, files: AclFiles, now: Callable[[], int], *, mode: Mode = "strict") -> None:
        self.topics_at: TopicsAt = lambda _: None
        self._files = files
        self._now = now
        self._needs = {code: right.java if mode == "java" else right.strict for code, right in RIGHTS.items()}
        self._unknown = UNKNOWN.java if mode == "java" else UNKNOWN.strict
        self._lock = QuietLock()
        self._started = now()
        contents = files.read()
        self._file_digest = _digest(contents)
        self._rules = rules_of(contents, self._started)

    @property
    def rules(self) -> Rules:
        return self._rules

    @property
    def default_path(self) -> Path:
        """The ACL file to which new accounts are added."""
        return self._files.default_path

    @property
    def started(self) -> int:
        """Time at which the rules were first read, in milliseconds since 1970."""
        return self._started

    def check(self, request: Request) -> None:
        """Raises `ResponseError` with Java's remark if a request is not allowed."""
        rules = self._rules
        address = request.channel.remote_address
        # The order of `PlainPermissionManager.validate`: a white-listed address needs no account.
        if rules.white and any(pattern.matches(address_of(address)) for pattern in rules.white):
            return
        fields = request.ext_fields
        access_key = fields.get(ACCESS_KEY)
        if access_key is None:
            _refuse("No accessKey is configured", f"{_VALIDATE}:663")
        account = rules.accounts.get(access_key)
        if account is None:
            _refuse(f"No acl config for {access_key}", f"{_VALIDATE}:667")
        if account.white.matches(address_of(address)):
            return
        if not _is_signed(fields, request.body, account.secret_key):
            _refuse(f"Check signature failed for accessKey={access_key}", f"{_VALIDATE}:683")
        self._check_rights(request, account, self._needs.get(request.code, self._unknown))

    def _check_rights(self, request: Request, account: Account, need: Requirement) -> None:
        if need.admin and not account.is_admin:
            text = (
                f"Need admin permission for request code={int(request.code)}, but accessKey={account.access_key} is not"
            )
            _refuse(text, f"{_CHECK}:580")
        try:
            needed = {} if need.resources is None else need.resources(request.ext_fields, request.body)
        except (ValueError, RemotingProtocolError) as error:
            _refuse(str(error), f"{_PARSE}:134")
        # An administrator without own permissions may do everything.
        if account.is_admin and not account.permissions:
            return
        if need.of_record is not None:
            needed |= need.of_record(request.ext_fields, self.topics_at)
        # Every account may write traces.
        if needed.get(TRACE_TOPIC) == PUB:
            del needed[TRACE_TOPIC]
        for resource, permission in needed.items():
            if not account.may(resource, permission):
                _refuse_first(account, needed)

    def reload_if_changed(self) -> bool:
        """Loads changed files unless they are invalid. Returns whether it loaded any. Call it every five seconds."""
        with self._lock:
            try:
                contents = self._files.read()
                digest = _digest(contents)
                if digest == self._file_digest:
                    return False
                self._file_digest = digest  # so that an invalid file is logged only once
                self._rules = rules_of(contents, self._now())
            except ArgumentError as error:
                _log.error("access control: the rules stay as they were: %s", error)
                return False
        _log.info("access control: new rules, %d accounts", len(self._rules.accounts))
        return True

    def change(self, change: Change) -> bool:
        """Rewrites a file and loads it, unless the result would be invalid. Returns whether anything changed.

        Raises:
            ArgumentError: The file would be invalid, or could not be written.
        """
        with self._lock:
            # Under the lock, so that two requests cannot undo each other's change of a file.
            contents, now = self._files.read(), self._now()
            path = change.path(rules_of(contents, now), self._files)
            members = None if path is None else change.members(yaml_text.load(contents.get(path, b"")))
            if path is None or members is None:
                return False
            contents[path] = yaml_text.dump(next_version(members, now))
            # Parse before writing, so that the file stays loadable.
            rules = rules_of(contents, now)
            self._files.write(path, contents[path])
            self._rules, self._file_digest = rules, _digest(contents)
        return True


def _is_signed(fields: Mapping[str, str], body: bytes, secret_key: bytes) -> bool:
    signature = fields.get(SIGNATURE)
    if signature is None:
        return False
    # Compared in constant time, so that timing reveals nothing about the right signature.
    expected = signature.encode("utf-8", "replace")
    if hmac.compare_digest(signature_of(fields, body, secret_key, without=UNIQUE_KEY_QUERY), expected):
        return True
    # Clients of 4.9.4 sign this field, though their broker does not.
    return UNIQUE_KEY_QUERY in fields and hmac.compare_digest(signature_of(fields, body, secret_key), expected)


def _refuse_first(account: Account, needed: Permissions) -> NoReturn:
    """Refuses the request. The error names the resource that Java would check first."""
    for resource in hash_order(needed):
        if not account.may(resource, needed[resource]):
            kind = (
                f"group:{resource[len(RETRY_PREFIX) :]}" if resource.startswith(RETRY_PREFIX) else f"topic:{resource}"
            )
            _refuse(f"No default permission for {kind}", f"{_CHECK}:{610 if resource in account.permissions else 605}")
    raise AssertionError(needed)


def _refuse(text: str, frame: str) -> NoReturn:
    raise ResponseError(ResponseCode.SYSTEM_ERROR, f"org.apache.rocketmq.acl.common.AclException: {text}, {frame})")


def _digest(contents: Mapping[Path, bytes]) -> bytes:
    digest = hashlib.sha256()
    for path, data in contents.items():
        digest.update(hashlib.sha256(str(path).encode("utf-8", "surrogateescape")).digest())
        digest.update(hashlib.sha256(data).digest())
    return digest.digest()


def validator_of(home: str, now: Callable[[], int], *, mode: Mode = "strict") -> AccessValidator:
    """Returns a validator for the ACL files below `rocketmqHome`.

    Raises:
        ArgumentError: `rocketmqHome` is empty, or a file in it is missing or not valid for RocketMQ.
        MissingExtraError: PyYAML is not installed.
    """
    if not home:
        raise ArgumentError(
            "aclEnable=true: expected rocketmqHome, whose conf/plain_acl.yml has the accounts, got none"
        )
    files = AclFiles(home)
    if not files.paths():
        raise ArgumentError(f"aclEnable=true: expected accounts in {files.default_path}, got no such file")
    return AccessValidator(files, now, mode=mode)


class Administrator:
    """Signs requests with the first account of an administrator. The ACL files are read again for each request."""

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


#: Brokers send these requests from other machines, and have no account without access control.
_OF_BROKERS = {RequestCode.REGISTER_BROKER, RequestCode.UNREGISTER_BROKER}
_REMARK = (
    "only administrators may ask for this, and only from the machine itself, as there is no access control: "
    "set aclEnable=true, or ask from there"
)


def exposure_check(host: str, *, is_checked: bool, is_allowed: bool) -> Check | None:
    """Returns the check of requests for a server without access control that listens at `host` (`bindAddress`).

    The check is `None` at loopback or if accounts or a program check requests (`is_checked`). Otherwise it accepts
    administrators' requests only from this machine, and `ArgumentError` refuses the server unless `insecureBind` allows
    it (`is_allowed`).
    """
    if is_checked or is_loopback(host):
        return None
    if not is_allowed:
        raise ArgumentError(
            f"bindAddress={host}: everybody who reaches the port could read, send and delete; expected loopback, or "
            "aclEnable=true (rmqfast server --secure DIR makes accounts and certificates), or --insecure-bind "
            "(insecureBind=true) where the network itself keeps strangers out, got none of them"
        )
    _log.warning(
        "bindAddress=%s without access control (insecureBind): everybody who reaches the port may send to and read all "
        "topics; what is for administrators is answered to this machine only",
        host,
    )
    return _check


def _check(request: Request) -> None:
    right = RIGHTS.get(request.code)  # codes without a row are those of 5.x clients, such as 351 and 352
    if right is None or not right.strict.admin or request.code in _OF_BROKERS:
        return
    peer = request.channel.remote_address.rpartition(":")[0]
    if not is_loopback(peer):
        raise ResponseError(ResponseCode.NO_PERMISSION, _REMARK)
