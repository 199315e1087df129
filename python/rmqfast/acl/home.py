"""The accounts that `aclEnable=true` means: those below `conf` of `rocketmqHome`.

Source: `BrokerController.initialAcl`.
"""

from __future__ import annotations

from collections.abc import Callable

from rmqfast.acl.access_validator import AccessValidator, Mode
from rmqfast.acl.acl_files import AclFiles
from rmqfast.errors import ArgumentError


def validator_of(home: str, now: Callable[[], int], *, mode: Mode = "strict") -> AccessValidator:
    """What checks requests by the accounts of a directory.

    Args:
        home: What `rocketmqHome` says.
        now: Milliseconds since 1970.
        mode: `strict`, or `java` for what the broker of 4.9.4 checks and nothing more.

    Raises:
        ArgumentError: There is no `rocketmqHome`, or a file in it is not as RocketMQ takes it.
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
