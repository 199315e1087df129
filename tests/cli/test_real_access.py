"""Commands at a real broker of 4.9.4 that wants to know who asks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.accounts import SECRET
from tests.interop.rocketmq import RocketMQ

from .command_line import run

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

ACCOUNTS = f"""
accounts:
- {{accessKey: operator, secretKey: "{SECRET}", admin: true}}
- {{accessKey: reader-key, secretKey: "{SECRET}", defaultTopicPerm: SUB, defaultGroupPerm: SUB}}
"""


@pytest.fixture(scope="module")
def name_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home = tmp_path_factory.mktemp("acl")
    (home / "home/conf").mkdir(parents=True)
    (home / "home/conf/plain_acl.yml").write_text(ACCOUNTS)
    with RocketMQ("4.9.4", home, "aclEnable=true", "mappedFileSizeCommitLog=1048576", clean=False) as cluster:
        yield cluster.name_server


def test_a_real_broker_serves_an_account_and_what_it_refuses_has_the_next_step(
    name_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    profiles = tmp_path / "rmqfast.toml"
    profiles.write_text(
        f'[profiles.default]\nname_server = "{name_server}"\naccess_key = "operator"\nsecret_key = "{SECRET}"\n'
    )
    profiles.chmod(0o600)
    assert run("topic", "create", "real", "--queues", "1").exit_code == 0
    assert run("group", "create", "readers").exit_code == 0
    sent = run("produce", "real", "one", "two", "-o", "json")
    assert [row["queue_offset"] for row in json.loads(sent.stdout)] == [0, 1], sent.output
    monkeypatch.setenv("RMQFAST_ACCESS_KEY", "reader-key")
    got = run("consume", "real", "--group", "readers", "--from", "first", "--max", "2", "-o", "json")
    assert [row["body"] for row in json.loads(got.stdout)] == ["b25l", "dHdv"], got.output
    refused = run("produce", "real", "three")
    assert "No default permission for topic:real" in refused.stderr
    assert "take another account, or have the right added in plain_acl.yml" in refused.stderr
    assert "take an account with admin: true" in run("topic", "create", "other").stderr
    monkeypatch.setenv("RMQFAST_SECRET_KEY", "another-secret")
    for words in (("produce", "real", "x"), ("consume", "real", "--group", "readers"), ("topic", "show", "real")):
        said = run(*words).stderr
        assert "the secret key comes from RMQFAST_SECRET_KEY)" in said, said
    monkeypatch.setenv("RMQFAST_ACCESS_KEY", "nobody")
    assert "(the access key comes from RMQFAST_ACCESS_KEY)" in run("topic", "show", "real").stderr
