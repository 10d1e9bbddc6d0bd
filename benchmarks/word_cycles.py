"""Nanoseconds, and cycles, a pre-token of the two hot loops: counting, and encoding what is known.

    python -m benchmarks.word_cycles

The loops are as fast as the compiler makes them: where GCC 12 left the making of a key out of line,
encoding took 14 ns in place of 8 on the same machine (LOG.md). Run it after a change of compiler,
or of its flags, and compare it with the build before.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

import bpe
from benchmarks import vocabularies
from benchmarks.corpora import ENGLISH, column, described
from benchmarks.scale import MB
from bpe.counting import PretokenCounter
from bpe.pretokenizer import Pretokenizer

if TYPE_CHECKING:
    from collections.abc import Callable

VOCABULARY = "r50k_base"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--megabytes", type=click.IntRange(1), default=30, show_default=True)
@click.option("--passes", type=click.IntRange(1), default=7, show_default=True)
def main(*, megabytes: int, passes: int) -> None:
    """Print the least CPU time a pre-token of several passes, the first not among them."""
    texts = column(ENGLISH, megabytes * MB)
    tokenizer = vocabularies.load(VOCABULARY)
    counter = PretokenCounter(Pretokenizer(vocabularies.PUBLISHED[VOCABULARY].pretokenizer))
    words = bpe.count_pretokens(texts).totals.pretokens
    click.echo(f"{words / 1e6:.1f} million pre-tokens, {described(ENGLISH)}, {VOCABULARY}")
    for name, work in (
        ("counting", lambda: counter.add(texts)),
        ("encoding", lambda: tokenizer.encode_arrow(texts)),
    ):
        each = _least(work, passes) / words
        click.echo(f"{name}: {each:.1f} ns{_cycles(each)}")


def _least(work: Callable[[], object], passes: int) -> float:
    """Nanoseconds of CPU of the fastest pass."""
    work()
    taken = []
    for _ in range(passes):
        began = time.process_time_ns()
        work()
        taken.append(time.process_time_ns() - began)
    return min(taken)


def _cycles(nanoseconds: float) -> str:
    """The same in cycles of the processor, where Linux says how fast its clock is."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return ""
    clock = next((line.split(":")[1] for line in lines if line.startswith("cpu MHz")), None)
    return f", {nanoseconds * float(clock) / 1e3:.0f} cycles" if clock else ""


if __name__ == "__main__":
    main()
