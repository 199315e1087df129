"""Requests without an account, at a broker and a name server that ask for one."""

from __future__ import annotations

from pathlib import Path

from rmqfast.acl import RIGHTS
from rmqfast.remoting import RemotingClient, RequestCode
from tests.attack.figures import Figure, Scale
from tests.broker.interop.cluster import Cluster

PROPERTIES = ("aclEnable=true", "mappedFileSizeCommitLog=16777216", "maxHashSlotNum=1000", "maxIndexNum=4000")
#: Those of 4.9.4, those of 5.x, and numbers between them that nobody knows.
_CODES = sorted({*RequestCode, *RIGHTS, *range(1100), *range(200_050, 200_060)})
_ACCOUNTS = 'accounts:\n- {accessKey: administrator, secretKey: "0123456789", admin: true}\n'


def make_accounts(directory: Path) -> None:
    """Makes the file of accounts that a server in the directory reads."""
    (directory / "conf").mkdir(parents=True)
    (directory / "conf" / "plain_acl.yml").write_text(_ACCOUNTS)


def unsigned_requests(cluster: Cluster, _scale: Scale) -> list[Figure]:
    """Each request code that there is, unsigned."""
    figures = []
    for what, address in (("broker", cluster.broker), ("name server", cluster.name_server)):
        with RemotingClient(address) as client:
            accepted = [code for code in _CODES if client.request(code, timeout=30.0).code == 0]
        count = f"{len(_CODES)} codes without an account at the {what}: accepted"
        figures.append(Figure(count, len(accepted), "", 0, is_time=False))
    return figures
