"""How far a range is read, and what an answer means for it: no socket, no clock.

```text
 answer                        unfiltered                     with a filter
 ────────────────────────────────────────────────────────────────────────────────────────────────────────────────
 messages, next offset         as many as offsets, or a loss  the broker left out what it left out
 nothing new, before the end   the queue ends too early: it is asked until patience ends, then that is a loss
 illegal, below the first      expired: a loss, goes on at the first that is there
 illegal, above the last       the queue ends too early, as above
 refused                       asked again until patience ends; at once an error where that will not change
```

Source: `PullMessageProcessor.processRequest`, `DefaultMessageStore.getMessage`, `PullStatus`.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from rmqfast.client.ranges.range_request import QueueRange
from rmqfast.errors import plain_remark, step_after
from rmqfast.remoting import ResponseCode

#: Refusals that no time will change: what the account, the topic or the group may, and how the broker is configured.
_FINAL = frozenset(
    {
        ResponseCode.NO_PERMISSION,
        ResponseCode.SUBSCRIPTION_PARSE_FAILED,
        ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
        ResponseCode.FILTER_DATA_NOT_EXIST,
    }
)
_NO_SQL = "filter message by SQL92"
_FINAL_TEXTS = ("AclException", "is illegal, topic", _NO_SQL)


class Answer(Protocol):
    """The answer to a pull, as `rmqfast._native.Fetched`."""

    @property
    def status(self) -> str:
        """FOUND, NO_NEW_MSG, NO_MATCHED_MSG, OFFSET_ILLEGAL or FAILED."""

    @property
    def begin_offset(self) -> int:
        """The requested offset."""

    @property
    def next_begin_offset(self) -> int:
        """The offset to continue at."""

    @property
    def min_offset(self) -> int:
        """First offset of the queue."""

    @property
    def max_offset(self) -> int:
        """The offset behind its last."""

    @property
    def is_end(self) -> bool:
        """Whether all before the range's end was handed out."""

    @property
    def code(self) -> int:
        """The broker's response code."""

    @property
    def remark(self) -> str:
        """The broker's remark."""

    def __len__(self) -> int:
        """Messages that the broker let through."""


class Verdict(NamedTuple):
    """What follows from an answer.

    Attributes:
        has_rows: Whether there are messages to hand out.
        loss: Messages that are not there, as a text; empty for none.
        seek: Where the range goes on though the answer did not lead there; at once, or later where `is_late`.
        is_late: Whether to wait before.
        refusal: What a broker says that will never answer otherwise; empty for none.
    """

    has_rows: bool = False
    loss: str = ""
    seek: int | None = None
    is_late: bool = False
    refusal: str = ""


class RangeProgress:
    """How far a range is read.

    Args:
        wanted: The range.
        is_filtered: Whether the broker leaves messages out.
        now: Seconds.

    Attributes:
        wanted: The range.
        next: The offset to go on at.
        is_done: Whether it is read to its end.
        trouble: Why it does not go on; empty where it does.
    """

    def __init__(self, wanted: QueueRange, *, is_filtered: bool, now: float) -> None:
        self.wanted, self._is_filtered = wanted, is_filtered
        self.next, self.is_done, self.trouble = wanted.start, wanted.start >= wanted.end, ""
        self._moved, self._last_max = now, -1

    def take(self, answer: Answer, now: float) -> Verdict:
        """Takes an answer; what it has is handed out by then.

        Args:
            answer: The answer to a pull.
            now: Seconds.
        """
        if answer.status == "FAILED":
            return self._refused(answer)
        if answer.max_offset > self._last_max:  # a broker that recovers lists its messages one by one
            self._last_max, self._moved = answer.max_offset, now
        if answer.status == "OFFSET_ILLEGAL":
            return self._illegal(answer, now)
        before, self.next = self.next, max(self.next, answer.next_begin_offset)
        self.is_done = answer.is_end or self.next >= self.wanted.end
        if self.next == before and not self.is_done:
            self.trouble = _ends_early(answer)
            return Verdict()
        self._moved, self.trouble = now, ""
        return Verdict(has_rows=len(answer) > 0, loss=self._gap(answer, before))

    def stalled(self, now: float) -> float:
        """For how many seconds nothing came."""
        return now - self._moved

    def give_up(self) -> Verdict:
        """The queue does not have the rest, and will not have it."""
        start, self.next, self.is_done = self.next, self.wanted.end, True
        return Verdict(loss=f"offsets {start} to {self.wanted.end}: {self.trouble}")

    @property
    def ends_early(self) -> bool:
        """Whether what it waits for is a queue that ends before the range does, not a broker that does not answer."""
        return self.trouble.startswith(_EARLY)

    def _refused(self, answer: Answer) -> Verdict:
        text = f"CODE: {answer.code}  DESC: {plain_remark(answer.remark)}" if answer.code >= 0 else answer.remark
        if not self.ends_early:
            self.trouble = text
        is_final = answer.code in _FINAL or (answer.code > 0 and any(part in answer.remark for part in _FINAL_TEXTS))
        return Verdict(refusal=text if is_final else "")

    def _illegal(self, answer: Answer, now: float) -> Verdict:
        if self.next >= answer.min_offset:
            self.trouble = _ends_early(answer)
            return Verdict(seek=self.next, is_late=True)
        start, self.next = self.next, min(answer.min_offset, self.wanted.end)
        self.is_done, self._moved = self.next >= self.wanted.end, now
        loss = f"offsets {start} to {self.next} have expired, the queue begins at {answer.min_offset}"
        return Verdict(loss=loss, seek=None if self.is_done else self.next)

    def _gap(self, answer: Answer, before: int) -> str:
        missing = answer.next_begin_offset - answer.begin_offset - len(answer)
        if self._is_filtered or missing <= 0:
            return ""
        return f"{missing} of offsets {before} to {self.next} are not in the broker's log any more"


def next_step_of(refusal: str) -> str:
    """What a person can do about a broker's refusal that no time will change.

    Args:
        refusal: The broker's words.

    Example:
        >>> next_step_of("The broker does not support consumer to filter message by SQL92")[:55]
        'set enablePropertyFilter=true in its broker.conf; or re'

    Source: `PullMessageProcessor.processRequest`, `ClientManageProcessor.checkClientConfig`.
    """
    if _NO_SQL in refusal:
        return "set enablePropertyFilter=true in its broker.conf; or read all messages and filter by properties['...']"
    return step_after(refusal) or "what the account, the group and the topic may is configured at the broker"


_EARLY = "the queue ends at "


def _ends_early(answer: Answer) -> str:
    return f"{_EARLY}{answer.max_offset}: its broker lost its last messages, or the topic was made anew"
