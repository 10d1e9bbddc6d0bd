"""The jobs, as the promises of `tests.contract` see them: all make files in a directory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from pipelines.settings import (
    CountSettings,
    CountsInput,
    EncodeSettings,
    ExportSettings,
    InputSettings,
    OutputSettings,
    PretokenSettings,
    TrainSettings,
)
from tests import jobs
from tests.pipelines.corpora import (
    END,
    ONE,
    SPLIT,
    patterns,
    sentence,
    small_tokenizer,
    write_corpus,
    write_rows,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipelines.settings import Execution

GROUPS = ("en", "日本", "a/../b =%", "")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The settings of a job.

    Attributes:
        output: the directory, of any filesystem.
        folder: of `prepare`.
        overwrite: as the jobs have it.
        resume: likewise.
        other: whether another setting is asked for, which makes other files.
        split_size: of the corpus.
        execution: where the work is done.
        inputs: of the corpus; none: that of `prepare`.
        max_failures: bad records that are allowed.
    """

    output: str
    folder: Path
    overwrite: bool = False
    resume: bool = False
    other: bool = False
    split_size: int | None = SPLIT
    execution: Execution = ONE
    inputs: tuple[str, ...] = ()
    max_failures: int = 0

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments that all jobs have."""
        output = OutputSettings(directory=self.output, overwrite=self.overwrite, resume=self.resume)
        return {"output": output, "execution": self.execution}

    @property
    def corpus(self) -> InputSettings:
        """The inputs of a job that reads text."""
        return self.of(*(self.inputs or patterns(self.folder / "corpus")))

    def of(self, *found: str) -> InputSettings:
        """The inputs that match these patterns."""
        return InputSettings(
            patterns=found, split_size=self.split_size, max_failures=self.max_failures
        )


def count(asked: Asked) -> Any:
    """The job of ``bpe count``."""
    cut = PretokenSettings(pretokenizer="words" if asked.other else "gpt2")
    settings = CountSettings(shards=4)
    return jobs.count(inputs=asked.corpus, pretokens=cut, settings=settings, **asked.settings)


def groups(asked: Asked) -> Any:
    """The job of ``bpe count --group-by``."""
    cut = PretokenSettings(pretokenizer="words" if asked.other else "gpt2")
    return jobs.count(
        inputs=asked.of(*(asked.inputs or (str(asked.folder / "grouped"),))),
        pretokens=cut,
        settings=CountSettings(group_by="lang", shards=3, prune_below=2, track_order=True),
        **asked.settings,
    )


def _train(asked: Asked, training: dict[str, Any], **source: Any) -> Any:
    return jobs.train(
        pretokens=PretokenSettings(),
        training=TrainSettings(vocab_size=310 if asked.other else 300, **training),
        **source,
        **asked.settings,
    )


def train(asked: Asked) -> Any:
    """The job of ``bpe train --input``."""
    return _train(asked, {"ties": "first-seen"}, inputs=asked.corpus)


def train_mix(asked: Asked) -> Any:
    """The job of ``bpe train --mix``."""
    corpus = asked.folder / "corpus"
    given = asked.inputs or (f"{corpus}/b/*.jsonl*", f"{corpus}/*.parquet")
    named = (f"{'web' if number else 'code'}={one}" for number, one in enumerate(given))
    return _train(asked, {}, inputs=asked.of(*named), mix=("web=70%", "code=30%"))


def train_superwords(asked: Asked) -> Any:
    """The job of ``bpe train --superwords``."""
    return _train(asked, {"superwords": 6}, inputs=asked.corpus)


def retrain(asked: Asked) -> Any:
    """The job of ``bpe train --counts``."""
    counts = asked.inputs or (str(asked.folder / "counts"),)
    return _train(asked, {}, counts=tuple(CountsInput(directory=one) for one in counts))


def encode(asked: Asked) -> Any:
    """The job of ``bpe encode``."""
    return jobs.encode(
        inputs=asked.corpus,
        tokenizer=str(asked.folder / "tokenizer.json"),
        encoding=EncodeSettings(
            append_token=END, dropout=0.3, id_type="uint32" if asked.other else "auto"
        ),
        **asked.settings,
    )


def export(asked: Asked) -> Any:
    """The job of ``bpe export``, with each of its stages."""
    return jobs.export(
        sources=asked.inputs or (str(asked.folder / "ids"),),
        settings=ExportSettings(
            to="parquet", validation=0.2, shuffle=6 if asked.other else 5, pack=16
        ),
        unit_tokens=300,
        **asked.settings,
    )


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A job.

    Attributes:
        name: of the job.
        make: runs it, and returns its summary.
        parts: a pattern of the files that its units make.
        last: the file that makes it complete.
        changed: what the error says of the other setting.
        step: what a worker calls on the way to its last file; empty where nobody knows.
        keeps: what resume leaves unchanged: of a damaged output all other parts, nothing but what
            is complete, or nothing at all.
        goes_on: whether its parts are kept where the last file is missing.
    """

    name: str
    make: Callable[[Asked], Any]
    parts: str
    last: str = "manifest.json"
    changed: str
    keeps: Literal["parts", "complete", "nothing"]
    step: str = ""
    goes_on: bool = False

    def run(self, folder: Path, output: Path | str, **asked: Any) -> Any:
        """Run it; the arguments are those of `Asked`."""
        return self.make(Asked(folder=folder, output=str(output), **asked))


KINDS = {
    kind.name: kind
    for kind in (
        Kind(
            name="count",
            make=count,
            parts="data/part-*",
            changed='pretokenizer was "gpt2", is "words"',
            keeps="complete",
            step="pipelines.count.beam.write_shard",
        ),
        Kind(
            name="train",
            make=train,
            parts="counts/data/part-*",
            last="tokenizer.json",
            changed="vocab_size was 300, is 310",
            keeps="complete",
            goes_on=True,
            step="pipelines.train.effective_mix",
        ),
        Kind(
            name="retrain",
            make=retrain,
            parts="tokenizer.json",
            last="tokenizer.json",
            changed="vocab_size was 300, is 310",
            keeps="nothing",
            step="pipelines.train.effective_mix",
        ),
        Kind(
            name="encode",
            make=encode,
            parts="data/train-*",
            changed="id_type was ",
            keeps="parts",
            goes_on=True,
            step="pipelines.encode.job.encode_split",
        ),
        Kind(
            name="export",
            make=export,
            parts="data/train-*",
            changed="shuffle was 5, is 6",
            keeps="parts",
        ),
    )
}

# Ways to count and to train, for the promises about bytes.
VARIANTS = {
    kind.name: kind
    for kind in (
        replace(KINDS["count"], name="groups", make=groups, parts="lang=*/data/part-*"),
        replace(KINDS["train"], name="mix", make=train_mix, parts="counts/source=web/data/part-*"),
        replace(KINDS["train"], name="superwords", make=train_superwords, parts="runs/data/part-*"),
    )
}


def prepare(folder: Path) -> None:
    """Make what the jobs read: a corpus, a tokenizer, counts and ids."""
    write_corpus(folder / "corpus")
    for number in range(2):
        records = ({"text": sentence(i), "lang": GROUPS[i % 4]} for i in range(number, 60, 2))
        write_rows(folder / "grouped" / f"{number}.jsonl", records)
    small_tokenizer(folder / "tokenizer.json")
    count(Asked(folder=folder, output=str(folder / "counts")))
    encode(Asked(folder=folder, output=str(folder / "ids")))
