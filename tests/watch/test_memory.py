"""How much memory a watch takes over a long time; prints what it measured (pytest -s)."""

from __future__ import annotations

import json
import signal
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipelines.watch.counting import FAN_IN
from tests.pipelines.corpora import sentence, small_tokenizer
from tests.watch.drops import running, taken, wait_for

if TYPE_CHECKING:
    import subprocess

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(sys.platform != "linux", reason="memory is read from Linux's /proc"),
]
INTERVAL = 0.1
LOOKS = 3000
FILES = 3000
BATCH = 50
FEW = 3 * FAN_IN  # sets of three levels


def resident(process: subprocess.Popen[str]) -> float:
    """What a process holds in memory, in MB."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) * 1024 / 1e6


def write(folder: Path, first: int, files: int) -> None:
    for number in range(first, first + files):
        lines = [json.dumps({"id": f"{number}-{i}", "text": sentence(number + i)}) for i in (0, 1)]
        hidden = folder / f".{number:06}.jsonl"
        hidden.write_text("\n".join(lines))
        hidden.rename(folder / f"{number:06}.jsonl")


def entries(output: Path) -> list[Path]:
    return list((output / "log").iterdir())


def has_taken(output: Path, files: int) -> bool:
    return taken(output) >= files


@pytest.mark.parametrize("what", ["encode", "count"])
def test_memory_is_bounded(tmp_path: Path, what: str) -> None:
    """By the number of files that were taken, and by no number of looks at them."""
    inputs, output = tmp_path / "in", tmp_path / "out"
    inputs.mkdir()
    small_tokenizer(tmp_path / "t.json")
    command = [what, "--watch", "in/*.jsonl", "--output", "out", "--settle", "0", "-q"]
    command += ["--tokenizer", "t.json"] if what == "encode" else []
    with running(*command, "--interval", str(INTERVAL), cwd=tmp_path) as process:
        write(inputs, 0, BATCH)
        wait_for(partial(has_taken, output, BATCH), process)
        looking = [resident(process)]
        for _ in range(10):
            time.sleep(LOOKS * INTERVAL / 10)
            looking.append(resident(process))
        taking = [looking[-1]]
        for first in range(BATCH, FILES, BATCH):
            write(inputs, first, BATCH)
            wait_for(partial(has_taken, output, first + BATCH), process)
            taking.append(resident(process))
        if what == "count":  # sets are added up behind the files that come
            wait_for(lambda: len(entries(output)) <= FEW, process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(300) == 0
    print(json.dumps({"what": what, "looking": looking, "taking": taking}))
    assert len(entries(output)) <= (0 if what == "encode" else FEW)
    # What Python takes at first it keeps; from then on nothing comes to it.
    assert looking[-1] - looking[4] < 10
    assert taking[-1] - taking[len(taking) // 4] < 60
