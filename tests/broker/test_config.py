"""`broker.conf`: RocketMQ's keys and defaults, and what may change while the broker runs."""

from __future__ import annotations

import logging

import pytest

from rmqfast.broker.configuration.config import BrokerConfig, Configuration, may_change
from rmqfast.broker.configuration.config_keys import CONFIG_KEYS, JVM_KEYS, OWN_KEYS, UNUSED_KEYS, Effect
from rmqfast.broker.options_of_config import retention_options
from rmqfast.errors import ArgumentError
from tests.wire_traffic import exchanges

#: Of RocketMQ's keys these have no default, so that a broker does not show them unless they are set.
NO_DEFAULT = {"rocketmqHome", "namesrvAddr"}
UNUSED_WITHOUT_DEFAULT = {
    "storePathCommitLog",
    "storePathDLedgerCommitLog",
    "readOnlyCommitLogStorePaths",
    "haMasterAddress",
    "dLegerGroup",
    "dLegerPeers",
    "dLegerSelfId",
    "preferredLeaderId",
}


def recorded() -> dict[str, str]:
    """What a real broker of 4.9.4 showed."""
    body = next(exchange.response_body for exchange in exchanges("4.9.4") if exchange.code == 26)
    return dict(line.split("=", 1) for line in body.decode().splitlines())


def test_the_keys_are_those_of_a_real_broker() -> None:
    of_rocketmq = recorded().keys() | NO_DEFAULT | UNUSED_WITHOUT_DEFAULT
    assert of_rocketmq | OWN_KEYS | JVM_KEYS == CONFIG_KEYS.keys() | UNUSED_KEYS
    assert not CONFIG_KEYS.keys() & UNUSED_KEYS
    without = {key for key, known in CONFIG_KEYS.items() if known.default is None}
    assert without - OWN_KEYS == NO_DEFAULT | JVM_KEYS


def test_a_configuration_shows_a_default_for_each_key_that_has_one() -> None:
    assert BrokerConfig().keys() == CONFIG_KEYS.keys() - NO_DEFAULT - OWN_KEYS - JVM_KEYS


def test_all_that_a_real_broker_shows_can_be_read_again(caplog: pytest.LogCaptureFixture) -> None:
    text = "".join(f"{key}={value}\n" for key, value in recorded().items())
    with caplog.at_level(logging.WARNING):
        assert dict(BrokerConfig.parse(text)) == recorded()
    unused = ", ".join(sorted(UNUSED_KEYS & recorded().keys()))
    assert caplog.messages == [f"broker configuration: keys of RocketMQ that have no effect here: {unused}"]


def test_the_bytes_for_mqadmin_are_lines_of_keys_and_values() -> None:
    config = BrokerConfig({"brokerName": "a"})
    assert dict(line.split("=", 1) for line in config.to_body().decode().splitlines()) == dict(config)
    assert config.to_text().splitlines() == sorted(config.to_text().splitlines())


def test_how_full_a_disk_may_be_is_a_ratio_that_is_shown_where_it_is_set() -> None:
    warning, forcibly = sorted(JVM_KEYS, reverse=True)
    config = BrokerConfig.parse(f"{warning}=0.97\nbrokerName=a\n")
    options = retention_options(config)
    assert (options.warning_ratio, options.force_ratio) == (97, 85)
    assert retention_options(BrokerConfig({forcibly: "1.0"})).force_ratio == 100
    assert b"diskSpace" not in BrokerConfig().to_body()
    assert f"{warning}=0.97\n".encode() in config.to_body()
    assert f"{warning}=0.97\n" in config.to_text()
    for wrong in ("0", "1.1", "97", "-0.5", "0.975", ""):
        with pytest.raises(ArgumentError, match="a ratio of"):
            BrokerConfig({warning: wrong})


def test_an_unknown_key_warns_and_stays(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        config = BrokerConfig.parse("brokerNaem=typo\nlistenPort=1\n")
    assert "brokerNaem" in caplog.text
    assert config["brokerNaem"] == "typo"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("listenPort", "x"),
        ("listenPort", ""),
        ("listenPort", "2147483648"),
        ("listenPort", "1" * 5000),
        ("listenPort", "\N{ARABIC-INDIC DIGIT ONE}"),
        ("brokerId", "9223372036854775808"),
        ("autoCreateTopicEnable", "yes"),
        ("flushDiskType", "NEVER"),
        ("brokerRole", "FOLLOWER"),
        ("brokerName", "a\nlistenPort=1"),
        ("unknown", "a\rb"),
    ],
)
def test_a_value_of_another_kind_is_refused_by_name(key: str, value: str) -> None:
    with pytest.raises(ArgumentError, match=key):
        BrokerConfig({key: value})


def test_values_are_taken_without_blanks_and_flags_in_any_case() -> None:
    config = BrokerConfig({"autoCreateTopicEnable": " FALSE ", "listenPort": " 7 "})
    assert config["autoCreateTopicEnable"] == "false"
    assert (config.number("listenPort"), config.number("haListenPort")) == (7, 8)
    assert config.broker_address == "127.0.0.1:7"
    assert not config.flag("autoCreateTopicEnable")


def test_only_keys_of_the_list_change_while_the_broker_runs(caplog: pytest.LogCaptureFixture) -> None:
    configuration = Configuration(BrokerConfig(), now=1)
    values = {"brokerPermission": "4", "flushDiskType": "SYNC_FLUSH", "brokerName": "zzz", "nobody": "knows"}
    with caplog.at_level(logging.WARNING):
        assert configuration.update(values, now=2) == {"brokerPermission": "4"}
    assert "brokerName, flushDiskType, nobody" in caplog.text
    assert configuration.current == BrokerConfig({"brokerPermission": "4"})
    assert (configuration.data_version.counter, configuration.data_version.timestamp) == (1, 2)


def test_a_wrong_value_changes_nothing() -> None:
    configuration = Configuration(BrokerConfig(), now=1)
    with pytest.raises(ArgumentError, match="brokerPermission: expected a whole number of 32 bits, got 'abc'"):
        configuration.update({"defaultTopicQueueNums": "3", "brokerPermission": "abc"}, now=2)
    assert configuration.current == BrokerConfig()
    assert configuration.data_version.counter == 0


def test_what_changes_at_run_time_is_what_the_table_says() -> None:
    live = {key for key, known in CONFIG_KEYS.items() if known.effect is Effect.LIVE}
    assert {key for key in CONFIG_KEYS if may_change(key)} == live
    assert {"brokerPermission", "autoCreateTopicEnable"} <= live
    assert not live & {"brokerName", "listenPort", "storePathRootDir", "flushDiskType", "aclEnable"}
