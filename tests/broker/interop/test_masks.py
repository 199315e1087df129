"""The masks of the interop tests: covered and compared values."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import masks
from .cluster import OurCluster
from .mqadmin import STATUS, printed
from .record_rows import properties

KEY = "FD00000000000000000000000000000250745FFD2B2767C304AA0000"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (f"sent {KEY} to 127.0.0.1:25010", "sent <id> to <address>"),
        ("at 1795232033965, on 2026-11-22 00:37:49,123", "at <ms>, on <time>"),
        ("CODE: 17 DESC: No topic route info", "CODE: 17 DESC: No topic route info"),
        ("request queueId[99] is illegal", "request queueId[99] is illegal"),
    ],
)
def test_a_text_loses_its_ids_addresses_and_times_only(text: str, masked: str) -> None:
    assert masks.text(text) == masked


def test_a_row_keeps_the_names_of_properties_that_are_made_anew(tmp_path: Path) -> None:
    row = {"properties": {"UNIQ_KEY": KEY, "KEYS": "k1", "REAL_QID": "3"}, "queueOffset": 5, "seen": ["o1 0", "o1 1"]}
    kept = masks.row(row, OurCluster(tmp_path))
    assert kept == row | {"properties": {"UNIQ_KEY": "<masked>", "KEYS": "k1", "REAL_QID": "3"}}


@pytest.mark.parametrize(
    ("line", "masked"),
    [
        ("broker-a   3    0     14      2026-11-22 00:37:49,123", "broker-a 3 0 14 <time>"),
        ("adm   broker-a  0  4  3  192.0.2.2  1  N/A", "adm broker-a 0 4 3 <host> 1 N/A"),
        ("storePathRootDir                   =  /tmp/x/mq/store", "storePathRootDir = <figure>"),
        ("maxTransferCountOnMessageInMemory  =  40", "maxTransferCountOnMessageInMemory = 40"),
        ("192.0.2.2@23006#54245502488774  127.0.0.1:46640  JAVA  V4_9_4", "<client> <address> JAVA V4_9_4"),
        # zeroes at the front of an object's hash are not printed
        ("messageListener  :  rmqlab.Consume@8f6d", "messageListener : rmqlab.Consume<object>"),
        ("messageListener  :  rmqlab.Consume$1@60a1807c", "messageListener : rmqlab.Consume$1<object>"),
        # the nanoseconds that a machine has run, where they look like a time of mqadmin's or like milliseconds
        ("192.0.2.2@23006#20880502488774  127.0.0.1:46640  JAVA  V4_9_4", "<client> <address> JAVA V4_9_4"),
        ("192.0.2.2@23006#1795502488774  127.0.0.1:46640  JAVA  V4_9_4", "<client> <address> JAVA V4_9_4"),
    ],
)
def test_a_line_of_mqadmin_keeps_what_a_broker_decides(line: str, masked: str) -> None:
    assert printed(line, {}) == masked


def test_of_the_status_of_a_broker_the_names_are_compared() -> None:
    assert printed("msgPutTotalTodayNow  : 13", {}, STATUS) == "msgPutTotalTodayNow : <figure>"
    assert printed("commitLogDiskRatio_/tmp/a/store: 0.5", {}, STATUS) == "commitLogDiskRatio: <figure>"


def test_a_stored_message_keeps_the_key_that_its_client_made() -> None:
    assert properties(f"UNIQ_KEY\x01{KEY}\x02ORIGIN_MESSAGE_ID\x017F00\x02") == {
        "UNIQ_KEY": KEY,
        "ORIGIN_MESSAGE_ID": "<masked>",
    }
