"""Accounts of brokers, without their secrets.

Source: `DefaultMQAdminExtImpl.examineBrokerClusterAclConfig`, `AclConfig`, `PlainAccessConfig`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rmqfast.admin.admin_client import AdminClient
from rmqfast.remoting import RequestCode
from rmqfast.remoting.protocol.json_object import JsonObject

_MOST = 100_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Account:
    """An account of a broker.

    Attributes:
        access_key: Its name.
        is_admin: Whether it may change brokers, topics and groups.
        white_address: Addresses from which its clients need no signature.
        default_topic_perm: Right for topics without an entry, as `DENY` or `PUB|SUB`.
        default_group_perm: Right for groups without an entry.
        topic_perms: Entries like `orders=PUB|SUB`.
        group_perms: Entries like `billing=SUB`.
    """

    access_key: str
    is_admin: bool
    white_address: str
    default_topic_perm: str
    default_group_perm: str
    topic_perms: Sequence[str]
    group_perms: Sequence[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class AccessRules:
    """The accounts of a broker, and the addresses whose clients need none."""

    accounts: Sequence[Account]
    white_addresses: Sequence[str]


class Accounts:
    """`admin.accounts`: lists the accounts of brokers."""

    def __init__(self, client: AdminClient) -> None:
        self._client = client

    def of_broker(self, broker: str) -> AccessRules:
        """Returns the accounts of a broker, given by its name or address. Secrets are left out.

        Raises:
            ResponseError: The broker has no access control, or is one of RocketMQ 5, whose users this does not tell.

        Example:
            >>> import rmqfast
            >>> with rmqfast.EmbeddedCluster() as cluster, rmqfast.Admin(name_server=cluster.name_server) as admin:
            ...     try:
            ...         admin.accounts.of_broker("broker-a")
            ...     except rmqfast.errors.ResponseError as error:
            ...         print("not protected" if "acl" in str(error).lower() else error)
            not protected
        """
        address = self._client.broker_address(broker)
        members = JsonObject.of_body(self._client.ask(address, RequestCode.GET_BROKER_CLUSTER_ACL_CONFIG).body)
        return AccessRules(
            accounts=[_account_of(each) for each in members.objects("plainAccessConfigs", most=_MOST)],
            white_addresses=members.texts("globalWhiteAddrs", most=_MOST),
        )


def _account_of(members: JsonObject) -> Account:
    return Account(
        access_key=members.optional_text("accessKey") or "",
        is_admin=members.flag("admin"),
        white_address=members.optional_text("whiteRemoteAddress") or "",
        default_topic_perm=members.optional_text("defaultTopicPerm") or "",
        default_group_perm=members.optional_text("defaultGroupPerm") or "",
        topic_perms=members.texts("topicPerms", most=_MOST),
        group_perms=members.texts("groupPerms", most=_MOST),
    )
