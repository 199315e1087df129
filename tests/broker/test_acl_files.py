"""Files with accounts: hostile ones, changed ones, and those that requests change."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from rmqfast.acl import AccessValidator, AclFiles, AclProcessor, yaml_text
from rmqfast.broker.access import access_processors
from rmqfast.broker.configuration.config import BrokerConfig
from rmqfast.errors import ArgumentError, MissingExtraError
from rmqfast.remoting import Request, RequestCode, Response
from rmqfast.remoting.processor import process

from .acl_requests import NOW, refusal, request, signed, validator

PLAIN = "conf/plain_acl.yml"
ONE = "accounts:\n- {accessKey: firstOne, secretKey: firstOne, admin: true} # a comment\n"
TWO = ONE + "- {accessKey: secondOne, secretKey: secondOne}\n"

Answer = Callable[..., Response]


def bomb(depth: int) -> str:
    lists = [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]" for level in range(1, depth)]
    return "\n".join(["a0: &a0 [x, x, x]", *lists]) + "\n"


def merge_bomb(depth: int) -> str:
    maps = [
        f"a{level}: &a{level}\n  <<: [{', '.join([f'*a{level - 1}'] * 9)}]\n  k{level}: 1" for level in range(1, depth)
    ]
    return "\n".join(["a0: &a0 {x: 1}", *maps]) + "\n"


HOSTILE = {
    "bomb": bomb(12),
    "merge bomb": merge_bomb(12),
    "endless": "a: &a [*a]\n",
    "endless mapping": "&a {b: *a}\n",
    "deep": "a: " + "[" * 600,
    "deep blocks": "- " * 3_000,
    "python": "a: !!python/object/apply:os.system [exit 1]\n",
    "a name of python": "a: !!python/name:os.system\n",
    "empty number": 'a: !!int ""\n',
    "no time": "a: !!timestamp x\n",
    "a day that is none": "a: 2020-99-99\n",
    "a number that is long": "a: " + "9" * 5_000,
    "sixty by sixty": "a: " + ":".join(["59"] * 10_000),
    "a key that is a list": "? [a]\n: b\n",
    "secret that is bytes": "accounts: [{accessKey: firstOne, secretKey: !!binary c2VjcmV0c2VjcmV0}]\n",
    "control": "a: \x01\n",
    "two documents": "a: 1\n---\nb: 2\n",
    "unknown alias": "a: *b\n",
    "large": "# " + "x" * (1 << 20),
    "many": "a: [" + "1," * 3_000 + "]",
    "text": "just a text",
    "number of an account": "accounts: 1\n",
    "entries that are texts": "accounts: [a, b]\n",
    "secret that is a list": "accounts: [{accessKey: firstOne, secretKey: [a]}]\n",
    "secret that is a fraction": "accounts: [{accessKey: firstOne, secretKey: 1234567.8}]\n",
    "flag that is none": "accounts: [{accessKey: firstOne, secretKey: firstOne, admin: maybe}]\n",
    "permissions that are a text": "accounts: [{accessKey: firstOne, secretKey: firstOne, topicPerms: a=SUB}]\n",
    "white list that is a mapping": "globalWhiteRemoteAddresses: {a: b}\n",
    "version": "dataVersion: [1]\n",
    "version that is large": "dataVersion: [{counter: 99999999999999999999, timestamp: 1}]\n",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_file_is_refused_and_the_old_rules_stay(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(yaml_text, "MAX_NODES", 2_000)
    checked = validator(tmp_path, {PLAIN: ONE})
    (tmp_path / PLAIN).write_text(text)
    assert not checked.reload_if_changed()
    assert refusal(checked, signed("firstOne", 17)) is None
    assert str(tmp_path / PLAIN) in caplog.text


def test_nothing_starts_with_a_file_that_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"plain_acl\.yml: no YAML of plain values"):
        validator(tmp_path, {PLAIN: HOSTILE["bomb"]})


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    checked = validator(tmp_path, {PLAIN: ONE})
    (tmp_path / PLAIN).write_bytes(b"accounts: \xff\xfe\x80")
    assert not checked.reload_if_changed()


def test_aliases_that_save_typing_are_allowed() -> None:
    text = b"base: &base {secretKey: 12345678}\naccounts:\n- {<<: *base, accessKey: RocketMQ}\n"
    assert yaml_text.load(text)["accounts"] == [{"accessKey": "RocketMQ", "secretKey": 12345678}]


def test_what_is_written_reads_back() -> None:
    texts = ["12345678", "yes", "null", "ü🚀", "x: y", "- z", "", " ", "#", "a\nb", "2020-01-01", "0x10"]
    members = {"a": [*texts, 7, True, None]}
    assert yaml_text.load(yaml_text.dump(members)) == members


def test_new_rules_hold_once_they_are_asked_for(tmp_path: Path) -> None:
    checked = validator(tmp_path, {PLAIN: ONE})
    assert not checked.reload_if_changed()
    times = (tmp_path / PLAIN).stat()
    (tmp_path / PLAIN).write_text(ONE.replace("firstOne", "otherOne"))
    os.utime(tmp_path / PLAIN, ns=(times.st_atime_ns, times.st_mtime_ns))  # the content counts, not the time
    assert refusal(checked, signed("firstOne", 28)) is None
    assert checked.reload_if_changed()
    assert "No acl config for firstOne" in str(refusal(checked, signed("firstOne", 28)))
    assert refusal(checked, signed("otherOne", 28)) is None
    assert not checked.reload_if_changed()


def test_a_broken_file_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    checked = validator(tmp_path, {PLAIN: ONE})
    (tmp_path / PLAIN).write_text("accounts: [")
    assert [checked.reload_if_changed() for _ in range(3)] == [False] * 3
    assert len([record for record in caplog.records if "the rules stay as they were" in record.message]) == 1
    (tmp_path / PLAIN).write_text(TWO)
    assert checked.reload_if_changed()


def test_files_come_and_go(tmp_path: Path) -> None:
    checked = validator(tmp_path, {PLAIN: ONE, "conf/acl/deeper/x.yaml": TWO.replace("firstOne", "thirdOne")})
    assert set(checked.rules.accounts) == {"firstOne", "secondOne", "thirdOne"}
    (tmp_path / "conf/acl/deeper/x.yaml").unlink()
    (tmp_path / "conf/acl/new.yml").write_text(TWO)
    (tmp_path / "conf/acl/new.txt").write_text("accounts: [")
    assert checked.reload_if_changed()
    assert {key: path.name for key, path in checked.rules.paths.items()} == {
        "firstOne": "new.yml",
        "secondOne": "new.yml",
    }


def test_without_files_nobody_may_do_anything(tmp_path: Path) -> None:
    checked = AccessValidator(AclFiles(tmp_path), lambda: NOW)
    assert "No acl config for firstOne" in str(refusal(checked, signed("firstOne", 28)))
    assert not list(tmp_path.iterdir())


def test_a_pipe_among_the_files_keeps_nobody_waiting(tmp_path: Path) -> None:
    (tmp_path / "conf/acl").mkdir(parents=True)
    os.mkfifo(tmp_path / "conf/acl/pipe.yml")
    assert not AclFiles(tmp_path).read()


def test_without_the_library_the_error_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'rmqfast\[broker\]'"):
        validator(tmp_path, {PLAIN: ONE})


@pytest.fixture
def served(tmp_path: Path) -> tuple[AccessValidator, Callable[[Request], Response]]:
    checked = validator(tmp_path, {PLAIN: ONE, "conf/acl/two.yml": TWO.replace("firstOne", "thirdOne")})
    names = {"cluster_name": "c", "broker_name": "b", "broker_address": "127.0.0.1:10911"}
    processors = AclProcessor(checked, **names).processors()

    def answer(wanted: Request) -> Response:
        answered = process(processors, wanted)
        assert isinstance(answered, Response)
        return answered

    return checked, answer


Served = tuple[AccessValidator, Callable[[Request], Response]]


def test_an_account_that_is_set_may_do_at_once_what_it_may(served: Served, tmp_path: Path) -> None:
    checked, answer = served
    fields = {"accessKey": "newcomer", "secretKey": "newcomer", "topicPerms": "t=PUB,u=SUB", "groupPerms": "g=SUB"}
    (tmp_path / PLAIN).chmod(0o640)
    assert answer(request(50, fields)).code == 0
    assert refusal(checked, signed("newcomer", 310, {"b": "t"})) is None
    assert refusal(checked, signed("newcomer", 310, {"b": "u"})) is not None
    members = yaml.safe_load((tmp_path / PLAIN).read_text())
    assert members["dataVersion"] == [{"counter": 1, "timestamp": NOW}]
    assert [account["accessKey"] for account in members["accounts"]] == ["firstOne", "newcomer"]
    assert (tmp_path / PLAIN).stat().st_mode & 0o777 == 0o640
    assert not [path for path in (tmp_path / "conf").iterdir() if path.name.startswith(".")]
    assert not checked.reload_if_changed()


def test_an_account_is_changed_in_its_own_file_and_keeps_what_is_not_stated(served: Served, tmp_path: Path) -> None:
    checked, answer = served
    assert (
        answer(request(50, {"accessKey": "secondOne", "secretKey": "otherSecret", "defaultTopicPerm": "SUB"})).code == 0
    )
    assert answer(request(50, {"accessKey": "secondOne", "secretKey": "thirdSecret", "defaultTopicPerm": ""})).code == 0
    assert (tmp_path / PLAIN).read_text() == ONE
    accounts = yaml.safe_load((tmp_path / "conf/acl/two.yml").read_text())["accounts"]
    assert accounts[1] == {
        "accessKey": "secondOne",
        "secretKey": "thirdSecret",
        "admin": False,
        "defaultTopicPerm": "SUB",
    }
    assert checked.rules.accounts["secondOne"].secret_key == b"thirdSecret"


@pytest.mark.parametrize(
    ("wanted", "answered", "remark"),
    [
        (request(50, {}), 209, "The accessKey=null and secretKey=null cannot be null and length should longer than 6"),
        (request(50, {"accessKey": "newcomer", "secretKey": "newcomer", "topicPerms": ""}), 209,
         "Parse Resource format error for .\nThe expected resource format is 'Res=Perm'. For example: topicA=SUB"),
        (request(50, {"accessKey": "newcomer", "secretKey": "newcomer", "whiteRemoteAddress": "1.2.3.999"}), 209, None),
        (request(51, {"accessKey": "nobody"}), 210,
         "The accesskey[nobody] corresponding to accessConfig has been deleted failed."),
        (request(51, {}), 210, "The accesskey[null] corresponding to accessConfig has been deleted failed."),
        (request(53, {}), 211, "The globalWhiteAddresses[null] has been updated failed."),
        (request(53, {"globalWhiteAddrs": "1.2.3.4", "aclFileFullPath": "/etc/passwd"}), 211,
         "The globalWhiteAddresses[1.2.3.4] has been updated failed."),
        (request(53, {"globalWhiteAddrs": "1.2.3.4,x"}), 211, None),
    ],
)  # fmt: skip
def test_a_change_that_is_refused_changes_nothing(
    served: Served, tmp_path: Path, wanted: Request, answered: int, remark: str | None
) -> None:
    checked, answer = served
    before = checked.rules
    refused = answer(wanted)
    assert refused.code == answered
    assert remark is None or refused.remark == remark
    assert checked.rules is before
    assert (tmp_path / PLAIN).read_text() == ONE


def test_an_account_that_is_removed_is_gone(served: Served, tmp_path: Path) -> None:
    checked, answer = served
    assert answer(request(51, {"accessKey": "secondOne"})).code == 0
    assert "No acl config" in str(refusal(checked, signed("secondOne", 28)))
    assert [
        account["accessKey"] for account in yaml.safe_load((tmp_path / "conf/acl/two.yml").read_text())["accounts"]
    ] == ["thirdOne"]


def test_a_white_list_is_set_in_the_file_that_is_named(served: Served, tmp_path: Path) -> None:
    checked, answer = served
    other = tmp_path / "conf/acl/two.yml"
    assert answer(request(53, {"globalWhiteAddrs": "10.0.0.*,10.1.0.1", "aclFileFullPath": str(other)})).code == 0
    assert answer(request(53, {"globalWhiteAddrs": "10.2.0.1", "aclFileFullPath": ""})).code == 0
    assert checked.rules.white_addresses == ("10.0.0.*", "10.1.0.1", "10.2.0.1")
    assert refusal(checked, request(17, peer="10.0.0.9:1")) is None
    outside = tmp_path / "outside.yml"
    outside.write_text(ONE)
    crooked = f"{tmp_path}/conf/../outside.yml"
    assert answer(request(53, {"globalWhiteAddrs": "*", "aclFileFullPath": crooked})).code == 211
    assert outside.read_text() == ONE


def test_versions_and_accounts_are_told_as_java_tells_them(served: Served, tmp_path: Path) -> None:
    _, answer = served
    answer(request(53, {"globalWhiteAddrs": "10.2.0.1"}))
    told = answer(request(52)).ext_fields
    assert told is not None
    assert told["version"] == f'{{"counter":1,"timestamp":{NOW}}}'
    assert json.loads(told["allAclFileVersion"]) == {
        str(tmp_path / PLAIN): {"counter": 1, "timestamp": NOW},
        str(tmp_path / "conf/acl/two.yml"): {"counter": 0, "timestamp": NOW},
    }
    assert (told["clusterName"], told["brokerName"], told["brokerAddr"]) == ("c", "b", "127.0.0.1:10911")
    assert answer(request(54)).body == (
        b'{"globalWhiteAddrs":["10.2.0.1"],"plainAccessConfigs":[{"accessKey":"thirdOne","admin":true,"secretKey":"thirdOne"},'
        b'{"accessKey":"secondOne","admin":false,"secretKey":"secondOne"},{"accessKey":"firstOne","admin":true,"secretKey":"firstOne"}]}'
    )


def test_where_access_control_is_off_these_requests_say_so() -> None:
    processors = access_processors(BrokerConfig(), None)
    codes = {code: process(processors, request(code, {"globalWhiteAddrs": "*"})) for code in range(50, 55)}
    assert {code: answered.code for code, answered in codes.items() if isinstance(answered, Response)} == {
        50: 209, 51: 210, 52: 1, 53: 211, 54: 1,
    }  # fmt: skip


def test_changes_side_by_side_lose_nothing(served: Served, tmp_path: Path) -> None:
    checked, answer = served
    stop = threading.Event()
    wrong: list[str] = []

    def ask() -> None:
        while not stop.is_set():
            remark = refusal(checked, signed("firstOne", 17))
            if remark is not None:
                wrong.append(remark)

    def change(number: int) -> None:
        for round_ in range(5):
            answer(request(50, {"accessKey": f"account{number}{round_}", "secretKey": "1234567"}))
            checked.reload_if_changed()

    reader = threading.Thread(target=ask)
    writers = [threading.Thread(target=change, args=(number,)) for number in range(4)]
    for thread in (reader, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    stop.set()
    reader.join()
    assert not wrong
    members = yaml.safe_load((tmp_path / PLAIN).read_text())
    assert len(members["accounts"]) == 21
    assert members["dataVersion"][0]["counter"] == 20


def test_a_disk_that_is_full_leaves_the_old_file_and_the_old_rules(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked, answer = served

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        refused = answer(request(51, {"accessKey": "firstOne"}))
    assert (refused.code, refused.remark) == (210, f"{tmp_path / PLAIN}: No space left on device")
    assert (tmp_path / PLAIN).read_text() == ONE
    assert refusal(checked, signed("firstOne", 17)) is None
    assert len(list((tmp_path / "conf").iterdir())) == 2


def test_all_five_codes_are_answered(served: Served) -> None:
    wanted = {code for code in RequestCode if "ACL" in code.name or "GLOBAL_WHITE" in code.name}
    assert all(set(access_processors(BrokerConfig(), access)) == wanted for access in (None, served[0]))
