"""``bpe encode --to``: a corpus encoded, and exported by the same command.

Two jobs, each as it is without the other. The exports lie in the directory that is named and, of
documents that are held out, in its folder ``validation``. Their plans name the encoding, which
marks them as this command's own. Before anything is written, one rule says what becomes of them:

- ``overwrite`` removes the exports of an earlier command before it encodes, so that nothing of
  another corpus is left, whatever ends the command. What lies in ``validation`` must be such one.
- ``resume`` goes on with exports of the same encoding alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pipelines import storage
from pipelines.encode.job import encode
from pipelines.encode.manifest import fingerprint_of, read_encoded
from pipelines.errors import InputError, OutputError
from pipelines.export.job import BESIDE, export, plan_settings
from pipelines.export.steps import check_rows
from pipelines.failures import job_errors
from pipelines.output.directory import (
    decide,
    is_folder,
    listed,
    refuse_inputs_inside,
    refuse_links,
    remove_ours,
)
from pipelines.output.lock import locked
from pipelines.output.names import (
    ENCODED,
    ENCODING,
    MANIFEST,
    VALIDATION,
    Plan,
    job_id,
    read_plan,
)
from pipelines.output.state import is_to_export
from pipelines.run import options
from pipelines.storage import join

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipelines.planned import Planned
    from pipelines.progress import Progress
    from pipelines.settings import (
        EncodeSettings,
        Execution,
        ExportSettings,
        InputSettings,
        OutputSettings,
    )
    from pipelines.summaries import EncodeSummary, ExportSummary


@dataclass(frozen=True, kw_only=True)
class Exports:
    """The exports of a command that encodes a corpus, and what becomes of earlier ones.

    Attributes:
        encoded: the directory of the encoded corpus.
        encoding: what its rows hold.
        exported: the directory of the export; ``encoded`` may be the folder of this name in it.
        settings: the format; None: nothing is exported.
    """

    encoded: OutputSettings
    encoding: EncodeSettings
    exported: OutputSettings
    settings: ExportSettings | None

    @property
    def source(self) -> str:
        """The directory of the encoded corpus."""
        return storage.located(self.encoded.directory)

    @property
    def root(self) -> str:
        """The directory of the export."""
        return storage.located(self.exported.directory)

    @property
    def held_out(self) -> str:
        """The directory of the export of documents that are held out."""
        return join(self.root, VALIDATION)

    @property
    def is_around(self) -> bool:
        """Whether the corpus is encoded into a folder of the export."""
        return self.settings is not None and self.source == join(self.root, ENCODED)

    def planned(self) -> dict[str, tuple[OutputSettings, ExportSettings]]:
        """The exports that are to be made, by name."""
        if self.settings is None:
            return {}
        planned = {"export": (replace(self.exported, directory=self.root), self.settings)}
        if self.encoding.validation:
            output = replace(self.exported, directory=self.held_out)
            planned[VALIDATION] = (output, replace(self.settings, validation=True))
        return planned

    def check(self) -> None:
        """Refuse what would end the job only after the corpus is encoded; change nothing.

        Raises:
            JobError: something is wrong; the class says what.
        """
        if self.settings is None:
            return
        packed = self.encoding.pack is not None
        check_rows(self.settings, packed=packed, source=self.source)
        refuse_links(self.root, BESIDE)
        self._check_held_out()
        keep: tuple[str, ...] = BESIDE
        again = self.exported.resume or self.exported.overwrite
        if not again and storage.exists(join(self.source, MANIFEST)):
            keep = ()  # a corpus that was encoded is output of this command like any other
        for output, settings in self.planned().values():
            decide(output, _plan(settings, output.directory), keep=keep)

    def _check_held_out(self) -> None:
        """Refuse a folder of held-out documents that the job neither makes nor may replace."""
        names = [entry.name for entry in storage.entries(self.held_out)]
        is_own, makes = _is_held_out(self.held_out), bool(self.encoding.validation)
        usable = makes if self.exported.resume else is_own and (makes or self.exported.overwrite)
        if not names or usable:
            return
        if is_own:
            raise OutputError(
                f"{self.held_out} holds an export of held-out documents, and this job holds out "
                "none: use `overwrite`, or another directory"
            )
        raise OutputError(
            f"{self.held_out} holds {listed(names)}, which no earlier run of this command left "
            "there: move it away, or choose another directory"
        )

    def begin(self, reads: Iterable[str], plan: Plan) -> None:
        """Make room for the exports, when the corpus can be encoded.

        Args:
            reads: what the encoding reads.
            plan: of the encoding.

        Raises:
            OutputError: what is to be resumed is of another encoding, or the job reads what lies in
                the directory of the export.
        """
        if self.settings is not None:
            refuse_inputs_inside(self.root, reads)
        if self.exported.resume:
            for output, settings in self.planned().values():
                earlier = _plan(settings, output.directory)
                if decide(output, earlier, keep=BESIDE).action == "resume":
                    self._check_same_encoding(output.directory, job_id(plan.to_json()))
        self.clear()
        if self.exported.overwrite and self.settings is not None:
            remove_ours(self.source)  # which is locked: a kill from here on can be resumed

    def _check_same_encoding(self, directory: str, encoding: str) -> None:
        """Refuse to resume an export of another encoding; by its mark, else by the corpus."""
        earlier = read_plan(directory)
        same = earlier.get(ENCODING) == encoding
        if ENCODING not in earlier:  # `bpe export` made it
            same = _exported_corpus(earlier) == _corpus(self.source)
        if not same:
            raise OutputError(
                f"{directory}: cannot resume: it was begun as another job: it is an export of "
                "another corpus, or of other rows: use `overwrite`, or another directory"
            )

    def clear(self) -> None:
        """With ``overwrite``, remove the exports that an earlier command left.

        Rows that it encoded to be exported go with them, unless this job replaces them.

        Raises:
            OutputError: another job writes there, or a file cannot be removed.
        """
        if not self.exported.overwrite:
            return
        root, source = self.root, self.source
        old = [self.held_out] if _is_held_out(self.held_out) else []
        if source == root and is_to_export(root):
            old.append(join(root, ENCODED))
        if source != root and (self.settings is not None or _is_own(root)):
            old.append(root)
        old = [one for one in old if one == root or is_folder(root, one.rpartition("/")[2])]
        for directory in old:
            if not storage.entries(directory):
                continue
            with locked(directory):
                remove_ours(directory)
                storage.remove_empty(directory)


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
        exports = Exports(encoded=encoded, encoding=encoding, exported=exported, settings=settings)
        exports.check()

        def ready(planned: Planned) -> None:
            exports.begin([*planned.reads, tokenizer], planned.plan)

        made: dict[str, EncodeSummary | ExportSummary] = {
            "encode": encode(
                inputs=inputs,
                tokenizer=tokenizer,
                output=encoded,
                encoding=encoding,
                execution=execution,
                progress=progress,
                then="export" if exports.is_around else None,
                ready=ready,
            )
        }
        for name, (output, to) in exports.planned().items():
            made[name] = export(
                directory=encoded.directory,
                output=_again(output, exports.source),
                settings=to,
                execution=execution,
                progress=progress,
                encoding=job_id(read_plan(exports.source)),
            )
    return made


def _plan(settings: ExportSettings, directory: str) -> Plan:
    """The plan of an export, of the corpus that an earlier run exported to ``directory``."""
    earlier = read_plan(directory)
    parts = earlier.get("parts")
    return Plan(
        kind="export",
        parts=tuple(parts) if isinstance(parts, list) else (),
        settings=plan_settings(settings, _exported_corpus(earlier)),
        inputs=_mapping(earlier, "inputs"),
    )


def _mapping(plan: dict[str, Any], name: str) -> dict[str, Any]:
    value = plan.get(name)
    return value if isinstance(value, dict) else {}


def _is_own(directory: str) -> bool:
    """Whether a command that encodes left an export here."""
    plan = read_plan(directory)
    return plan.get("kind") == "export" and ENCODING in plan


def _is_held_out(directory: str) -> bool:
    """The same of documents that it held out."""
    settings = _mapping(read_plan(directory), "settings")
    return _is_own(directory) and bool(settings.get("validation"))


def _exported_corpus(plan: dict[str, Any]) -> object:
    """The fingerprint of the manifest of the corpus that an export is of, from its plan."""
    return _mapping(plan, "settings").get("manifest")


def _corpus(source: str) -> str | None:
    """The same of an encoded corpus; None where it is not complete."""
    try:
        return fingerprint_of(read_encoded(source))
    except InputError:
        return None


def _again(output: OutputSettings, source: str) -> OutputSettings:
    """The output of an export; one of what the corpus held before is replaced, not resumed."""
    earlier = _exported_corpus(read_plan(output.directory))
    if not output.resume or earlier in (None, _corpus(source)):
        return output
    return replace(output, resume=False, overwrite=True)
