"""Requests without an account, at a broker and a name server that ask for one."""

from __future__ import annotations

from pathlib import Path

from rmqfast.acl import RIGHTS
from rmqfast.remoting import RemotingClient, RequestCode
from tests.attack.figures import Figure, Scale
from tests.broker.acl_trespasses import ACCOUNTS, Asked, House, sent
from tests.broker.interop.cluster import Cluster

PROPERTIES = ("aclEnable=true", "mappedFileSizeCommitLog=16777216", "maxHashSlotNum=1000", "maxIndexNum=4000")
STRANGERS = (*PROPERTIES, "enableMultiDispatch=true", "enableLmq=true")
#: Those of 4.9.4, those of 5.x, and numbers between them that nobody knows.
_CODES = sorted({*RequestCode, *RIGHTS, *range(1100), *range(200_050, 200_060)})
_ACCOUNTS = 'accounts:\n- {accessKey: administrator, secretKey: "0123456789", admin: true}\n'


def make_accounts(directory: Path) -> None:
    """Makes the file of accounts that a server in the directory reads."""
    (directory / "conf").mkdir(parents=True)
    (directory / "conf" / "plain_acl.yml").write_text(_ACCOUNTS)


def make_strangers(directory: Path) -> None:
    """Makes the file of accounts that know each other's names, where our broker and RocketMQ's look for it."""
    for conf in (directory / "conf", directory / "home" / "conf"):
        conf.mkdir(parents=True)
        (conf / "plain_acl.yml").write_text(ACCOUNTS)


def trespasses(cluster: Cluster, _scale: Scale) -> list[Figure]:
    """Requests of an account that touch topics, groups and messages of others in fields that are easily forgotten."""
    with House(cluster.broker) as house:
        count, accepted = len([*house.trespasses()]), house.accepted()
        # both brokers look at the topic of a send: accounts are asked for at all
        plain = house.is_accepted(
            Asked("a send", RequestCode.SEND_MESSAGE_V2, sent(RequestCode.SEND_MESSAGE_V2, "secret"))
        )
    return [
        Figure("a send to a topic of others: accepted", int(plain), "", 0, is_time=False),
        Figure(f"{count} requests beyond an account's rights: accepted", accepted, "", 0, is_time=False),
    ]


def unsigned_requests(cluster: Cluster, _scale: Scale) -> list[Figure]:
    """Each request code that there is, unsigned."""
    figures = []
    for what, address in (("broker", cluster.broker), ("name server", cluster.name_server)):
        with RemotingClient(address) as client:
            accepted = [code for code in _CODES if client.request(code, timeout=30.0).code == 0]
        count = f"{len(_CODES)} codes without an account at the {what}: accepted"
        figures.append(Figure(count, len(accepted), "", 0, is_time=False))
    return figures
