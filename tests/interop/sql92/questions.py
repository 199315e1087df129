"""Writes the questions for FilterOracle as JSON lines: the rules, a table of odd numbers, and seeded random ones."""

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path

Question = tuple[str, dict[str, str]]

ODD_NUMBERS = [
    *(
        "0",
        "-0",
        "+5",
        "-5",
        "007",
        "5",
        "05",
        "5.0",
        "5.",
        ".5",
        " 5",
        "5 ",
        "\t5\n",
        "5L",
        "5f",
        "5D",
        "5.5",
        "1e1",
        "1E+1",
    ),
    *(
        "1e",
        "e1",
        "+",
        "-",
        ".",
        "",
        " ",
        "NaN",
        "-NaN",
        "nan",
        "Infinity",
        "-Infinity",
        "inf",
        "0x5",
        "0x1p2",
        "0X.8P3f",
    ),
    *("0x1.4p2", "-0x5p0", "0x1.fffffffffffff8p0", "0x0.80001p-1074", "0x1.00000000000008p0", "0x1.8p-1074", "0xp1"),
    *("2147483647", "2147483648", "-2147483648", "-2147483649", "9223372036854775807", "9223372036854775808"),
    *(
        "1e400",
        "1e-400",
        "4.9E-324",
        "2.4e-324",
        "2.5e-324",
        "1_000",
        "--5",
        "+-5",
        "5a",
        "٥",  # noqa: RUF001  a digit to Java
        "５",  # noqa: RUF001  a digit to Java
        "५",
        "𝟓",  # noqa: RUF001  a digit to Java
        "½",
        "true",
        "TRUE",
    ),
    *("9007199254740993", "0.1", "1.7976931348623157e308", "1.7976931348623159e308", "1ff", "1e5d", "x", "\u00a05"),
]
OTHER_SIDES = ["5", "-5", "3000000000", "5.0", "4.9E-324", "TRUE", "'5'", "b"]

NAMES = ["a", "b", "c", "In", "nul", "$d", "_e"]
VALUES = ["1", "2", "1", "3", "10", "0", "2.5", "x", "true", "", "3000000000", "-1", "1.0", "y"]
INTEGERS = ["0", "1", "2", "3", "10", "1L", "3000000000", "2147483648"]
DECIMALS = ["2.5", ".5", "1e1", "1.0", "2."]
STRINGS = ["'x'", "'y'", "'1'", "''", "'it''s'", "'true'"]
WORDS = ["TRUE", "false", "NULL"]
NOISE = [
    "(",
    ")",
    ",",
    "'",
    "=",
    "<>",
    "<",
    "NOT",
    "AND",
    "or",
    "IS",
    "NULL",
    "BETWEEN",
    "IN",
    "-",
    "+",
    "@",
    "--",
    "/*",
    "*/",
    "\n",
    "0",
]


class Grammar:
    """Random expressions, mostly legal; `texts` also draws the operators of 5.x."""

    def __init__(self, seed: int, *, texts: bool) -> None:
        self.random = random.Random(seed)
        self.texts = texts

    def expression(self, depth: int) -> str:
        kind = self.random.randrange(8) if depth else 7
        if kind < 2:
            return f"{self.expression(depth - 1)} {self.random.choice(['AND', 'and'])} {self.expression(depth - 1)}"
        if kind < 4:
            return f"{self.expression(depth - 1)} OR {self.expression(depth - 1)}"
        if kind == 4:
            return f"NOT ({self.expression(depth - 1)})"
        if kind == 5:
            right = f"({self.expression(depth - 1)})" if self.random.random() < 0.5 else self.operand(0)
            return f"({self.expression(depth - 1)}) {self.random.choice(['=', '<>'])} {right}"
        return f"({self.expression(depth - 1)})" if kind == 6 else self.predicate(depth)

    def predicate(self, depth: int) -> str:  # noqa: PLR0911  one return for each rule of the grammar
        negated = self.random.choice(["", "NOT "])
        kind = self.random.randrange(12)
        if kind < 4:
            return f"{self.number()} {self.random.choice(['>', '>=', '<', '<='])} {self.number()}"
        left = self.operand(depth)
        if kind < 7:
            return f"{left} {self.random.choice(['=', '<>'])} {self.operand(depth)}"
        if kind == 7:
            return f"{self.number()} {negated}BETWEEN {self.number()} AND {self.number()}"
        if kind == 8:
            items = ", ".join(self.random.choices(STRINGS, k=self.random.randint(1, 7)))
            return f"{self.random.choice(NAMES)} {negated}IN ({items})"
        if kind == 9:
            return f"{left} IS {negated}NULL"
        if self.texts:
            word = self.random.choice(["CONTAINS", "StartsWith", "ENDSWITH"])
            return f"{left} {negated}{word} {self.random.choice(STRINGS)}"
        return f"{negated}{self.random.choice(NAMES)}" if kind == 10 else self.random.choice(WORDS)

    def number(self) -> str:
        """An operand of `>`; one of twenty is not a number."""
        kind = self.random.randrange(20)
        if kind < 11:
            return self.random.choice(NAMES)
        if kind < 16:
            return self.random.choice(["", "", "-", "+"]) + self.random.choice(INTEGERS)
        return self.random.choice(["", "-"]) + self.random.choice(DECIMALS) if kind < 19 else self.operand(1)

    def operand(self, depth: int) -> str:
        kind = self.random.randrange(16)
        if kind < 12:
            return self.number()
        if kind < 14:
            return self.random.choice(STRINGS)
        if kind == 14 and depth:
            return f"({self.expression(depth - 1)})"
        return self.random.choice(WORDS[:2] if self.random.random() < 0.8 else WORDS)

    def broken(self, text: str) -> str:
        """`text` with a piece removed, doubled or put in."""
        at = self.random.randrange(len(text) + 1)
        to = min(len(text), at + self.random.randint(1, 4))
        kind = self.random.randrange(4)
        if kind == 0:
            return text[:at] + text[to:]
        if kind == 1:
            return text[:to] + text[at:]
        return (
            text[:at]
            + self.random.choice(["", " "])
            + self.random.choice(NOISE)
            + self.random.choice(["", " "])
            + text[at:]
        )

    def properties(self, text: str) -> dict[str, str]:
        used = [name for name in NAMES if name in text]
        return {name: self.random.choice(VALUES) for name in used if self.random.random() < 0.8}

    def questions(self, count: int) -> Iterator[Question]:
        for _ in range(count):
            text = self.expression(self.random.randrange(4))
            if self.random.random() < 0.2:
                text = self.broken(text)
            for _ in range(self.random.randint(1, 3)):
                yield text, self.properties(text)


def rules() -> Iterator[Question]:
    for line in (Path(__file__).parent / "rules.jsonl").read_text("utf-8").splitlines():
        expression, *property_sets = json.loads(line)
        for properties in property_sets:
            yield expression, properties


def odd_numbers() -> Iterator[Question]:
    for number in ODD_NUMBERS:
        for side in OTHER_SIDES:
            for text in (f"a = {side}", f"a >= {side}", f"{side} < a"):
                yield text, {"a": number} | ({"b": "5"} if side == "b" else {})


def questions(version: str) -> Iterator[Question]:
    """Those of 5.x are fewer: only what it adds to 4.x is new."""
    yield from rules()
    if version.startswith("4"):
        yield from odd_numbers()
        yield from Grammar(92, texts=False).questions(3000)
    yield from Grammar(53, texts=True).questions(300 if version.startswith("4") else 1200)


if __name__ == "__main__":
    asked: set[str] = set()
    for expression, properties in questions(sys.argv[1]):
        line = json.dumps({"expr": expression, "props": properties}, ensure_ascii=False, separators=(",", ":"))
        if line not in asked:
            asked.add(line)
            sys.stdout.buffer.write(line.encode() + b"\n")
