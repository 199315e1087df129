"""The tree has the output of `make tables`, and a figure without a record is found."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "benchmarks.md"
RECORDS = ROOT / "benches" / "record"
COMMAND = (sys.executable, ROOT / "benches" / "tables.py", "--check")


def check(page: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, "--page", page], capture_output=True, text=True, check=False)


def test_the_tables_and_the_pictures_are_those_that_the_records_give() -> None:
    done = check(PAGE)
    assert (done.returncode, done.stderr) == (0, "")


def test_old_records_are_named_with_their_age() -> None:
    lines = re.findall(r"^table \S+: its record (\S+) is (\d+) commits old", check(PAGE).stdout, flags=re.MULTILINE)
    commits = {record: json.loads((RECORDS / f"{record}.json").read_text())["commit"] for record, _ in lines}
    counts = {record: count(commit) for record, commit in commits.items()}
    assert {(record, int(age)) for record, age in lines} == {(record, age or 0) for record, age in counts.items()}
    assert all(int(age) > 300 for _, age in lines)


def count(commit: str) -> int | None:
    """Commits since, if git knows the commit."""
    command = ("git", "rev-list", "--count", f"{commit}..HEAD")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return int(done.stdout) if done.returncode == 0 else None


def test_a_figure_of_a_table_that_differs_from_the_record_is_found(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    other = re.sub(r"(\d) k/s", lambda figure: f"{(int(figure[1]) + 1) % 10} k/s", text, count=1)
    (page := tmp_path / "page.md").write_text(other, encoding="utf-8")
    done = check(page)
    assert (done.returncode, done.stderr) == (1, f"{page}: not as it is made: make tables\n")


def test_a_figure_of_the_prose_that_no_command_gives_is_found(tmp_path: Path) -> None:
    prose = "\nIt reads 3.5 M rows/s.\n\n`make bench` gives 4 M rows/s.\n"
    (page := tmp_path / "page.md").write_text(PAGE.read_text(encoding="utf-8") + prose, encoding="utf-8")
    done = check(page)
    assert (done.returncode, done.stderr) == (1, f"{page}: typed and not from a record: 3.5 M\n")
