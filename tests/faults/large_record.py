"""One record of many megabytes: how much memory it takes to count and to encode it.

python -m tests.faults.large_record FOLDER MEGABYTES...
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.cli.process import BPE, environment

# Cut alike wherever it is: it begins with a letter and ends with a line break before one.
UNIT = "The quick brown fox, 1984 times, jumps over the lazy dog; naïve café — 東京 🙂 don't stop\n"


def write_record(folder: Path, size: int, kind: str) -> int:
    """Write a corpus of one document, ``size`` bytes or little less, and return its units."""
    folder.mkdir(parents=True)
    unit = UNIT.encode() if kind == "txt" else json.dumps(UNIT, ensure_ascii=False)[1:-1].encode()
    units = size // len(unit)
    block = min(units, 10_000)
    with (folder / f"one.{kind}").open("wb") as file:
        file.write(b"" if kind == "txt" else b'{"text": "')
        for _ in range(units // block):
            file.write(unit * block)
        file.write(unit * (units % block))
        file.write(b"" if kind == "txt" else b'"}\n')
    return units


def peak_mib(*arguments: str | Path) -> int:
    """Run ``bpe``, and say how much memory it has held."""
    process = subprocess.Popen([*BPE, *arguments], env=environment())
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return used.ru_maxrss >> 10


def main(folder: Path, sizes: list[int]) -> None:
    """Print what a record takes beyond one of 1 MB, for each kind of file, command and size."""
    for kind in ("jsonl", "txt"):
        peaks: dict[tuple[str, int], int] = {}
        for size in (1, *sizes):
            at = folder / f"{kind}-{size}"
            write_record(at / "in", size * 10**6, kind)
            inputs = ("--input", at / "in", "--workers", "1", "--quiet")
            if size == 1:
                train = ("train", *inputs, "--vocab-size", "300", "--output", folder / kind)
                peak_mib(*train)
            tokenizer = ("--tokenizer", folder / kind / "tokenizer.json")
            peaks["count", size] = peak_mib("count", *inputs, "--output", at / "counts")
            peaks["encode", size] = peak_mib("encode", *inputs, *tokenizer, "--output", at / "ids")
            for command in ("count", "encode"):
                more = peaks[command, size] - peaks[command, 1]
                print(f"{kind} {size} MB: {command} {peaks[command, size]} MiB, {more} more than")
                print(f"  for a small one: {more * 1.048576 / size:.1f} times its size", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), [int(size) for size in sys.argv[2:]])
