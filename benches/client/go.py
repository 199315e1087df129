"""RocketMQ's Go client, a program that is built here and run once for each figure."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

from data import scratch_dir
from machine import ROOT
from peer import Answer, Failed, Missing

SOURCE = ROOT / "tests/interop/go"
PATIENCE = 120


def build() -> Path:
    """The program, made anew where its sources are newer; its modules come from the module proxy."""
    if shutil.which("go") is None:
        raise Missing("go is not installed")
    program = scratch_dir() / "go/rmqgo"
    if not program.exists() or any(file.stat().st_mtime > program.stat().st_mtime for file in SOURCE.iterdir()):
        program.parent.mkdir(parents=True, exist_ok=True)
        command = ["go", "build", "-o", str(program), "."]
        done = subprocess.run(command, cwd=SOURCE, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Failed(f"go build: {done.stderr.strip()[:300]}")
    return program


def ask(program: Path, name_server: str, word: str, topic: str, *numbers: int) -> Answer:
    """Sends: `sync` or `async`, a topic, bytes of a body, messages, threads or messages on their way."""
    size, count, together = numbers
    command = [str(program), word, name_server, topic, str(size), str(together), str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    if done.returncode != 0:
        raise Failed(f"{word} of the Go client: {done.stderr.strip()[-300:]}")
    answer: Answer = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    return answer
