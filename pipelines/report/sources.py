"""Sources of a report: outputs of jobs, a tokenizer, or a comparison."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bpe.formats import ENDINGS
from pipelines import storage
from pipelines.compare.result import is_comparison
from pipelines.output.names import OF_WORDS, RUNS, TOKENIZER, TRAINING
from pipelines.output.state import complete_outputs
from pipelines.storage import join


@dataclass(frozen=True, kw_only=True)
class Sources:
    """The path of each source; None if it is missing.

    Attributes:
        directory: the named directory, or the directory of the named file.
        tokenizer: a tokenizer file.
        training: the ``training.json`` of this tokenizer.
        counts: a directory of counts.
        encoded: the directory of an encoded corpus.
        export: the directory of an export.
        comparison: a file that ``bpe compare --output`` wrote.
    """

    directory: str
    tokenizer: str | None = None
    training: str | None = None
    counts: str | None = None
    encoded: str | None = None
    export: str | None = None
    comparison: str | None = None


def find_sources(path: str) -> Sources:
    """Find the contents of ``path``: a job's directory, a tokenizer or a comparison.

    Raises:
        InputError: the path has no source, or an incomplete output.
        ConfigError: the filesystem of the path cannot be used here.
    """
    directory = storage.located(path)
    if _is_file(directory):
        if is_comparison(directory):
            return Sources(directory=directory.rpartition("/")[0], comparison=directory)
        directory, _, name = directory.rpartition("/")
        training = join(directory, TRAINING) if name == TOKENIZER else None
        return Sources(
            directory=directory, tokenizer=join(directory, name), training=_present(training)
        )
    found = complete_outputs(directory, "counts", "tokenizer", "encoded", "export")
    outputs = {output.kind: output for output in found if output.folder not in (OF_WORDS, RUNS)}
    tokenizer = _present(join(directory, TOKENIZER))
    trained = tokenizer is not None and "tokenizer" in outputs
    return Sources(
        directory=directory,
        tokenizer=tokenizer,
        training=_present(join(directory, TRAINING)) if trained else None,
        counts=outputs["counts"].directory if "counts" in outputs else None,
        encoded=outputs["encoded"].directory if "encoded" in outputs else None,
        export=outputs["export"].directory if "export" in outputs else None,
    )


def _is_file(path: str) -> bool:
    """Return whether a path is a file with an ending of tokenizer files."""
    name = path.rpartition("/")[2]
    is_folder = storage.is_local(path) and Path(path).is_dir()
    return name.endswith(ENDINGS) and not is_folder and storage.exists(path)


def _present(path: str | None) -> str | None:
    return path if path is not None and storage.exists(path) else None
