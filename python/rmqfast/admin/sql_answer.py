"""What a broker's filter says of an expression of SQL92 and a message.

Source: `ExpressionMessageFilter`, `MessageEvaluationContext`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_KEYWORDS = {"AND", "OR", "NOT", "BETWEEN", "IN", "IS", "NULL", "TRUE", "FALSE", "CONTAINS", "STARTSWITH", "ENDSWITH"}
#: Texts, comments and numbers are consumed, as there are no names in them.
_TOKEN = re.compile(r"'(?:[^']|'')*'|--[^\r\n]*|/\*.*?\*/|[0-9.][0-9A-Za-z.]*|([A-Za-z_$][A-Za-z0-9_$]*)", re.DOTALL)


@dataclass(frozen=True, kw_only=True, slots=True)
class SqlAnswer:
    """Whether an expression lets a message pass.

    Attributes:
        is_passed: Whether it does; `None` where the broker does not filter by it.
        values: The properties that it names, as the message has them; `None` for one that is missing.
        problem: Why the broker does not filter by it.
    """

    is_passed: bool | None = None
    values: Mapping[str, str | None] = field(default_factory=dict)
    problem: str | None = None

    @property
    def values_text(self) -> str:
        """The properties, for people.

        Example:
            >>> SqlAnswer(is_passed=False, values={"a": "1", "b": None}).values_text
            "a is '1', b is missing"
        """
        told = [f"{name} is {'missing' if value is None else repr(value)}" for name, value in self.values.items()]
        return ", ".join(told) or "it names no property"


def names_in(expression: str) -> list[str]:
    """The properties that an expression names, each once, in their order there.

    Args:
        expression: An expression of SQL92.

    Example:
        >>> names_in("a > 1 AND (region IN ('a b', 'it''s') OR a IS NULL) -- of 10L")
        ['a', 'region']

    Source: `SelectorParser.jj`.
    """
    found = (match[1] for match in _TOKEN.finditer(expression))
    return list(dict.fromkeys(name for name in found if name is not None and name.upper() not in _KEYWORDS))
