"""A real broker of 4.9.4 with access control, beside ours: the same requests, the same answers."""

from __future__ import annotations

import json
import operator
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rmqfast.acl import AccessValidator, AclProcessor
from rmqfast.errors import ResponseError
from rmqfast.remoting import Request, Response
from rmqfast.remoting.credentials import Credentials
from rmqfast.remoting.processor import process
from tests.interop.rocketmq import RocketMQ
from tests.waiting import PATIENCE, until

from . import acl_questions, acl_requests
from .acl_requests import request, validator
from .live_server import Wire
from .mutations import json_frame

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

#: The broker is asked from here; its tools ask from 127.0.0.1, unsigned.
SOURCE = "127.0.0.2"
QUESTIONS = [question for question, _ in acl_questions.golden()]
#: The file of accounts that the first requests are checked with.
PLAIN_ACL = QUESTIONS[[question["op"] for question in QUESTIONS].index("check") - 1]["files"]["conf/plain_acl.yml"]
RULES = PLAIN_ACL.replace("- 10.10.103.*\n", "- 10.10.103.*\n- 127.0.0.1\n")
REQUESTS = [question for question in QUESTIONS if question["op"] == "sign" and "token" not in question]
EXCEPTION = "org.apache.rocketmq.acl.common.AclException: "
#: Bodies that make no sense are refused before the account is looked at there, after it here.
SENSELESS = "PlainAccessValidator.parse"

Answer = dict[str, Any]


class Asking(Wire):
    """A connection to a broker: a request goes out, its answer comes back, or nothing in a second."""

    def __init__(self, port: int) -> None:
        super().__init__(f"127.0.0.1:{port}", (SOURCE, 0))
        self._opaque = 0

    def request(self, wanted: Request, *, patience: float = 1.0) -> Answer | None:
        self._opaque += 1
        self.socket.sendall(json_frame(wanted.code, dict(wanted.ext_fields), wanted.body, opaque=self._opaque))
        self.socket.settimeout(patience)
        try:
            while True:
                header, body = self.answer()
                if header["opaque"] == self._opaque and header["flag"] & 1:
                    return {**header, "body": body}
        except TimeoutError:
            return None


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Asking, Path]]:
    home = tmp_path_factory.mktemp("acl")
    (home / "home/conf").mkdir(parents=True)
    (home / "home/conf/plain_acl.yml").write_text(RULES, encoding="utf-8")
    with (
        RocketMQ("4.9.4", home, "aclEnable=true", "mappedFileSizeCommitLog=1048576", clean=False) as cluster,
        Asking(cluster.broker_port) as wire,
    ):
        yield wire, home


def test_a_real_broker_refuses_what_is_refused_here_with_the_same_remark(
    broker: tuple[Asking, Path], tmp_path: Path
) -> None:
    wire, _ = broker
    ours = validator(tmp_path, {"conf/plain_acl.yml": RULES}, "java")
    refused = 0
    for sent in REQUESTS:
        for access_key, secret_key in [
            ("RocketMQ", "12345678"),
            ("RocketMQ", "wrong"),
            ("nobody-knows", "x"),
            ("", ""),
        ]:
            keys = {"accessKey": access_key, "secretKey": secret_key} if access_key else {}
            request_of = {name: sent[name] for name in ("code", "ext", "body")}
            wanted = acl_requests.asked(request_of | {"address": f"{SOURCE}:1", **keys})
            remark = acl_requests.refusal(ours, wanted)
            # what passes may be answered late, or never: a pull waits, some codes have no answer
            answer = wire.request(wanted, patience=PATIENCE if remark else 0.05)
            theirs = (answer or {}).get("remark") or ""
            if SENSELESS in theirs or SENSELESS in (remark or ""):
                assert remark, wanted
                assert theirs.startswith(EXCEPTION), wanted
            elif "_UNIQUE_KEY_QUERY" in wanted.ext_fields and "signature" in theirs:
                continue
            else:
                assert (remark or "") == (theirs if theirs.startswith(EXCEPTION) else ""), wanted
            refused += remark is not None
    assert refused > 300


def both(wire: Asking, ours: AccessValidator, processor: AclProcessor, wanted: Request) -> tuple[Answer, Answer]:
    theirs = wire.request(wanted, patience=PATIENCE)
    assert theirs is not None, wanted
    told = {
        "code": theirs["code"],
        "remark": theirs.get("remark"),
        "ext": theirs.get("extFields"),
        "body": theirs["body"],
    }
    try:
        ours.check(wanted)
        answer = process(processor.processors(), wanted)
    except ResponseError as error:
        answer = Response(error.code, error.remark)
    assert isinstance(answer, Response)
    ext = None if answer.ext_fields is None else dict(answer.ext_fields)
    return told, {"code": int(answer.code), "remark": answer.remark, "ext": ext, "body": answer.body}


def test_a_real_broker_maintains_its_accounts_as_this_one_does(broker: tuple[Asking, Path], tmp_path: Path) -> None:
    wire, home = broker
    ours = validator(tmp_path / "home", {"conf/plain_acl.yml": RULES}, "java")
    port = wire.socket.getpeername()[1]
    names = {"cluster_name": "DefaultCluster", "broker_name": "broker-a", "broker_address": f"127.0.0.1:{port}"}
    processor = AclProcessor(ours, **names)
    admin = Credentials("rocketmq2", "87654321")
    asked: list[tuple[int, dict[str, str]]] = [
        (52, {}),
        (54, {}),
        (50, {"accessKey": "newcomer", "secretKey": "newcomer", "admin": "true", "topicPerms": "a=PUB,b=SUB|PUB"}),
        (50, {"accessKey": "newcomer", "secretKey": "short"}),
        (50, {"accessKey": "newcomer", "secretKey": "newcomer", "groupPerms": "a"}),
        (50, {"accessKey": "newcomer", "secretKey": "newcomer", "groupPerms": "a=b"}),
        (50, {}),
        (51, {"accessKey": "adminWithPerms"}),
        (51, {"accessKey": "nobody-knows"}),
        (51, {}),
        (53, {"globalWhiteAddrs": "10.10.103.*,127.0.0.1,1.2.3.4", "aclFileFullPath": ""}),
        (53, {"globalWhiteAddrs": "1.2.3.4", "aclFileFullPath": "/etc/passwd"}),
        (53, {}),
        (52, {}),
        (54, {}),
    ]
    for number, (code, fields) in enumerate(asked):
        wanted = request(code, admin.signed_fields(fields), peer=f"{SOURCE}:1")

        def answers(wanted: Request = wanted) -> tuple[Answer, Answer]:
            theirs, here = both(wire, ours, processor, wanted)
            return masked(theirs, home), masked(here, tmp_path)

        if number == len(asked) - 2:
            # Java's single version, other than those by file, follows when the file is read again
            until(lambda ask=answers: operator.eq(*ask()), lambda ask=answers: ask())  # type: ignore[misc]
        theirs, here = answers()
        assert theirs == here, (code, fields)


def masked(answer: Answer, home: Path) -> Answer:
    """Without times and without the path of the files; of an answer that has no header, Java makes an empty one."""
    fields = {}
    for name, text in (answer["ext"] or {}).items():
        value = json.loads(text.replace(str(home), "")) if text.startswith("{") else text
        for version in [value, *value.values()] if isinstance(value, dict) else []:
            if isinstance(version, dict):
                version.pop("timestamp", None)
        fields[name] = value
    return {**answer, "ext": fields}
