"""Who may do what: the table of rights, signatures, and what is stricter here than in Java."""

from __future__ import annotations

import ast
import inspect
import json
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqfast.acl import RIGHTS, AccessValidator, access_validator
from rmqfast.acl.rights import ADMIN
from rmqfast.remoting import RequestCode
from rmqfast.remoting.credentials import STREAM_FIELDS, Credentials, signature_of

from .acl_requests import refusal, request, signed, validator

ACCOUNTS = """
accounts:
- {accessKey: nothing, secretKey: nothing}
- {accessKey: reader1, secretKey: reader1, topicPerms: [t=SUB], groupPerms: [g=SUB]}
- {accessKey: writer1, secretKey: writer1, topicPerms: [t=PUB]}
- {accessKey: theAdmin, secretKey: theAdmin, admin: true}
"""
GROUP_FIELDS = {"group": "g", "consumerGroup": "g", "topic": "t", "a": "g", "b": "t"}
LOCK = json.dumps({"clientId": "c", "consumerGroup": "g", "mqSet": []}).encode()
HEARTBEAT = b'{"consumerDataSet":[{"groupName":"g","subscriptionDataSet":[{"topic":"t"}]}]}'
CHANGING = {
    17, 25, 50, 51, 53, 100, 102, 103, 104, 200, 205, 207, 215, 216, 222, 306, 309, 314, 316, 318, 323, 327, 329,
}  # fmt: skip


@pytest.fixture
def strict(tmp_path: Path) -> AccessValidator:
    return validator(tmp_path, {"conf/plain_acl.yml": ACCOUNTS})


@pytest.fixture
def java(tmp_path: Path) -> AccessValidator:
    return validator(tmp_path, {"conf/plain_acl.yml": ACCOUNTS}, "java")


def test_every_request_code_has_a_row() -> None:
    assert set(RIGHTS) == set(RequestCode)
    assert all(right.reason for right in RIGHTS.values())


def test_every_code_that_changes_something_for_all_needs_an_administrator() -> None:
    assert {int(code) for code, right in RIGHTS.items() if right.strict is ADMIN} >= CHANGING


def test_strict_is_never_less_than_java() -> None:
    for code, right in RIGHTS.items():
        assert right.strict.admin >= right.java.admin, code
        if right.java.resources is None or right.strict.admin:
            continue
        assert right.strict.resources is not None
        for topic in ("t", "%RETRY%g", "%DLQ%g", "RMQ_SYS_TRACE_TOPIC", "SCHEDULE_TOPIC_XXXX"):
            fields = GROUP_FIELDS | {"topic": topic, "b": topic}
            heartbeat = HEARTBEAT.replace(b'"t"', f'"{topic}"'.encode())
            body = heartbeat if code == RequestCode.HEART_BEAT else LOCK
            strict = right.strict.resources(fields, body)
            for resource, permission in right.java.resources(fields, body).items():
                assert strict[resource] & permission, (code, resource)


def bodies(code: int) -> bytes:
    return HEARTBEAT if code == 34 else LOCK


@pytest.mark.parametrize("code", [*RequestCode, 999])
def test_no_code_passes_without_an_account_and_its_signature(
    strict: AccessValidator, java: AccessValidator, code: int
) -> None:
    for checked in (strict, java):
        assert "No accessKey is configured" in str(refusal(checked, request(code, GROUP_FIELDS, bodies(code))))
        forged = Credentials("theAdmin", "not its secret").signed_fields(GROUP_FIELDS, bodies(code))
        assert "Check signature failed" in str(refusal(checked, request(code, forged, bodies(code))))
        assert refusal(checked, signed("theAdmin", code, GROUP_FIELDS, bodies(code))) is None


@pytest.mark.parametrize("code", RequestCode)
def test_an_account_without_rights_passes_where_the_table_asks_for_none(strict: AccessValidator, code: int) -> None:
    remark = refusal(strict, signed("nothing", code, GROUP_FIELDS, bodies(code)))
    need = RIGHTS[code].strict
    if need.admin:
        assert remark is not None
        assert f"Need admin permission for request code={int(code)}, but accessKey=nothing is not" in remark
    elif need.resources is not None:
        assert remark is not None
        assert "No default permission for " in remark
    else:
        assert remark is None


SUB_ON_BOTH = {11, 12, 14, 15, 34, 35, 36, 38, 41, 42, 223, 307, 361}
EITHER = {29, 30, 31, 32, 321}


@pytest.mark.parametrize("code", sorted({10, 310, 320} | SUB_ON_BOTH | EITHER))
def test_pub_and_sub_are_told_apart(strict: AccessValidator, code: int) -> None:
    may_read = refusal(strict, signed("reader1", code, GROUP_FIELDS, bodies(code))) is None
    may_write = refusal(strict, signed("writer1", code, GROUP_FIELDS, bodies(code))) is None
    assert (may_read, may_write) == (code in SUB_ON_BOTH | EITHER, code in {10, 310, 320} | EITHER)


def test_a_batch_is_checked_unless_java_is_wanted(strict: AccessValidator, java: AccessValidator) -> None:
    batch = signed("reader1", 320, {"b": "t", "a": "g"})
    assert "No default permission for topic:t" in str(refusal(strict, batch))
    assert refusal(java, batch) is None


def test_nobody_makes_himself_an_administrator_unless_java_is_wanted(
    strict: AccessValidator, java: AccessValidator
) -> None:
    step = signed("nothing", 50, {"accessKey": "nothing", "secretKey": "nothing", "admin": "true"})
    assert "Need admin permission for request code=50" in str(refusal(strict, step))
    assert refusal(java, step) is None


def test_a_code_without_a_row_needs_an_administrator(strict: AccessValidator) -> None:
    assert "Need admin permission for request code=999" in str(refusal(strict, signed("nothing", 999)))


@pytest.mark.parametrize("key", ["Signature", "AccessKey", "topic", "x"])
def test_a_field_that_is_changed_on_the_way_breaks_the_signature(strict: AccessValidator, key: str) -> None:
    fields = {**signed("theAdmin", 28, {"topic": "t"}).ext_fields}
    fields[key] = fields.get(key, "") + "="
    assert refusal(strict, request(28, fields)) is not None


def test_a_body_that_is_changed_on_the_way_breaks_the_signature(strict: AccessValidator) -> None:
    fields = signed("theAdmin", 28, {}, b"body").ext_fields
    assert refusal(strict, request(28, fields, b"body")) is None
    assert refusal(strict, request(28, fields, b"Body")) is not None


@pytest.mark.parametrize("signature", ["", "é", "\ud800", "=", "A" * 100_000])
def test_a_signature_that_is_none_is_refused(strict: AccessValidator, signature: str) -> None:
    fields = {"AccessKey": "theAdmin", "Signature": signature}
    assert "Check signature failed" in str(refusal(strict, request(28, fields)))


@pytest.mark.parametrize("is_signed_too", [True, False])
def test_a_query_by_unique_key_may_be_signed_with_or_without_its_flag(
    strict: AccessValidator, is_signed_too: bool
) -> None:
    flag = {"_UNIQUE_KEY_QUERY": "true"}
    fields = Credentials("reader1", "reader1").signed_fields({"topic": "t"} | (flag if is_signed_too else {}))
    assert refusal(strict, request(12, fields | flag)) is None
    assert refusal(strict, request(12, fields | {"_UNIQUE_KEY_QUERY": "false", "x": "y"})) is not None


def test_signatures_are_compared_in_constant_time() -> None:
    tree = ast.parse(inspect.getsource(access_validator))
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    compared = functions["_is_signed"]
    calls = [ast.unparse(node.func) for node in ast.walk(compared) if isinstance(node, ast.Call)]
    assert calls.count("signature_of") == calls.count("hmac.compare_digest") == 2
    operators = [type(op) for node in ast.walk(compared) if isinstance(node, ast.Compare) for op in node.ops]
    assert ast.Eq not in operators
    assert ast.NotEq not in operators


def test_what_pull_consumers_add_is_signed() -> None:
    plain, stream = (Credentials("RocketMQ", "12345678").signed_fields(fields) for fields in ({}, STREAM_FIELDS))
    assert stream["ReqT"] == "0"
    assert stream["Signature"] != plain["Signature"]


def test_secrets_are_not_shown(strict: AccessValidator) -> None:
    credentials = Credentials("RocketMQ", "a secret", "a token")
    assert "secret'" not in repr(credentials)
    assert "token'" not in repr(credentials)
    assert "secret_key" not in repr(strict.rules)


@given(st.dictionaries(st.text(), st.text()), st.binary(), st.text(min_size=7), st.none() | st.text())
def test_what_is_signed_passes(fields: Mapping[str, str], body: bytes, secret: str, token: str | None) -> None:
    sent = Credentials("theAdmin", secret, token).signed_fields(fields, body)
    key = secret.encode("utf-8", "replace")
    assert signature_of(dict(reversed(sent.items())), body, key).decode() == sent["Signature"]
    assert {**fields, **sent} == sent or {"AccessKey", "Signature", "SecurityToken"} & set(fields)
    assert signature_of(sent, body + b"x", key).decode() != sent["Signature"]


@cache
def checked_once() -> AccessValidator:
    with tempfile.TemporaryDirectory() as home:
        return validator(Path(home), {"conf/plain_acl.yml": ACCOUNTS})


_FIELDS = st.dictionaries(st.sampled_from([*GROUP_FIELDS, "_UNIQUE_KEY_QUERY", "x"]), st.text())
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(
            st.sampled_from(["consumerDataSet", "subscriptionDataSet", "groupName", "topic", "consumerGroup"]), inner
        )
    ),
)


@given(st.sampled_from(RequestCode), _FIELDS, st.binary() | _JSON.map(lambda value: json.dumps(value).encode()))
def test_whatever_comes_passes_or_is_refused(code: int, fields: Mapping[str, str], body: bytes) -> None:
    checked = checked_once()
    for keys in ("nothing", "reader1", "theAdmin"):
        remark = refusal(checked, signed(keys, code, fields, body))
        assert remark is None or remark.startswith("org.apache.rocketmq.acl.common.AclException: ")


def test_a_white_list_comes_before_everything_else(tmp_path: Path) -> None:
    text = (
        "globalWhiteRemoteAddresses: [10.0.0.*]\n"
        + ACCOUNTS
        + "- {accessKey: atHome1, secretKey: atHome1, whiteRemoteAddress: 1.2.3.4}\n"
    )
    checked = validator(tmp_path, {"conf/plain_acl.yml": text})
    assert refusal(checked, request(50, peer="10.0.0.1:1")) is None
    assert refusal(checked, request(50, peer="10.0.1.1:1")) is not None
    assert refusal(checked, request(50, {"AccessKey": "atHome1"}, peer="1.2.3.4:1")) is None
    assert refusal(checked, request(50, {"AccessKey": "atHome1"}, peer="1.2.3.5:1")) is not None
    for odd in ("", ":", "10.0.0.1", "unix:/x", "10.0.0.*:1", "10.0.0.1.evil.org:1"):
        assert (refusal(checked, request(50, peer=odd)) is None) == (odd == "10.0.0.1")


SENSELESS = [
    b"",
    b"{",
    b"[]",
    b"null",
    b"[" * 100_000,
    b"\xff\xfe",
    b'{"consumerDataSet":{}}',
    b'{"consumerDataSet":[1]}',
    b'{"consumerDataSet":[{"groupName":1}]}',
    b'{"consumerDataSet":[{"subscriptionDataSet":[{"topic":[]}]}]}',
]


@pytest.mark.parametrize("body", SENSELESS, ids=range(len(SENSELESS)))
@pytest.mark.parametrize("code", [34, 41])
def test_a_body_that_makes_no_sense_is_refused(strict: AccessValidator, code: int, body: bytes) -> None:
    if code == 41 and b"consumerDataSet" in body:
        body = b'{"consumerGroup":7}'
    assert "PlainAccessValidator.parse" in str(refusal(strict, signed("reader1", code, {}, body)))
