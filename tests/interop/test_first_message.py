"""The table of first messages; our broker refuses no pull of consumers with tags."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker.interop.cluster import OurCluster

from .first_message import ALL, Starts, table


def test_the_table_counts_starts_that_are_late_and_those_without_a_message() -> None:
    rows = [{"firstMessage": 1500.0, "heartbeats": [30.0, 1.0, 2.0], "refused": 0}] * 8
    rows += [{"firstMessage": 21_900.0, "heartbeats": [], "refused": 64}, {"firstMessage": None, "refused": 80}]
    *_, line = table({"ours": rows}).splitlines()
    assert line == ("| ours | 10 | 1500.0 / 21900.0 / 21900.0 / 21900.0 | 1 | 1 | 1 | 2 | 2.0 / 2.0 / 2.0 / 2.0 |")


@pytest.mark.long
@pytest.mark.timeout(400)
@pytest.mark.parametrize("tag", [ALL, "kept"])
def test_no_pull_of_a_consumer_of_tags_is_refused(tmp_path: Path, tag: str) -> None:
    starts = Starts("5.3.3", queues=1, tag=tag, together=4, is_known=False, is_fresh=False)
    with OurCluster(tmp_path / "mq") as cluster:
        starts.fill(cluster)
        rows = starts.play(cluster, 0, 24)
    assert [row["refused"] for row in rows] == [0] * 24
    assert all(row["firstMessage"] is not None for row in rows)
