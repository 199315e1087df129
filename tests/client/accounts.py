"""Clusters in this process that want to know who asks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rmqfast import EmbeddedCluster

#: Of all accounts.
SECRET = "12345678"  # noqa: S105


def guarded_cluster(home: Path, config: Mapping[str, str] | None = None, **permissions: str) -> EmbeddedCluster:
    """A cluster that is not started, and knows accounts by their keys: what each may do with topics and groups.

    Beside them there is an administrator's, with which the broker asks the name server.
    """
    accounts = [
        f'- {{accessKey: {key}, secretKey: "{SECRET}", defaultTopicPerm: {may}, defaultGroupPerm: {may}}}\n'
        for key, may in permissions.items()
    ]
    accounts.append(f'- {{accessKey: bossboss, secretKey: "{SECRET}", admin: true}}\n')
    (home / "conf").mkdir()
    (home / "conf/plain_acl.yml").write_text("accounts:\n" + "".join(accounts))
    return EmbeddedCluster(config={"aclEnable": "true", "rocketmqHome": str(home), **(config or {})})
