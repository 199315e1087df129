"""Some seeds of each subject; `make losses` runs more of them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.effort import effort

from .__main__ import SUBJECTS
from .attempt import SilentLoss, judge

TRUTH = {1: "one", 2: "two"}


@pytest.mark.parametrize("name", SUBJECTS)
def test_every_row_is_true_and_every_missing_row_is_told(name: str, tmp_path: Path) -> None:
    subject = SUBJECTS[name]()
    try:
        for seed in range(1_000_001, 1_000_001 + effort("RMQFAST_LOSSES", 10, 500)):
            directory = tmp_path / str(seed)
            directory.mkdir()
            subject.attempt(random.Random(f"{name} {seed}"), directory)
    finally:
        subject.close()


@pytest.mark.parametrize(
    ("returned", "fault"),
    [
        ([(1, "one")], "1 of 2 rows are missing and not told, the first 2"),
        ([(1, "one"), (2, "three")], "the row 2 is 'three', expected 'two'"),
        ([(1, "one"), (2, "two"), (2, "two")], "the row 2 was returned twice"),
        ([(3, "three")], "the row 3 was never written"),
    ],
)
def test_the_oracle_sees_a_silent_loss(returned: list[tuple[int, str]], fault: str) -> None:
    with pytest.raises(SilentLoss, match=fault):
        judge("a reader", TRUTH, returned, told=lambda _: False)


def test_the_oracle_shows_the_columns_that_differ() -> None:
    rows = {"queue": 1, "body": b"x"}, {"queue": 1, "body": b"y"}
    with pytest.raises(SilentLoss, match=r"the row 1 is \{'body': b'y'\}, expected \{'body': b'x'\}"):
        judge("a reader", {1: rows[0]}, [(1, rows[1])], told=lambda _: False)


def test_a_missing_row_that_is_told_is_no_silent_loss() -> None:
    assert judge("a reader", TRUTH, [(1, "one")], told=lambda key: key == 2) == (1, 1)
