"""The material of a report: the outputs in a directory, a tokenizer, or a comparison."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bpe.formats import ENDINGS
from pipelines import storage
from pipelines.compare.result import is_comparison
from pipelines.encode.manifest import read_encoded
from pipelines.errors import InputError
from pipelines.export.manifest import read_export
from pipelines.output.names import OF_WORDS, RUNS, TOKENIZER
from pipelines.output.state import complete_outputs
from pipelines.progress import SlotWriter
from pipelines.report.counted_facts import read_counted_facts
from pipelines.report.encoded_facts import read_encoded_facts
from pipelines.storage import join
from pipelines.tokenizer_files import load_tokenizer, read_training

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bpe import Tokenizer
    from bpe.training_report import Training
    from pipelines.export.manifest import ExportManifest
    from pipelines.progress import Progress
    from pipelines.report.counted_facts import CountedFacts
    from pipelines.report.encoded_facts import EncodedFacts


@dataclass(frozen=True, kw_only=True)
class Material:
    """All that the report is about; None for what is not there."""

    directory: str = ""
    tokenizer: Tokenizer | None = None
    training: Training | None = None
    counts: CountedFacts | None = None
    encoded: EncodedFacts | None = None
    export: ExportManifest | None = None


def find_sources(path: str) -> dict[str, str]:
    """Find the contents of ``path``: a job's directory, a tokenizer or a comparison.

    Returns:
        The path of each source that is there, by name: ``tokenizer``, a file; ``trained``, the same
        where ``training.json`` is of it; ``counts``, ``encoded`` and ``export``, directories;
        ``comparison``, a file that ``bpe compare --output`` wrote. And always ``directory``: the
        named one, or that of the named file.

    Raises:
        InputError: the path has no source, or an incomplete output.
        ConfigError: the filesystem of the path cannot be used here.
    """
    directory, outputs = storage.located(path), dict[str, str]()
    tokenizer = join(directory, TOKENIZER)
    if _is_file(directory):
        tokenizer, directory = directory, directory.rpartition("/")[0]
        if is_comparison(tokenizer):
            return {"directory": directory, "comparison": tokenizer}
        is_trained = tokenizer == join(directory, TOKENIZER)
    else:
        found = complete_outputs(directory)
        named = [one for one in found if one.folder not in (OF_WORDS, RUNS)]
        outputs = {str(one.kind): one.directory for one in named}
        is_trained = outputs.pop("tokenizer", None) is not None
    if storage.exists(tokenizer):
        outputs |= {"tokenizer": tokenizer} | ({"trained": tokenizer} if is_trained else {})
    return {"directory": directory, **outputs}


def _is_file(path: str) -> bool:
    """Return whether a path is a file with an ending of tokenizer files."""
    name = path.rpartition("/")[2]
    is_folder = storage.is_local(path) and Path(path).is_dir()
    return name.endswith(ENDINGS) and not is_folder and storage.exists(path)


def gather(
    sources: Mapping[str, str],
    tokenizer: Tokenizer | None,
    progress: Progress,
) -> Material:
    """Read the material of a report.

    Args:
        sources: the paths to read, from `find_sources`.
        tokenizer: the tokenizer of the sources, if already loaded.
        progress: the display of the progress.

    Raises:
        InputError: a source is damaged, or sources do not go together.
    """
    if tokenizer is None and "tokenizer" in sources:
        tokenizer = load_tokenizer(sources["tokenizer"])
    return Material(
        directory=sources["directory"],
        tokenizer=tokenizer,
        training=read_training(sources["trained"]) if "trained" in sources else None,
        counts=_counts(sources.get("counts"), tokenizer, progress),
        encoded=_encoded(sources.get("encoded"), tokenizer, progress),
        export=read_export(sources["export"]) if "export" in sources else None,
    )


def _counts(
    directory: str | None, tokenizer: Tokenizer | None, progress: Progress
) -> CountedFacts | None:
    if directory is None:
        return None
    with progress.stage("counts", None, unit="parts") as stage:
        facts = read_counted_facts(directory, advance=SlotWriter(stage.slots, 0).advance)
    runs = facts.manifest.runs  # their keys are ids of a tokenizer
    if runs and (tokenizer is None or tokenizer.text_sha256 != runs.tokenizer):
        raise InputError(
            f"{join(directory, TOKENIZER)} is missing, or not the tokenizer whose runs are counted "
            "there: put that one back, or count the runs again"
        )
    return facts


def _encoded(
    directory: str | None, tokenizer: Tokenizer | None, progress: Progress
) -> EncodedFacts | None:
    if directory is None:
        return None
    if tokenizer is None:
        raise InputError(f"{directory}: no tokenizer.json in the folder of the manifest")
    manifest = read_encoded(directory)
    if tokenizer.sha256 != manifest.tokenizer.sha256:
        raise InputError(
            f"{directory} was encoded with another tokenizer than that of the report: report "
            "on it alone, or encode again"
        )
    with progress.stage("token ids", None, unit="parts") as stage:
        return read_encoded_facts(directory, manifest, advance=SlotWriter(stage.slots, 0).advance)
