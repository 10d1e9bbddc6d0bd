"""Read the material of a report from the outputs in a directory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipelines.encode.manifest import read_encoded
from pipelines.errors import InputError
from pipelines.export.manifest import read_export
from pipelines.output.names import TOKENIZER
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


def gather(
    sources: Mapping[str, str],
    tokenizer: Tokenizer | None,
    progress: Progress,
) -> Material:
    """Read the material of a report.

    Args:
        sources: the paths to read, from `pipelines.report.sources.find_sources`.
        tokenizer: the tokenizer of the sources, if already loaded.
        progress: the display of the progress.

    Raises:
        InputError: a source is damaged, or sources do not go together.
    """
    if tokenizer is None and "tokenizer" in sources:
        tokenizer = load_tokenizer(sources["tokenizer"])
    training = read_training(sources["tokenizer"]) if "training" in sources else None
    if tokenizer is not None and training is not None:
        tokenizer = tokenizer.with_training(training)
    counts = encoded = None
    if "counts" in sources:
        counts = _counts(sources["counts"], tokenizer, progress)
    if "encoded" in sources:
        if tokenizer is None:
            raise InputError(
                f"{sources['encoded']}: no tokenizer.json in the folder of the manifest"
            )
        encoded = _encoded(sources["encoded"], tokenizer, progress)
    return Material(
        directory=sources["directory"],
        tokenizer=tokenizer,
        training=training,
        counts=counts,
        encoded=encoded,
        export=read_export(sources["export"]) if "export" in sources else None,
    )


def _counts(directory: str, tokenizer: Tokenizer | None, progress: Progress) -> CountedFacts:
    with progress.stage("counts", None, unit="parts") as stage:
        facts = read_counted_facts(directory, advance=stage.advance)
    runs = facts.manifest.runs  # their keys are ids of a tokenizer
    if runs and (tokenizer is None or tokenizer.text_sha256 != runs.tokenizer):
        raise InputError(
            f"{join(directory, TOKENIZER)} is missing, or not the tokenizer whose runs are counted "
            "there: put that one back, or count the runs again"
        )
    return facts


def _encoded(directory: str, tokenizer: Tokenizer, progress: Progress) -> EncodedFacts:
    manifest = read_encoded(directory)
    if tokenizer.sha256 != manifest.tokenizer.sha256:
        raise InputError(
            f"{directory} was encoded with another tokenizer than that of the report: report "
            "on it alone, or encode again"
        )
    with progress.stage("token ids", None, unit="parts") as stage:
        return read_encoded_facts(directory, manifest, advance=stage.advance)
