"""The tables of docs/scale.md, from the files in ``benchmarks/results/``.

Everything is arithmetic on these files and on the few constants below; nothing is measured.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.corpora import ROOT
from benchmarks.pages import with_block
from benchmarks.synthetic import MEAN_BYTES, partial_rows
from benchmarks.table import markdown
from pipelines.corpus.splits import MAX_SPLIT
from pipelines.output.names import MAX_PARTS
from pipelines.settings import SHARDS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PAGE = ROOT / "docs" / "scale.md"
RESULTS = ROOT / "benchmarks" / "results"
GROWTH = RESULTS / "growth.json"
MERGE_STEP = RESULTS / "merge_step.json"
FOUNDATION = RESULTS / "foundation.json"
BENCH = RESULTS / "bench.json"

CORPORA = {"en": "English", "multi": "ten languages"}
SIZES = {"1 TB": 1e12, "100 TB": 1e14}
SHARD_BYTES = 2e9  # what the merging of a shard may take in the plan
ROW_BYTES = 16  # of a run in memory in addition to the word: where it begins, and its count
RUNS = 3  # what a merge holds: what it merges, up to twice the distinct words, and the result
SYMBOLS = 2**32  # the trainer numbers them with 32 bits
EXTRA_SYMBOLS = 1  # a word has one for each byte, and one (three from 2^29 occurrences on)

Result = dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """A corpus of ``size`` bytes that grows as ``corpus`` of growth.json does."""

    size: float
    corpus: Result
    merge_step: Result

    @property
    def split_size(self) -> int:
        """The default: the largest, doubled until a job may have that many splits."""
        size = MAX_SPLIT
        while math.ceil(self.size / size) > MAX_PARTS:
            size *= 2
        return size

    @property
    def splits(self) -> int:
        """Their number, of the default size."""
        return math.ceil(self.size / self.split_size)

    def distinct_in(self, size: float) -> float:
        """Distinct pre-tokens in so many bytes of text, by Heaps' law."""
        law = self.corpus["heaps"]
        return float(law["k"] * size ** law["beta"])

    @property
    def distinct(self) -> float:
        """Distinct pre-tokens in all."""
        return self.distinct_in(self.size)

    @property
    def rows(self) -> float:
        """Rows of the partial counts of all splits."""
        return self.splits * self.distinct_in(self.split_size)

    @property
    def shuffled(self) -> float:
        """Bytes of the partial counts of all splits."""
        return self.rows * float(self.corpus["travelling_bytes"])

    @property
    def merging_bytes_each(self) -> float:
        """Memory for a distinct pre-token of a shard while the shard is merged."""
        row = self.corpus["word_bytes"] + ROW_BYTES
        return float(RUNS * (row + self.corpus["travelling_bytes"]))

    @property
    def shards(self) -> int:
        """A power of two, so that merging one takes no more than it may."""
        wanted = self.distinct * self.merging_bytes_each / SHARD_BYTES
        return max(SHARDS, 1 << math.ceil(math.log2(max(wanted, 1))))

    @property
    def merge_seconds(self) -> float:
        """Of one core."""
        return self.rows * merge_seconds_each(self.merge_step)

    @property
    def trained(self) -> float:
        """Distinct pre-tokens to train on: all, or what the trainer can number."""
        return min(self.distinct, SYMBOLS / float(self.corpus["word_bytes"] + EXTRA_SYMBOLS))

    @property
    def training_bytes(self) -> tuple[float, float]:
        """Memory of training: as for words of eight bytes, and as if it grew with their length."""
        least = self.trained * train_bytes_each(self.merge_step)
        return least, least * float(self.corpus["word_bytes"]) / MEAN_BYTES

    @property
    def training_seconds(self) -> float:
        """Of one core, as if it took as long for each distinct pre-token."""
        step = self.merge_step
        return float(self.trained * step["steps"]["train"]["cpu_seconds"] / step["distinct"])


@dataclass(frozen=True)
class Command:
    """The time of a whole command on English text, from reading files to writing them.

    Attributes:
        name: of the command.
        text: which text it read.
        seconds_per_gb: of all its cores together, as if each was busy all the time.
        file: of the results.
        result: what was measured on which machine, in that file.
    """

    name: str
    text: str
    seconds_per_gb: float
    file: Path
    result: Result


def commands() -> list[Command]:
    """`bpe train` for counting, `bpe encode` at the margin, and `bpe encode` from its start."""
    memory = json.loads(FOUNDATION.read_text("utf-8"))["memory"]
    bench = json.loads(BENCH.read_text("utf-8"))
    works = {one["name"]: one for one in bench["works"]}
    work = works.get("encode-command-large") or works["encode-command"]
    ours = work["contenders"]["beam-bpe"]
    size = ours["text_bytes"]
    large = "JSON lines (8 MB of text, repeated): a run over 2 GB minus one over 200 MB"
    return [
        Command("bpe train", large, _marginal(memory, "train"), FOUNDATION, memory),
        Command("bpe encode", large, _marginal(memory, "encode"), FOUNDATION, memory),
        Command(
            "bpe encode",
            f"{size / 1e6:.0f} MB of JSON lines (English), start included",
            ours["medians"]["seconds"] * work["cores"] / size * 1e9,
            BENCH,
            bench,
        ),
    ]


def _marginal(measured: Result, job: str) -> float:
    """Core seconds of each additional GB."""
    small, large = (row for row in measured["rows"] if row["job"] == job)
    seconds = (large["seconds"] - small["seconds"]) * measured["workers"]
    return float(seconds / (large["text_bytes"] - small["text_bytes"]) * 1e9)


def merge_seconds_each(merge_step: Result) -> float:
    """Processor seconds for a row of partial counts, from reading it to the finished file."""
    rows = partial_rows(merge_step["distinct"], merge_step["bundles"])
    return float(merge_step["steps"]["merge"]["cpu_seconds"] / rows)


def train_bytes_each(merge_step: Result) -> float:
    """Peak of training for each distinct pre-token."""
    return float(merge_step["steps"]["train"]["peak_bytes"] / merge_step["distinct"])


def with_tables(page: str) -> str:
    """docs/scale.md with the tables that the results make now."""
    growth = json.loads(GROWTH.read_text("utf-8"))
    merge_step = json.loads(MERGE_STEP.read_text("utf-8"))
    for name, table in (
        ("constants", constants(growth)),
        ("commands", whole_commands()),
        ("merging", merging(merge_step)),
        ("plan", plan(growth, merge_step)),
    ):
        page = with_block(page, table, name=name)
    return page


def constants(growth: Result) -> str:
    """Measurements on real text, a column for each corpus."""
    rows: dict[str, Callable[[Result], str]] = {
        "distinct pre-tokens in *n* bytes (Heaps' law)": lambda one: (
            f"{one['heaps']['k']:.3g} · *n*^{one['heaps']['beta']:.3f}"
        ),
        "bytes of a distinct pre-token": lambda one: f"{one['word_bytes']:.1f}",
        "… in a partial count, as it travels (Arrow IPC, zstd)": lambda one: (
            f"{one['travelling_bytes']:.1f}"
        ),
        "… in the files of `counts/`": lambda one: f"{one['file_bytes']:.1f}",
        "counting a GB of text, C++ core alone, CPU seconds": lambda one: (
            f"{one['count_seconds_per_gb']:.3g}"
        ),
        "encoding a GB of text, C++ core alone, 32,000 tokens, CPU seconds": lambda one: (
            f"{one['encode_seconds_per_gb']:.3g}"
        ),
        "training 32,000 tokens on the corpus, with counting, C++ core alone, CPU seconds": (
            lambda one: f"{one['train_seconds']:.3g}"
        ),
    }
    found = growth["corpora"]
    head = ["", *(f"{name}, {found[key]['bytes'] / 1e6:.0f} MB" for key, name in CORPORA.items())]
    return (
        f"{_where(growth, 'growth.json')}\n\n{_table(head, rows, [found[key] for key in CORPORA])}"
    )


def whole_commands() -> str:
    """The times of commands, with reading, parsing, Beam and writing."""
    lines = [
        [
            f"`{one.name}`",
            one.text,
            _short(one.seconds_per_gb),
            f"`{one.file.name}`: {one.result['machine']['processor']}, `{one.result['commit']}`",
        ]
        for one in commands()
    ]
    return markdown(["command", "input", "core seconds per GB", "from"], lines)


def merging(merge_step: Result) -> str:
    """Measurements on partial counts that do not exist."""
    rows = partial_rows(merge_step["distinct"], merge_step["bundles"])
    size = merge_step["partial_counts_bytes"]
    steps = merge_step["steps"]
    lines = [
        [
            what,
            _memory(steps[name]["peak_bytes"]),
            f"{steps[name]['peak_bytes'] / merge_step['distinct']:.0f}",
            f"{steps[name]['cpu_seconds']:.1f}",
            f"{steps[name]['seconds']:.1f}",
            f"{steps[name]['cpu_seconds'] / number * 1e6:.2g} s per million {unit}",
        ]
        for name, what, number, unit in (
            ("merge", "merging, all shards in one process", rows, "rows"),
            (
                "train",
                f"training {merge_step['vocab_size']:,} tokens",
                merge_step["distinct"],
                "distinct pre-tokens",
            ),
        )
    ]
    head = ["", "peak memory", "peak bytes per distinct pre-token"]
    head += ["CPU seconds", "wall-clock seconds", "CPU time per unit"]
    return (
        f"{_where(merge_step, 'merge_step.json')} {_million(merge_step['distinct'])} distinct "
        f"pre-tokens in the partial counts of {merge_step['bundles']} bundles: {_million(rows)} "
        f"rows, {_memory(size)}.\n\n{markdown(head, lines)}"
    )


def plan(growth: Result, merge_step: Result) -> str:
    """The plan, a column for each size and corpus."""
    plans = [
        Plan(size, growth["corpora"][key], merge_step) for size in SIZES.values() for key in CORPORA
    ]
    counting, *encoding = commands()
    encoding.sort(key=lambda command: command.seconds_per_gb)

    def against_english(one: Plan, what: str) -> float:
        key = f"{what}_seconds_per_gb"
        return float(one.corpus[key] / growth["corpora"]["en"][key])

    rows: dict[str, Callable[[Plan], str]] = {
        "default split size": lambda one: f"{one.split_size >> 20:,} MiB",
        "splits (= parts)": lambda one: f"{one.splits:,}",
        "distinct pre-tokens in a split": lambda one: _million(one.distinct_in(one.split_size)),
        "rows shuffled, at most": lambda one: _million(one.rows),
        "bytes shuffled, at most": lambda one: _memory(one.shuffled),
        "distinct pre-tokens in all": lambda one: _million(one.distinct),
        "`--shards`": lambda one: f"{one.shards:,}",
        "partial counts shuffled, at most": lambda one: _million(one.splits * one.shards),
        "memory of merging a shard": lambda one: _memory(
            one.distinct / one.shards * one.merging_bytes_each
        ),
        "`counts/`": lambda one: _memory(one.distinct * one.corpus["file_bytes"]),
        "counting, core hours": lambda one: _hours(
            one.size / 1e9 * counting.seconds_per_gb * against_english(one, "count")
        ),
        "… counting in the C++ core alone": lambda one: _hours(
            one.size / 1e9 * one.corpus["count_seconds_per_gb"]
        ),
        "merging, core hours": lambda one: _hours(one.merge_seconds),
        "encoding, core hours": lambda one: " to ".join(
            _hours(one.size / 1e9 * command.seconds_per_gb * against_english(one, "encode"))
            for command in encoding
        ),
        "… encoding in the C++ core alone": lambda one: _hours(
            one.size / 1e9 * one.corpus["encode_seconds_per_gb"]
        ),
        "distinct pre-tokens trained on, at most": lambda one: (
            _million(one.trained) + ("" if one.trained == one.distinct else ", *pruned*")
        ),
        "… memory of training": lambda one: " to ".join(map(_memory, one.training_bytes)),
        "… training 32,000 tokens, core minutes": lambda one: _short(one.training_seconds / 60),
    }
    head = ["", *(f"{size}, {name}" for size in SIZES for name in CORPORA.values())]
    return _table(head, rows, plans)


def _table(head: list[str], rows: dict[str, Callable[[Any], str]], columns: list[Any]) -> str:
    return markdown(
        head, [[name, *(shown(one) for one in columns)] for name, shown in rows.items()]
    )


def _where(result: Result, file: str) -> str:
    machine = result["machine"]
    return (
        f"From `benchmarks/results/{file}`: {machine['processor']}, {machine['cores']} cores, at "
        f"commit `{result['commit']}`."
    )


def _short(value: float) -> str:
    """Two digits that count: 0.57, 13, 1,300."""
    places = 1 - math.floor(math.log10(value))
    return f"{round(value, places):,.{max(places, 0)}f}"


def _million(number: float) -> str:
    if number < 1e6:
        return _short(number)
    if number < 1e9:
        return f"{_short(number / 1e6)} million"
    return f"{_short(number / 1e9)} billion"


def _hours(seconds: float) -> str:
    return _short(seconds / 3600)


def _memory(size: float) -> str:
    unit, scale = next(
        (unit, scale)
        for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3))
        if size >= scale
    )
    return f"{_short(size / scale)} {unit}"
