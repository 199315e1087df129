"""The pictures of the examples, each from the output of its program."""

from __future__ import annotations

import re
from collections.abc import Callable

from website.pictures.drawing import Drawing

_WIDTH = 760


def starting_points(output: str) -> str:
    """The first offset of a new and of a known group in a queue of 100 messages, by starting point."""
    tables = output.strip().split("\n\n")
    picture = Drawing("Where groups begin in a queue of 100 messages", _WIDTH, 60 + 130 * len(tables))
    left, scale = 250, 4.6
    for number, table in enumerate(tables):
        head, _, *rows = table.splitlines()
        top = 20 + 140 * number
        picture.text(20, top + 12, head.partition(";")[0], "bold")
        for row, line in enumerate(rows):
            name, new, known = line.split()
            y = top + 26 + 30 * row
            picture.text(20, y + 15, name, "small")
            picture.box(left, y, 100 * scale, 20, "none")
            for offset, kind in ((int(new), "c0"), (int(known), "c1")):
                picture.box(left + offset * scale - 3, y - 3, 7, 26, kind)
        for offset in (0, 60, 70, 100):
            picture.text(left + offset * scale, top + 26 + 30 * len(rows) + 12, str(offset), "small center")
    y = picture.height - 22
    legend = ((20, "c0", "a new group begins here"), (250, "c1", "a group whose offset is 70 begins here"))
    for x, kind, words in legend:
        picture.box(x, y - 8, 10, 14, kind)
        picture.text(x + 18, y + 4, words, "small")
    return picture.svg()


def sharing_queues(output: str) -> str:
    """Which member has which queue after each change."""
    lines = [line for line in output.splitlines() if "|" in line]
    members = [name.strip() for name in lines[0].split("|")[1:]]
    picture = Drawing("Which member has which of the 8 queues, after each change", _WIDTH, 60 + 32 * len(lines[1:]))
    for queue in range(8):
        picture.text(170 + 70 * queue, 24, f"queue {queue}", "small center")
    for row, line in enumerate(lines[1:]):
        change, *shares = [cell.strip() for cell in line.split("|")]
        y = 36 + 32 * row
        picture.text(20, y + 18, change)
        for number, share in enumerate(shares):
            for its in share.split() if share != "-" else []:
                picture.box(136 + 70 * int(its), y, 68, 26, f"c{number}")
                picture.text(170 + 70 * int(its), y + 18, members[number], "on center")
    return picture.svg()


def pulling_by_hand(output: str) -> str:
    """The pulls of queue 1: from which offset, how far, with which status."""
    pulls = re.findall(r"from +(\d+), '(.+?)' *: (\w+) +(\d+) messages, next (\d+)", output.partition("queue 1:")[2])
    picture = Drawing("Pulls of a queue of 64 messages", _WIDTH, 66 + 32 * len(pulls))
    left, scale = 180, 4.7
    for offset in (0, 32, 64):
        picture.text(left + offset * scale, 24, str(offset), "small center")
    for row, (start, tags, status, messages, following) in enumerate(pulls):
        y = 36 + 32 * row
        picture.text(20, y + 16, f"from {start}, '{tags}'")
        picture.box(left, y, 64 * scale, 22, "none")
        first, last = min(int(start), 64), int(following)
        if last > first:
            picture.box(left + first * scale, y, (last - first) * scale, 22, "c0" if int(messages) else "c1")
        picture.box(left + last * scale - 2, y - 3, 5, 28, "c2")
        picture.text(left + 64 * scale + 16, y + 16, f"{status}, {messages} messages, next {following}", "small")
    y = picture.height - 14
    legend = ((20, "c0", "messages came"), (170, "c1", "none matched"), (370, "c2", "the next pull begins here"))
    for x, kind, words in legend:
        picture.box(x, y - 9, 12, 12, kind)
        picture.text(x + 18, y + 2, words, "small")
    return picture.svg()


def lite_pull_to_commit_log(output: str) -> str:
    """From a group's offset to the entry of the consume queue, and from there to the record."""
    offset, entry_byte = _numbers(r"consumequeue, entry (\d+), 20 bytes from byte (\d+)", output)
    size, position = _numbers(r"commitlog, (\d+) bytes from byte (\d+)", output)
    sent = _numbers(r"sent: (\d+) messages", output)[0]
    picture = Drawing("From a group's offset to the commit log", _WIDTH, 270)
    left, scale = 140, 590 / sent
    marked = left + offset * scale
    for row, (name, colour) in enumerate((("queue 0", "c0"), ("consume queue", "c1"))):
        y = 50 + 80 * row
        picture.text(20, y + 17, name)
        for number in range(sent):
            picture.box(left + number * scale, y, scale, 24, colour if number == offset else "none")
    picture.text(marked, 40, f"offset {offset}: the next to consume", "small center")
    picture.text(left, 96, "0", "small")
    picture.text(left + 590, 96, str(sent - 1), "small end")
    picture.arrow(marked + scale / 2, 76, marked + scale / 2, 126)
    picture.text(marked - 8, 118, f"entry {offset}: byte {entry_byte} = {offset} · 20", "small end")
    picture.text(20, 227, "commit log")
    picture.box(left, 210, 590, 24, "none")
    picture.box(marked - 30, 210, 90, 24, "c2")
    picture.arrow(marked + scale / 2, 156, marked + scale / 2, 206)
    picture.text(marked - 8, 188, "the entry has the record's place, its size and its tag's hash", "small end")
    picture.text(marked + 15, 252, f"{size} bytes from byte {position}", "small center")
    return picture.svg()


def inconsistent_subscription(output: str) -> str:
    """Which message of which queue was consumed, and which nobody saw."""
    outcomes = re.findall(r"^(B\d): \w+; (\w+):", output, re.MULTILINE)
    members = dict(re.findall(r"^(\w+) wants (\w+), has queues", output, re.MULTILINE))
    queues = re.findall(r"^(\w+) wants \w+, has queues \[(.*?)\]", output, re.MULTILINE)
    owner = {int(queue): name for name, listed in queues for queue in listed.split(", ")}
    picture = Drawing("Messages that two members of a group consumed, and those that nobody saw", _WIDTH, 230)
    for queue, name in sorted(owner.items()):
        y = 20 + 42 * queue
        picture.text(20, y + 20, f"queue {queue}")
        picture.text(90, y + 20, f"{name}, subscribes to {members[name]}", "small")
        for offset in (0, 1):
            body, outcome = outcomes[queue + 4 * offset]
            picture.box(330 + 170 * offset, y, 164, 30, "done" if outcome == "CONSUMED" else "lost")
            picture.text(412 + 170 * offset, y + 20, f"{body}: {outcome.lower()}", "on center")
        picture.text(680, y + 20, "offset 2", "small")
    told = "All messages have TagB. The offsets are the same everywhere: they do not tell who saw a message."
    picture.text(20, 212, told, "small")
    return picture.svg()


def _numbers(pattern: str, text: str) -> tuple[int, ...]:
    found = re.search(pattern, text)
    if found is None:
        raise ValueError(f"expected {pattern} in {text}")
    return tuple(map(int, found.groups()))


#: A picture for each example.
PICTURES: dict[str, Callable[[str], str]] = {
    "starting_points": starting_points,
    "sharing_queues": sharing_queues,
    "pulling_by_hand": pulling_by_hand,
    "lite_pull_to_commit_log": lite_pull_to_commit_log,
    "inconsistent_subscription": inconsistent_subscription,
}
