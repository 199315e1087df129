"""Each page that shows code has a test that runs it."""

from __future__ import annotations

import re

from .documents import ROOT
from .test_tutorials import OF_SPARK, PAGES

#: Tutorials and how-to pages are found by themselves: `test_tutorials.py`.
RUN_BY = {
    "broker.md": "tests/cli/test_broker_document.py",
    "cli.md": "tests/cli/test_cli_document.py",
    "clients.md": "tests/examples/test_clients_document.py",
    "coming-from/java.md": "tests/website/test_coming_from.py",
    "coming-from/kafka.md": "tests/website/test_coming_from.py",
    "coming-from/rocketmq-client-python.md": "tests/website/test_coming_from.py",
    "dashboard.md": "tests/dashboard/test_document.py",
    "doctor.md": "tests/doctor/test_document.py",
    "index.md": "tests/examples/test_home_page.py",
    "metrics.md": "tests/metrics/test_document.py",
    "mirror.md": "tests/mirror/test_mirror_document.py",
    "recipes/airflow.md": "tests/recipes/test_recipes.py",
    "recipes/dagster.md": "tests/recipes/test_recipes.py",
    "recipes/dbt.md": "tests/recipes/test_recipes.py",
    "security.md": "tests/cli/test_secured_cluster.py",
    "slaves.md": "tests/embedded/test_slaves_document.py",
    "spark-live.md": "tests/spark/test_documents.py",
    "spark-sink.md": "tests/spark/test_documents.py",
    "spark.md": "tests/spark/test_documents.py",
    "testing.md": "tests/testing/test_plugin.py",
    **OF_SPARK,
}
#: `py` is the code of another client. `bash` installs this one, as the README, which `tests/release/matrix.py` types.
_CODE = re.compile(r"^```(python|sh|java|sql)\b", re.MULTILINE)


def test_each_page_with_code_is_run_by_a_test() -> None:
    pages = {path.relative_to(ROOT / "docs").as_posix(): path for path in (ROOT / "docs").rglob("*.md")}
    shown = {name for name, path in pages.items() if _CODE.search(path.read_text(encoding="utf-8"))}
    # what a translation shows is the same: tests/website/test_translations.py
    assert {name for name in shown if not name.endswith(".zh.md")} == {*RUN_BY, *PAGES}


def test_each_of_these_tests_names_its_page() -> None:
    for page, test in RUN_BY.items():
        assert page.rpartition("/")[2] in (ROOT / test).read_text(encoding="utf-8"), (page, test)
