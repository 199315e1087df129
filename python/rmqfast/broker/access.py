"""Builds a broker's access control from its configuration, and its own account for name servers.

Source: RocketMQ's `BrokerController`, `AclUtils`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, cast

from rmqfast.broker.configuration.config import BrokerConfig
from rmqfast.broker.messages.stored_message import message_at
from rmqfast.errors import ArgumentError, ResponseError
from rmqfast.remoting import Processor, Request, RequestCode, ResponseCode
from rmqfast.remoting.loopback import is_loopback
from rmqfast.remoting.processor import Check
from rmqfast.store import LiveStore

if TYPE_CHECKING:
    from rmqfast.acl import AccessValidator, Mode
    from rmqfast.acl.resources import RecordTopics
    from rmqfast.remoting.credentials import Credentials

#: Response codes for requests about accounts when access control is off.
_REFUSALS = {
    RequestCode.UPDATE_AND_CREATE_ACL_CONFIG: ResponseCode.UPDATE_AND_CREATE_ACL_CONFIG_FAILED,
    RequestCode.DELETE_ACL_CONFIG: ResponseCode.DELETE_ACL_CONFIG_FAILED,
    RequestCode.GET_BROKER_CLUSTER_ACL_INFO: ResponseCode.SYSTEM_ERROR,
    RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG: ResponseCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG_FAILED,
    RequestCode.GET_BROKER_CLUSTER_ACL_CONFIG: ResponseCode.SYSTEM_ERROR,
}


def access_of(config: BrokerConfig, now: Callable[[], int]) -> AccessValidator | None:
    """Builds the access control of `aclEnable=true` from the files in `rocketmqHome`/conf. None without `aclEnable`.

    Raises:
        ArgumentError: `rocketmqHome` is empty, or a file in it is not valid for RocketMQ.
        MissingExtraError: PyYAML is not installed.
    """
    if not config.flag("aclEnable"):
        return None
    from rmqfast.acl import validator_of  # imported only if needed, for a faster start

    return validator_of(config.text("rocketmqHome"), now, mode=cast("Mode", config.text("aclMode") or "strict"))


def find_topics(live: LiveStore, offset: int) -> RecordTopics | None:
    """Returns the topics of the message at a physical offset. None if no message begins there."""
    from rmqfast.acl.resources import WAITING_TOPICS, RecordTopics

    message = message_at(live, offset)
    if message is None:
        return None
    return RecordTopics(
        message.topic, message.properties.get("REAL_TOPIC") if message.topic in WAITING_TOPICS else None
    )


def exposure_of(config: BrokerConfig, *, is_checked: bool) -> Check | None:
    """Builds the check that refuses administrators' requests from other machines. None if it is not needed.

    Raises:
        ArgumentError: `bindAddress` is beyond loopback without any check, and `insecureBind=true` is missing.
    """
    host = config.text("bindAddress")
    if is_checked or is_loopback(host):
        return None
    from rmqfast.acl.access_validator import exposure_check  # imported only if needed, for a faster start

    return exposure_check(host, is_checked=is_checked, is_allowed=config.flag("insecureBind"))


def access_processors(config: BrokerConfig, access: AccessValidator | None) -> dict[int, Processor]:
    """Returns the processors of requests about accounts. Without access control, they refuse all requests."""
    if access is None:
        return {code: partial(_refuse, refusal) for code, refusal in _REFUSALS.items()}
    from rmqfast.acl import AclProcessor

    # Request 52 returns the file versions; mqadmin lists a cluster's brokers by these answers.
    names = (config.text("brokerClusterName"), config.text("brokerName"))
    return AclProcessor(
        access, cluster_name=names[0], broker_name=names[1], broker_address=config.broker_address
    ).processors()


def _refuse(code: ResponseCode, _request: Request) -> NoReturn:
    raise ResponseError(code, "access control is off: aclEnable=false")


def credentials_of(config: BrokerConfig) -> Credentials | None:
    """Reads the account that signs requests to name servers, and a slave's requests to its master. None without a file.

    `nameServerAclFile` names the file. RocketMQ has no such key, since its name servers check nothing. The file has
    the form of `tools.yml`: `accessKey` and `secretKey`.

    Raises:
        ArgumentError: The file cannot be read, or lacks a key.
        MissingExtraError: PyYAML is not installed.
    """
    name = config.text("nameServerAclFile")
    if not name:
        return None
    from rmqfast.acl import yaml_text
    from rmqfast.remoting.credentials import Credentials

    try:
        members = yaml_text.load(Path(name).read_bytes())
    except OSError as error:
        raise ArgumentError(f"nameServerAclFile: {name}: {error.strerror}") from error
    # Without its secret, every registration would be refused, so refuse to start.
    keys = [members.get(key) for key in ("accessKey", "secretKey")]
    if not all(keys):
        raise ArgumentError(f"nameServerAclFile: {name}: expected accessKey and secretKey")
    return Credentials(str(keys[0]), str(keys[1]))
