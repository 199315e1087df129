"""The code in `docs/clients.md` runs and prints what stands below it; the texts of its errors are those of the code."""

from __future__ import annotations

import pytest

from .documents import check_code, check_errors


@pytest.mark.long
def test_the_code_of_the_document_runs_and_prints_what_stands_below_it() -> None:
    check_code("clients.md")


def test_the_errors_of_the_document_are_raised_with_these_words() -> None:
    check_errors("clients.md")
