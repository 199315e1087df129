"""Requests and files for the tests of access control."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path

from rmqfast.acl import AccessValidator, AclFiles, Mode
from rmqfast.errors import ResponseError
from rmqfast.remoting import Request
from rmqfast.remoting.credentials import Credentials

from .acl_questions import Question
from .client_doubles import Line

NOW = 1_700_000_000_000


def request(
    code: int, fields: Mapping[str, str] | None = None, body: bytes = b"", *, peer: str = "1.2.3.4:5678"
) -> Request:
    return Request(code, fields or {}, body, Line(peer))


def signed(keys: str, code: int, fields: Mapping[str, str] | None = None, body: bytes = b"") -> Request:
    """A request of the account `keys`, whose secret is its name."""
    return request(code, Credentials(keys, keys).signed_fields(fields or {}, body), body)


def asked(question: Question) -> Request:
    """The request that a question is about."""
    fields, body = question["ext"] or {}, base64.b64decode(question["body"] or "")
    if "accessKey" in question:
        credentials = Credentials(question["accessKey"], question["secretKey"], question.get("token"))
        fields = credentials.signed_fields(fields, body)
    return request(question["code"], fields, body, peer=question.get("address", "1.2.3.4:5678"))


def validator(home: Path, files: Mapping[str, str], mode: Mode = "strict") -> AccessValidator:
    """A validator over files with these texts."""
    for name, text in files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return AccessValidator(AclFiles(home), lambda: NOW, mode=mode)


def refusal(checked: AccessValidator, wanted: Request) -> str | None:
    """Why a request may not pass."""
    try:
        checked.check(wanted)
    except ResponseError as error:
        return error.remark if error.code == 1 else f"code {error.code}"
    return None
