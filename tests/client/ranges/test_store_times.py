"""Where a time begins in a queue, however wrong the hint is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rmqfast.client.ranges.topic_routes import first_offset_at

TIMES = st.lists(st.integers(0, 60), max_size=40).map(sorted)


@given(TIMES, st.integers(-1, 61), st.integers(-5, 60), st.integers(0, 10), st.integers(0, 5))
def test_it_is_the_first_message_of_that_time_or_later(
    times: list[int], when: int, hint: int, first: int, expired: int
) -> None:
    bounds = (first, first + len(times))

    def store_time(offset: int) -> int | None:
        assert bounds[0] <= offset < bounds[1]
        return None if offset < first + expired else times[offset - first]

    wanted = next((at for at, stored in enumerate(times) if at >= expired and stored >= when), len(times))
    assert first_offset_at(when, bounds, hint, store_time) == first + wanted


def test_a_right_hint_takes_two_looks() -> None:
    looks = []

    def store_time(offset: int) -> int:
        looks.append(offset)
        return offset

    assert first_offset_at(5000, (0, 1 << 30), 5000, store_time) == 5000
    assert looks == [5000, 4999]
