"""The body of a message as text: JSON in lines, plain, or hexadecimal."""

from __future__ import annotations

import json
from typing import Any

from rmqfast.cells import escape
from rmqfast.dashboard.page import Text
from rmqfast.errors import CorruptError

#: Forms of a body.
BODY_FORMS = ("json", "text", "hex")
#: Bytes of a body on the page of a message.
_BODY = 64 << 10


def body_text(found: Any, form: str) -> Text:
    """Returns a body as text: as JSON if it is, unless the form is another of `BODY_FORMS`."""
    try:
        body: bytes = found.body
    except CorruptError as error:
        return Text(title="body", text=str(error))
    shown = body[:_BODY]
    more = "" if len(body) <= _BODY else f"\n… {len(body) - _BODY} bytes more"
    if form == "hex":
        return Text(title="body", text=_hex_lines(shown) + more)
    if form != "text" and (parsed := _json_text(body)) is not None:
        return Text(title="body", text=parsed)
    if form == "json":
        return Text(title="body", text=f"no JSON of {_BODY} bytes or less\n")
    return Text(title="body", text=plain_text(shown) + more)


def plain_text(body: bytes) -> str:
    """Returns bytes as text that harms no page and no terminal."""
    text = body.decode("utf-8", "replace")
    return "\n".join(escape(line.replace("\t", "    ")) for line in text.splitlines())


def _json_text(body: bytes) -> str | None:
    """Returns a JSON body in lines; `None` if it is none, or too long."""
    if len(body) > _BODY:
        return None
    try:
        text = json.dumps(json.loads(body), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return None
    # Deeply nested, a short body would be a long text.
    return plain_text(text.encode("utf-8", "replace")) if len(text) <= 4 * _BODY else None


def _hex_lines(body: bytes) -> str:
    lines = []
    for start in range(0, len(body), 16):
        piece = body[start : start + 16]
        letters = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in piece)
        lines.append(f"{start:08x}  {piece.hex(' '):<47}  {letters}")
    return "\n".join(lines)
