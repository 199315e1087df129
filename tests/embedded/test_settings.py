"""What `broker.conf` says takes effect, at the start or, where it is changed, while the broker runs."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rmqfast import Admin, ClientConfig, EmbeddedCluster
from rmqfast.acl import AccessValidator, AclFiles
from rmqfast.broker import Broker, BrokerConfig, ConfigFile
from rmqfast.broker.configuration.config_keys import CONFIG_KEYS, UNUSED_KEYS
from rmqfast.broker.statistics.broker_stats import counters_of
from rmqfast.errors import ArgumentError, MissingExtraError
from rmqfast.nameserver import NameServer, NamesrvConfig
from rmqfast.remoting import RemotingClient, RequestCode, Response, ResponseCode
from rmqfast.remoting.credentials import Credentials
from tests.embedded.client import SMALL, Clock, address_of, broker_config, pull, route, send, update_config
from tests.waiting import PATIENCE, until

PACKAGE = Path(__file__).parents[2] / "python" / "rmqfast" / "broker"
ACCOUNTS = """
globalWhiteRemoteAddresses: []
accounts:
- {accessKey: RocketMQ, secretKey: '12345678', admin: false, defaultTopicPerm: DENY, topicPerms: [orders=PUB]}
- {accessKey: bossboss, secretKey: '87654321', admin: true}
"""


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster() as running:
        assert send(address_of(running), "orders", b"1").code == 0
        yield running


# members of a body are asked for in the same way, and are none
ASKED = re.compile(r"(?<!members\.)(?:number|flag|text|percent)\(\s*['\"]([\w.]+)['\"]|\[['\"](\w+)['\"]\]")


def asked_for() -> set[str]:
    """The keys that the code asks the configuration for."""
    found: set[str] = set()
    for file in PACKAGE.rglob("*.py"):
        if file.name != "config_keys.py":
            text = file.read_text(encoding="utf-8")
            found |= {a or b for a, b in ASKED.findall(text)}
    return found


def test_a_key_takes_effect_where_the_code_asks_for_it_and_nowhere_else() -> None:
    assert CONFIG_KEYS.keys() - asked_for() == set()
    assert asked_for() & UNUSED_KEYS == set()


def test_transactions_are_refused_as_soon_as_the_configuration_says_so(cluster: EmbeddedCluster) -> None:
    address = address_of(cluster)
    assert send(address, "orders", b"half", TRAN_MSG="true", PGROUP="P").code == 0
    assert update_config(address, rejectTransactionMessage="true").code == 0
    refused = send(address, "orders", b"half", TRAN_MSG="true", PGROUP="P")
    assert (refused.code, refused.remark) == (16, "the broker[127.0.0.1] sending transaction message is forbidden")


def test_sql_is_taken_as_soon_as_the_configuration_says_so(cluster: EmbeddedCluster) -> None:
    address = address_of(cluster)
    remark = "The broker does not support consumer to filter message by SQL92"
    assert pull(address, "orders", sql="a = 1").remark == remark
    assert update_config(address, enablePropertyFilter="true").code == 0
    assert send(address, "orders", b"wanted", a="1").code == 0
    found = pull(address, "orders", sql="a = 1").body
    assert b"wanted" in found


def test_a_pull_gives_as_many_messages_as_the_configuration_says(cluster: EmbeddedCluster) -> None:
    address = address_of(cluster)
    for _ in range(5):
        send(address, "orders", b"x")
    assert (pull(address, "orders").ext_fields or {})["nextBeginOffset"] == "6"
    assert update_config(address, maxTransferCountOnMessageInMemory="2").code == 0
    assert (pull(address, "orders").ext_fields or {})["nextBeginOffset"] == "2"


def test_sends_wait_for_the_time_that_the_configuration_says(cluster: EmbeddedCluster) -> None:
    address = address_of(cluster)
    assert update_config(address, startAcceptSendRequestTimeStamp="4102444800000").code == 0
    assert send(address, "orders", b"x").remark == "broker unable to service, until 4102444800000"


def test_transactions_are_checked_as_the_configuration_says_now(cluster: EmbeddedCluster) -> None:
    update_config(address_of(cluster), transactionTimeOut="7", transactionCheckMax="3")
    options = cluster.brokers[0].state.transactions.options
    assert (options.timeout, options.max_checks) == (7, 3)


def test_a_broker_that_must_not_be_written_to_is_registered_so(cluster: EmbeddedCluster) -> None:
    until(lambda: route(cluster.name_server, "orders")["broker-a"]["perm"] == 6)
    assert update_config(address_of(cluster), brokerPermission="4").code == 0
    until(lambda: route(cluster.name_server, "orders")["broker-a"]["perm"] == 4)
    assert cluster.brokers[0].state.topics.topics()[0].perm != 4
    assert update_config(address_of(cluster), brokerPermission="6").code == 0
    until(lambda: route(cluster.name_server, "orders")["broker-a"]["perm"] == 6)


@pytest.mark.parametrize(
    ("code", "key"),
    [
        (RequestCode.HEART_BEAT, "waitTimeMillsInHeartbeatQueue"),
        (RequestCode.END_TRANSACTION, "waitTimeMillsInTransactionQueue"),
    ],
)
def test_a_request_that_waited_longer_than_the_configuration_says_is_refused(code: RequestCode, key: str) -> None:
    # each waits for a moment
    fast, slow = (answer_of(code, {key: "0", "brokerFastFailureEnable": enabled}) for enabled in ("true", "false"))
    assert fast.code == ResponseCode.SYSTEM_BUSY
    assert re.fullmatch(r"\[TIMEOUT_CLEAN_QUEUE\].* period in queue: \d+ms, size of queue: \d+", fast.remark or "")
    assert slow.code == ResponseCode.SYSTEM_ERROR, "it says nothing that a broker understands"


def answer_of(code: RequestCode, config: dict[str, str]) -> Response:
    with EmbeddedCluster(config=config) as cluster, RemotingClient(address_of(cluster)) as client:
        return client.request(code)


def test_what_is_changed_is_written_to_the_file(tmp_path: Path) -> None:
    path = tmp_path / "broker.conf"
    path.write_text(
        f"# ours\nbrokerName=broker-z\nlistenPort=0\nmine=C\\:\\\\x\nstorePathRootDir={tmp_path / 'store'}\n"
    )
    file = ConfigFile(path)
    with Broker(BrokerConfig(SMALL | dict(file.load().explicit)), config_file=file) as broker:
        assert update_config(broker.address, transactionCheckMax="3", listenPort="1", nobody="knows").code == 0
        assert update_config(broker.address, listenPort="2").code == 0
    assert dict(file.load().explicit) == {
        "brokerName": "broker-z",
        "listenPort": "0",
        "mine": "C:\\x",
        "storePathRootDir": str(tmp_path / "store"),
        "transactionCheckMax": "3",
    }
    assert "# ours" in path.with_name("broker.conf.bak").read_text()


def test_a_file_that_cannot_be_written_does_not_keep_the_change(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = ConfigFile(tmp_path / "file" / "broker.conf")
    (tmp_path / "file").write_text("in the way")
    with EmbeddedCluster(config_file=file) as cluster, caplog.at_level(logging.ERROR):
        assert update_config(address_of(cluster), transactionCheckMax="3").code == 0
        assert cluster.brokers[0].state.config().number("transactionCheckMax") == 3
    assert "was not saved" in caplog.text


def home(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "plain_acl.yml").write_text(ACCOUNTS)
    return {"aclEnable": "true", "rocketmqHome": str(tmp_path)}


def signed(address: str, code: int, key: str, secret: str, **fields: str) -> int:
    with RemotingClient(address, timeout=PATIENCE) as client:
        return client.request(code, Credentials(key, secret).signed_fields(fields)).code


def test_with_access_control_every_request_is_checked_and_rules_are_shown_to_administrators(tmp_path: Path) -> None:
    with EmbeddedCluster(config=home(tmp_path)) as cluster:
        address = address_of(cluster)
        refused = send(address, "orders", b"x")
        assert refused.code == 1
        assert "No accessKey is configured" in (refused.remark or "")
        assert "No accessKey" in (pull(address, "orders").remark or "")
        code = RequestCode.GET_BROKER_CLUSTER_ACL_INFO
        assert signed(address, code, "bossboss", "87654321") == 0
        assert signed(address, code, "bossboss", "wrong") == 1
        assert signed(address, RequestCode.GET_BROKER_CONFIG, "RocketMQ", "12345678") == 1
        config = ClientConfig(name_server=cluster.name_server, access_key="bossboss", secret_key="87654321")  # noqa: S106
        with Admin(config=config) as admin:
            rules = admin.accounts.of_broker("broker-a")
    assert {account.access_key: account.is_admin for account in rules.accounts} == {"RocketMQ": False, "bossboss": True}
    assert "87654321" not in repr(rules)


def test_in_javas_mode_requests_pass_that_java_forgot(tmp_path: Path) -> None:
    own = home(tmp_path)
    fields = {"topic": "orders", "queueId": "0", "consumerGroup": "G"}
    code = RequestCode.QUERY_CONSUMER_OFFSET
    for mode, is_refused in (("strict", True), ("java", False)):
        with EmbeddedCluster(config=own | {"aclMode": mode}) as cluster:
            assert (signed(address_of(cluster), code, "RocketMQ", "12345678", **fields) == 1) is is_refused


@pytest.mark.long
def test_accounts_that_change_are_read_again_without_a_restart(tmp_path: Path) -> None:
    with EmbeddedCluster(config=home(tmp_path)) as cluster:
        address, code = address_of(cluster), RequestCode.GET_BROKER_CONFIG
        assert signed(address, code, "bossboss", "87654321") == 0
        file = tmp_path / "conf" / "plain_acl.yml"
        file.write_text(ACCOUNTS.replace("87654321", "changed-it"))
        until(lambda: signed(address, code, "bossboss", "changed-it") == 0)
        assert signed(address, code, "bossboss", "87654321") == 1


def test_a_broker_signs_what_it_asks_a_name_server_that_checks(tmp_path: Path) -> None:
    home(tmp_path)
    tools = tmp_path / "tools.yml"
    tools.write_text("accessKey: bossboss\nsecretKey: '87654321'\n")
    check = AccessValidator(AclFiles(tmp_path), lambda: 1).check
    names = NamesrvConfig(kv_config_path=str(tmp_path / "kv.json"), listen_port=0)
    with NameServer(names, check=check) as name_server:
        own = {"namesrvAddr": name_server.address}
        for more, known in (({}, []), ({"nameServerAclFile": str(tools)}, ["broker-a"])):
            with Broker(broker_config(tmp_path / f"store-{len(known)}", **own, **more)):
                table = name_server.routes.cluster_info()
                assert [name for name in ("broker-a",) if name in str(table)] == known


def test_access_control_without_what_it_needs_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for own, said in (
        ({"aclEnable": "true"}, "rocketmqHome"),
        ({"aclEnable": "true", "rocketmqHome": str(tmp_path / "no")}, r"plain_acl\.yml"),
        (home(tmp_path) | {"aclMode": "lax"}, "aclMode: expected java or strict"),
        ({"nameServerAclFile": str(tmp_path / "tools.yml")}, "nameServerAclFile"),
    ):
        with pytest.raises(ArgumentError, match=said):
            EmbeddedCluster(config=own).start()
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'rmqfast\[broker\]'"):
        EmbeddedCluster(config={"aclEnable": "true", "rocketmqHome": str(tmp_path)}).start()


@pytest.mark.usefixtures("early_deliveries")
def test_what_the_broker_stores_and_gets_is_in_its_figures(tmp_path: Path) -> None:
    clock = Clock()
    with Broker(broker_config(tmp_path / "store", messageDelayLevel="1h"), now=clock) as broker:
        address, plane = broker.address, broker.state.data_plane

        def counted() -> dict[tuple[str, str], int]:
            return {(name, key): amount for name, key, _, amount in counters_of(plane)}

        assert send(address, "orders", b"1").code == 0
        assert send(address, "orders", b"late", DELAY="1").code == 0
        clock.ahead = 3_600_000
        # what counts last of a message that is delivered
        until(lambda: counted()["BROKER_PUT_NUMS", "DefaultCluster"] == 3, counted)
        figures, delays = counted(), "SCHEDULE_TOPIC_XXXX"
        assert figures["TOPIC_PUT_NUMS", "orders"] == 2
        assert figures["TOPIC_PUT_SIZE", "orders"] > 2 * len(b"late")
        assert figures["TOPIC_PUT_NUMS", delays] == figures["QUEUE_PUT_NUMS", f"{delays}@0"] == 1
        assert figures["GROUP_GET_NUMS", f"{delays}@SCHEDULE_CONSUMER"] == 1
        assert figures["QUEUE_GET_NUMS", f"{delays}@0@SCHEDULE_CONSUMER"] == 1
        assert sum(amount for (name, _), amount in figures.items() if name == "STORE_PUT_TIME") == 3
        with RemotingClient(address) as client:
            body = client.request(RequestCode.GET_BROKER_RUNTIME_INFO).body
        assert b'"putMessageTimesTotal":"3"' in body


def test_what_the_broker_makes_of_its_own_accord_counts_in_no_topic(cluster: EmbeddedCluster) -> None:
    address, plane = address_of(cluster), cluster.brokers[0].state.data_plane
    back = {"group": "G", "originTopic": "orders", "offset": "0", "delayLevel": "0", "originMsgId": "x"}
    with RemotingClient(address) as client:
        body = b'{"groupName":"G","retryMaxTimes":3}'
        assert client.request(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=body).code == 0
        assert client.request(RequestCode.CONSUMER_SEND_MSG_BACK, back).code == 0
        assert client.request(RequestCode.CONSUMER_SEND_MSG_BACK, back | {"delayLevel": "-1"}).code == 0
    counted = {(name, key): amount for name, key, _, amount in counters_of(plane)}
    assert counted["STORE_PUT_NUMS", "SCHEDULE_TOPIC_XXXX"] == 1
    assert counted["STORE_PUT_SIZE", "SCHEDULE_TOPIC_XXXX"] > 100
    assert counted["STORE_PUT_SIZE", "%DLQ%G"] > 100
    assert counted["SNDBCK_PUT_NUMS", "orders@G"] == 2
    assert counted["BROKER_PUT_NUMS", "DefaultCluster"] == 1
