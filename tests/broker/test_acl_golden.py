"""Signing and checking, beside what the real classes of RocketMQ 4.9.4 answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from rmqfast.acl import AccessValidator
from rmqfast.acl.account import AccountConfig
from rmqfast.acl.address import address_of, parse_pattern
from rmqfast.acl.permission import check_resources, parse_permission
from rmqfast.acl.rules import Change, RemoveAccount, SetAccount, SetWhiteAddresses
from rmqfast.errors import ArgumentError

from . import acl_questions, acl_requests
from .acl_questions import Question

ENTRIES = acl_questions.golden()
PARSE_FRAME = "PlainAccessValidator.parse(PlainAccessValidator.java:134)"


def of(*operations: str) -> Iterator[tuple[Question, Question]]:
    return ((question, answer) for question, answer in ENTRIES if question["op"] in operations)


def test_a_request_is_signed_as_the_client_of_java_signs_it() -> None:
    for question, answer in of("sign"):
        assert acl_requests.asked(question).ext_fields == answer["ext"], question


#: Where the two part, and why.
PATTERNS_APART = {
    "::ffff:1.2.3.4": "is an address of IPv4; Java writes it as IPv6 and matches nobody",
    "fe80:0:0:0:0:0:0:*": "takes in an address with a zone, which Java cannot parse",
    "5:6:7:8:9:a:b:c:*": "has nine groups; Java takes it and fails at the first address that begins so",
    "fe80::g:*": "has a group that is no number; Java takes it and matches nobody",
    "12345::*": "has a group that is too long; Java takes it and matches nobody",
}


def test_a_pattern_takes_in_the_addresses_that_it_takes_in_for_java() -> None:
    apart = set()
    for question, answer in of("pattern"):
        text = question["pattern"]
        try:
            pattern = parse_pattern(text)
            found: object = [pattern.matches(address_of(address + ":1")) for address in question["addresses"]]
        except ArgumentError as refused:
            found = str(refused)
        # what Java fails over in another way, if only when it comes to match, is refused at once, with a text of ours
        wanted = answer["error"] if answer.get("class") == "AclException" else answer.get("matches", found)
        if found != wanted or ("error" in answer) != isinstance(found, str):
            apart.add(text)
    assert apart - PATTERNS_THAT_JAVA_CANNOT_MATCH <= set(PATTERNS_APART)
    assert "fe80::g:*" in apart  # the comparison sees what differs


#: Java takes them, and throws at some addresses and says no to the others.
PATTERNS_THAT_JAVA_CANNOT_MATCH = {
    question["pattern"] for question, answer in of("pattern") if answer.get("class") not in {None, "AclException"}
} - set(PATTERNS_APART)


def test_a_pattern_that_java_cannot_match_is_refused() -> None:
    for text in PATTERNS_THAT_JAVA_CANNOT_MATCH:
        with pytest.raises(ArgumentError):
            parse_pattern(text)


def test_a_permission_is_read_as_java_reads_it() -> None:
    for question, answer in of("permission"):
        assert parse_permission(question["text"]) == answer["permission"], question


def test_entries_of_a_request_are_refused_with_the_texts_of_java() -> None:
    for question, answer in of("resources"):
        if "error" not in answer:
            check_resources(question["resources"] or ())
            continue
        with pytest.raises(ArgumentError) as refused:
            check_resources(question["resources"])
        assert str(refused.value) == answer["error"], question


def test_files_are_taken_and_refused_as_java_does(tmp_path: Path) -> None:
    for number, (question, answer) in enumerate(of("rules")):
        home = tmp_path / str(number)
        if "error" not in answer:
            acl_requests.validator(home, question["files"])
            continue
        with pytest.raises(ArgumentError) as refused:
            acl_requests.validator(home, question["files"])
        assert str(home) in str(refused.value)
        if "reader" not in answer["error"]:  # the texts of the YAML library are its own
            assert str(refused.value).endswith(answer["error"]), question


def test_requests_pass_or_are_refused_as_java_does_with_its_remark(tmp_path: Path) -> None:
    checked: AccessValidator | None = None
    asked = 0
    for number, (question, answer) in enumerate(of("rules", "check")):
        if question["op"] == "rules":
            home = tmp_path / str(number)
            checked = None if "error" in answer else acl_requests.validator(home, question["files"], "java")
            continue
        assert checked is not None
        remark = acl_requests.refusal(checked, acl_requests.asked(question))
        asked += 1
        if PARSE_FRAME in (expected := answer.get("remark", "")):
            # whose body makes no sense; here the account comes first, then the body
            assert remark is not None, question
        elif "_UNIQUE_KEY_QUERY" in (question["ext"] or {}) and "signature" in expected:
            assert remark is None or "signature" not in remark or question["secretKey"] in {"other-file", "12345678"}
        else:
            assert remark == answer.get("remark"), question
    assert asked > 2000


def test_changes_leave_the_file_that_java_leaves(tmp_path: Path) -> None:
    changed: AccessValidator | None = None
    for number, (question, answer) in enumerate(of("rules", "update", "delete", "white", "all")):
        if question["op"] == "rules":
            home = tmp_path / str(number)
            changed = None if "error" in answer else acl_requests.validator(home, question["files"])
            continue
        assert changed is not None
        if question["op"] == "all":
            rules = changed.rules
            configs = [config.to_members() for config in rules.configs]
            assert {"globalWhiteAddrs": list(rules.white_addresses), "plainAccessConfigs": configs} == answer["config"]
            continue
        if "error" in answer:
            with pytest.raises(ArgumentError) as refused:
                changed.change(change_of(question, home))
            assert str(refused.value) == answer["error"], question
        else:
            assert changed.change(change_of(question, home)) == answer["done"], question
            text = changed.default_path.read_text(encoding="utf-8")
            assert without_times(text) == without_times(answer["file"]), question


def change_of(question: Question, home: Path) -> Change:
    if question["op"] == "update":
        return SetAccount(AccountConfig.from_members(question["account"]))
    if question["op"] == "delete":
        return RemoveAccount(question["accessKey"])
    addresses, file = question["addresses"], question["file"]
    return SetWhiteAddresses(None if addresses is None else tuple(addresses), str(home / file) if file else file)


def without_times(text: str) -> object:
    members = yaml.safe_load(text) or {}
    for version in members.get("dataVersion", ()):
        version["timestamp"] = 0
    return members


@pytest.mark.long
def test_the_real_classes_answer_as_the_golden_file_says() -> None:
    asked = [question for question, _ in ENTRIES]
    golden = [(question, acl_questions.masked(answer)) for question, answer in ENTRIES]
    assert list(zip(asked, acl_questions.answers(asked), strict=True)) == golden
