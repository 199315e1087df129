"""The pages about producers, and about who may do what."""

from __future__ import annotations

from rmqfast.admin import Admin
from rmqfast.dashboard.look import Look
from rmqfast.dashboard.page import Notice, Page, Table
from rmqfast.errors import RmqError
from rmqfast.remoting.version_names import version_name

_ACCOUNT_COLUMNS = (
    "broker",
    "account",
    "is_admin",
    "white_address",
    "default_topic_perm",
    "default_group_perm",
    "topic_perms",
    "group_perms",
)


def producers(admin: Admin) -> Page:
    """Returns the page with the online producers of all groups."""
    rows = [
        {
            "producer_group": group,
            "client": connection.client_id,
            "address": connection.client_addr,
            "language": connection.language,
            "version": version_name(connection.version),
        }
        for group, connections in admin.groups.producers().items()
        for connection in connections
    ]
    columns = ("producer_group", "client", "address", "language", "version")
    return Page(
        title="producers", facts={"producers": len(rows)}, tables=[Table(name="producers", columns=columns, rows=rows)]
    )


def access(admin: Admin, look: Look) -> Page:
    """Returns the page with the accounts of all brokers, without their secrets."""
    rows: list[dict[str, object]] = []
    notices: list[Notice] = []
    white: dict[str, list[str]] = {}
    for broker, address in look.masters:
        try:
            rules = admin.accounts.of_broker(address)
        except RmqError as error:
            notices.append(Notice(level="unknown", title=broker, text=str(error)))
            continue
        white[f"{broker}: white_addresses"] = list(rules.white_addresses)
        rows += [
            {
                "broker": broker,
                "account": account.access_key,
                "is_admin": account.is_admin,
                "white_address": account.white_address or None,
                "default_topic_perm": account.default_topic_perm or None,
                "default_group_perm": account.default_group_perm or None,
                "topic_perms": list(account.topic_perms),
                "group_perms": list(account.group_perms),
            }
            for account in rules.accounts
        ]
    table = Table(name="accounts", columns=_ACCOUNT_COLUMNS, rows=rows)
    return Page(title="access", facts=white, notices=notices, tables=[table])
