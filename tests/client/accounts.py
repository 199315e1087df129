"""Clusters in this process that want to know who asks."""

from __future__ import annotations

from pathlib import Path

from rmqfast import EmbeddedCluster

#: Of all accounts.
SECRET = "12345678"  # noqa: S105


def guarded_cluster(home: Path, **permissions: str) -> EmbeddedCluster:
    """A cluster that is not started, and knows accounts by their keys: what each may do with topics and groups."""
    accounts = [
        f'- {{accessKey: {key}, secretKey: "{SECRET}", defaultTopicPerm: {may}, defaultGroupPerm: {may}}}\n'
        for key, may in permissions.items()
    ]
    (home / "conf").mkdir()
    (home / "conf/plain_acl.yml").write_text("accounts:\n" + "".join(accounts))
    return EmbeddedCluster(config={"aclEnable": "true", "rocketmqHome": str(home)})
