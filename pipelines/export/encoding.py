"""A corpus encoded, and exported by the same command: two jobs, each as it is without the other."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pipelines import storage
from pipelines.encode.job import encode
from pipelines.encode.manifest import fingerprint_of, read_encoded
from pipelines.export.job import export, plan_settings
from pipelines.export.steps import check_rows
from pipelines.failures import job_errors
from pipelines.output.directory import decide, is_folder, refuse_links, remove_ours
from pipelines.output.names import ENCODED, MANIFEST, VALIDATION, Plan, read_plan
from pipelines.run import options
from pipelines.storage import join

if TYPE_CHECKING:
    from pipelines.progress import Progress
    from pipelines.settings import (
        EncodeSettings,
        Execution,
        ExportSettings,
        InputSettings,
        OutputSettings,
    )
    from pipelines.summaries import EncodeSummary, ExportSummary


def encode_and_export(
    *,
    inputs: InputSettings,
    tokenizer: str,
    encoded: OutputSettings,
    encoding: EncodeSettings,
    exported: OutputSettings,
    settings: ExportSettings | None,
    execution: Execution,
    progress: Progress | None = None,
) -> dict[str, EncodeSummary | ExportSummary]:
    """Encode a corpus, and write its ids in a format that trainers read, if one is asked for.

    Documents that are held out are exported as well, to the folder ``validation`` of the export.

    Args:
        inputs: the corpus.
        tokenizer: a tokenizer file, as for `encode`.
        encoded: the directory of the encoded corpus.
        encoding: what the rows hold.
        exported: the directory of the export; ``encoded`` may be the folder of this name in it.
        settings: the format; None: nothing is exported.
        execution: where the work is done.
        progress: told how far it is.

    Returns:
        The summaries of ``encode`` and, where that is asked for, ``export`` and ``validation``.

    Raises:
        JobError: something is wrong; the class says what.
    """
    with job_errors():
        options(execution)
        root, source = storage.located(exported.directory), storage.located(encoded.directory)
        if settings is not None:
            check_export(settings, encoded=encoded, encoding=encoding, exported=exported)
        made: dict[str, EncodeSummary | ExportSummary] = {
            "encode": encode(
                inputs=inputs,
                tokenizer=tokenizer,
                output=encoded,
                encoding=encoding,
                execution=execution,
                progress=progress,
                then="export" if settings is not None and source == join(root, ENCODED) else None,
            )
        }
        if settings is None:
            return made
        for name, directory in _directories(root, encoding).items():
            made[name] = export(
                directory=encoded.directory,
                output=_again(replace(exported, directory=directory), source),
                settings=replace(settings, validation=name == VALIDATION),
                execution=execution,
                progress=progress,
            )
        if exported.overwrite and VALIDATION not in made and is_folder(root, VALIDATION):
            remove_ours(join(root, VALIDATION))  # of an earlier run
            storage.remove_empty(join(root, VALIDATION))
    return made


def _directories(root: str, encoding: EncodeSettings) -> dict[str, str]:
    """Where the exports go, by name."""
    held_out = {VALIDATION: join(root, VALIDATION)} if encoding.validation else {}
    return {"export": root, **held_out}


def check_export(
    settings: ExportSettings,
    *,
    encoded: OutputSettings,
    encoding: EncodeSettings,
    exported: OutputSettings,
) -> None:
    """Refuse what would end the job only after the corpus is encoded; arguments as there.

    Raises:
        JobError: something is wrong; the class says what.
    """
    root, source = storage.located(exported.directory), storage.located(encoded.directory)
    check_rows(settings, packed=encoding.pack is not None, source=source)
    refuse_links(root, [ENCODED, VALIDATION])
    keep = [ENCODED, VALIDATION]
    if not (exported.resume or exported.overwrite) and storage.exists(join(source, MANIFEST)):
        keep = []  # a corpus that was encoded is output of this command like any other
    for name, directory in _directories(root, encoding).items():
        plan = _plan(replace(settings, validation=name == VALIDATION), directory)
        decide(replace(exported, directory=directory), plan, keep=keep)


def _plan(settings: ExportSettings, directory: str) -> Plan:
    """The plan of an export, of the corpus that an earlier run exported to ``directory``."""
    earlier = read_plan(directory)
    parts = earlier.get("parts")
    return Plan(
        kind="export",
        parts=tuple(parts) if isinstance(parts, list) else (),
        settings=plan_settings(settings, _mapping(earlier, "settings").get("manifest")),
        inputs=_mapping(earlier, "inputs"),
    )


def _mapping(plan: dict[str, Any], name: str) -> dict[str, Any]:
    value = plan.get(name)
    return value if isinstance(value, dict) else {}


def _again(output: OutputSettings, source: str) -> OutputSettings:
    """The output of an export; one of what the corpus held before is replaced, not resumed."""
    earlier = _mapping(read_plan(storage.located(output.directory)), "settings").get("manifest")
    if not output.resume or earlier in (None, fingerprint_of(read_encoded(source))):
        return output
    return replace(output, resume=False, overwrite=True)
