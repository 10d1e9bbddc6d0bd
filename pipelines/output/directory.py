"""The directory a job writes to: what may be in it before, and what belongs to us.

A job leaves its plan (`pipelines.output.names.PLAN`) in its directory before anything else. It says
what the job is, so that a later run with ``--resume`` can tell whether the parts that are there are
parts of the same job, and ``--overwrite`` which files are ours to remove, damaged ones included.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from bpe._inputs_file import INPUTS
from bpe.counts.manifest import CountsManifest
from bpe.errors import CountsError
from pipelines import storage
from pipelines.errors import InputError, OutputError
from pipelines.output.entries import FOLDERS, is_watched, remove_watched
from pipelines.output.names import (
    COUNTS,
    DATA,
    DEAD_LETTERS,
    ENCODED,
    EXPORTED,
    GROUPED_KIND,
    MANIFEST,
    OF_WORDS,
    PLAN,
    PLAN_VERSION,
    REPORT,
    REPORT_MARK,
    ROLES_FILES,
    RUN,
    RUNS,
    SPLITS,
    THEN,
    TIMINGS,
    TOKENIZER,
    TRAINING,
    group_folder,
    json_bytes,
    parse_part,
    read_json_object,
    read_plan,
)
from pipelines.storage import join

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pipelines.output.names import Plan
    from pipelines.settings import OutputSettings

# The files of a job beside its parts. The last one that it writes makes the output complete.
_LAST_FILE: dict[str, str] = {
    "counts": MANIFEST,
    "tokenizer": TOKENIZER,
    "encoded": MANIFEST,
}
_FILES: dict[str, tuple[str, ...]] = {
    "counts": (PLAN, SPLITS, INPUTS, MANIFEST, TIMINGS),
    "tokenizer": (PLAN, TRAINING, *ROLES_FILES, TOKENIZER, TIMINGS),
    "encoded": (PLAN, SPLITS, *ROLES_FILES, TOKENIZER, INPUTS, MANIFEST, TIMINGS),
}
_COMMANDS = {
    "counts": "bpe count",
    "tokenizer": "bpe train",
    "encoded": "bpe encode",
    "export": "bpe export",
}
_FOLDERS = (DATA, DEAD_LETTERS)


@dataclass(frozen=True)
class Decision:
    """What becomes of the files that lie in the directory of a job.

    Attributes:
        action: ``replace`` what an earlier job left there, if anything; ``resume`` that job;
            ``own``: this very run began there, and its runner has started it anew.
        training: the directory of a failed training whose counts these are.
    """

    action: Literal["replace", "resume", "own"]
    training: str | None = None


def decide(
    output: OutputSettings,
    plan: Plan | None,
    *,
    reads: Iterable[str] = (),
    keep: Iterable[str] = (),
) -> Decision:
    """Decide what a job may do with its output directory; change nothing.

    The first step of a job goes by it (`prepare`), and so does the command before it sends the job.

    Args:
        output: the directory, and what may be done with what is in it.
        plan: of the job; None where it is not known yet.
        reads: files the job reads; none of them may lie in the directory.
        keep: names in the directory that the job reads or manages itself, such as ``counts``.

    Raises:
        OutputError: the directory holds something and neither overwriting nor resuming was asked
            for, or cannot be done.
    """
    directory = storage.located(output.directory)
    refuse_inputs_inside(directory, reads)
    if plan is not None and plan.kind != "tokenizer":
        refuse_links(directory, _FOLDERS)
    refuse_earlier_layout(directory)
    if read_plan(directory).get("kind") == "export":
        raise OutputError(
            f"{directory} holds the output of bpe export: choose another directory, or remove it"
        )
    if plan is not None and plan.run and run_of(directory) == plan.run:
        return Decision("own")
    found = [entry for entry in _contents(directory, keep) if not _is_leftover(entry)]
    if not found or _is_only_begun(directory, found):
        return Decision("replace")
    decision = _over_failed_training(directory, output, plan)
    if decision is None:
        if not (output.resume or output.overwrite):
            raise occupied(directory, found)
        decision = Decision("resume" if output.resume else "replace")
    if plan is not None:
        if decision.action == "resume":
            _check_same_job(directory, plan)
        _refuse_what_is_foreign(directory, plan, keep={*keep}, resume=decision.action == "resume")
    return decision


def _over_failed_training(
    directory: str, output: OutputSettings, plan: Plan | None
) -> Decision | None:
    """Let a job replace what a training that failed has left, where nobody can miss it.

    These are counts, and a tokenizer of words, that the same job makes again, and counts that hold
    nothing to train on. All others are work that may be wanted.

    Raises:
        OutputError: there are such others.
    """
    training, _, name = directory.rpartition("/")
    kind = {COUNTS: "counts", OF_WORDS: "tokenizer", RUNS: "counts"}.get(name)
    of_training = kind is not None and is_folder(training, name) and training_failed(training)
    if plan is None or plan.kind != kind or output.overwrite or not of_training:
        return None
    different = plan.differences(read_plan(directory))
    if not different:
        return Decision("resume" if output.resume else "replace", training)
    if kind == "tokenizer":
        return None
    path = join(directory, MANIFEST)
    try:
        parts = CountsManifest.from_json(
            storage.read(path), where=path, inputs=lambda: storage.read(join(directory, INPUTS))
        ).parts
    except (CountsError, InputError):
        return None
    if not any(part.rows for part in parts):
        return Decision("replace", training)
    raise OutputError(
        f"{directory} holds complete counts of another job, left there by a training that failed "
        f"({'; '.join(different[:3])}): train on them with `counts` {directory}, replace them "
        "with `overwrite`, or choose another directory"
    )


def prepare(
    output: OutputSettings,
    plan: Plan,
    *,
    reads: Iterable[str] = (),
    keep: Iterable[str] = (),
    outdated: Callable[[], Iterable[str]] = tuple,
) -> None:
    """Make the output directory ready for a job, and leave the plan in it.

    Args:
        output: the directory, and what may be done with what is in it.
        plan: of the job that is about to run.
        reads: as for `decide`.
        keep: as for `decide`.
        outdated: names the parts that are of inputs which changed since the run that is resumed:
            they are removed, and made again.

    Raises:
        OutputError: the directory cannot be used (`decide`), or not be written to.
    """
    directory = storage.located(output.directory)
    decision = decide(output, plan, reads=reads, keep=keep)
    storage.make_directory(directory)
    remove_temporaries(directory)
    if decision.action == "replace":
        remove_ours(directory)
    if plan.kind != "tokenizer":
        for name in (MANIFEST, INPUTS):
            storage.remove(join(directory, name))
    if decision.action != "replace":  # before the plan is stored: a kill must not lie
        for name in outdated():
            storage.remove(join(directory, name))
    if plan.kind == "counts":  # everything is counted again, and bad records found again
        for entry in _inside(directory, DEAD_LETTERS):
            storage.remove(join(directory, entry.name))
    storage.write(join(directory, PLAN), json_bytes(plan.to_json()))


def run_of(directory: str) -> str | None:
    """The id of the run whose plan lies in a directory; None where there is none."""
    run = read_plan(directory).get(RUN)
    return run if isinstance(run, str) else None


def plan_of_run(directory: str, run: str) -> dict[str, Any]:
    """The plan in an output directory, as the run of this id has left it.

    Raises:
        OutputError: it is of another run, or not there.
    """
    plan = read_plan(directory)
    if not plan:
        raise OutputError(
            f"{join(directory, PLAN)} cannot be read: the first step of this job wrote it; where "
            "workers are on several machines, use a directory that all of them see"
        )
    if plan.get(RUN) != run:
        raise OutputError(
            f"{directory}: another job has been started there since this one began, so this one "
            "ends: let one job at a time write to a directory"
        )
    return plan


def refuse_earlier_layout(directory: str) -> None:
    """Refuse counts or token ids of a release that laid its parts beside the manifest.

    Raises:
        OutputError: they are.
    """
    plan = read_plan(directory)
    version = plan.get("version")
    laid_out = plan.get("kind") in ("counts", "encoded")
    if laid_out and isinstance(version, int) and version != PLAN_VERSION:
        raise OutputError(
            f"{directory} holds the output of another release of beam-bpe, in layout {version} "
            f"(this release writes {PLAN_VERSION}): remove it and run the job again, or choose "
            "another directory"
        )


def write_files(directory: str, files: Mapping[str, bytes]) -> None:
    """Write files by name; with a ``tokenizer.json``, remove the roles of an earlier one.

    Raises:
        OutputError: one cannot be written or removed.
    """
    for name, data in files.items():
        storage.write(join(directory, name), data)
    if TOKENIZER in files:
        for name in set(ROLES_FILES).difference(files):
            storage.remove(join(directory, name))


def training_failed(directory: str) -> bool:
    """Whether a training began in ``directory`` and has made no tokenizer there."""
    begun = read_plan(directory).get("kind") == "tokenizer"
    return begun and not storage.exists(join(directory, TOKENIZER))


def _is_only_begun(directory: str, found: Iterable[storage.Entry]) -> bool:
    """Whether all that is there is of a job that failed, and of no use to any other run.

    Parts of an encoding are: ``--resume`` keeps them. Counts are counted again as long as they
    are not complete.
    """
    kinds = {entry.name: entry.kind for entry in found}
    kind = str(read_plan(directory).get("kind")) if PLAN in kinds else ""
    if kind not in _FILES or _LAST_FILE[kind] in kinds:
        return False
    if kind != "counts":
        return kinds.keys() <= set(_FILES[kind])
    claims, groups = _Claims(directory), _group_folders(directory)
    return all((of == "file" and claims.hold(name)) or name in groups for name, of in kinds.items())


def occupied(directory: str, found: Iterable[storage.Entry]) -> OutputError:
    """The error that a directory with something in it is: what is there, and what helps."""
    names = {entry.name for entry in found}
    command, complete = _made_by(directory, names)
    replace = "replace it with `overwrite`, or choose another directory"
    if command is None:
        left = listed(names - {TIMINGS} or {TIMINGS})
        return OutputError(
            f"{directory} holds {left}, which no job has left there: choose an empty directory"
        )
    if is_watched(directory):
        return OutputError(
            f"{directory} holds the output of {command} --watch: repeat its command to go on "
            f"with it, {replace}"
        )
    if complete:
        return OutputError(
            f"{directory} holds the output of {command}, which is complete: {replace}"
        )
    return OutputError(
        f"{directory} holds the output of {command}, which is not finished: repeat its "
        f"command with `resume`, {replace}"
    )


def _made_by(directory: str, names: set[str]) -> tuple[str | None, bool]:
    """The command that left its output here (None: none did), and whether it was finished."""
    says = read_plan(directory) or read_json_object(join(directory, MANIFEST)) or {}
    kind = str(says.get("kind"))
    if kind == "tokenizer" and ENCODED in names:
        last = (EXPORTED if says.get(THEN) == "export" else ENCODED, MANIFEST)
        return "bpe run", storage.exists(join(directory, *last))
    if kind in _COMMANDS:
        return _COMMANDS[kind], _LAST_FILE.get(kind, MANIFEST) in names
    counting = COUNTS in names and bool(read_plan(join(directory, COUNTS)))
    return "bpe run" if counting else None, False


def remove_temporaries(directory: str) -> None:
    """Remove the temporary files of writers that were killed."""
    for entry in _contents(directory):
        if _is_leftover(entry):
            storage.remove(join(directory, entry.name))


def _is_leftover(entry: storage.Entry) -> bool:
    """Whether this is a temporary file of a writer of ours."""
    folder, slash, base = entry.name.rpartition("/")
    name = storage.is_temporary(base)
    return entry.kind == "file" and name is not None and _is_name_of_ours(folder + slash + name)


def remove_ours(directory: str) -> None:
    """Remove the files that an earlier job left in ``directory``, and nothing else."""
    if is_watched(directory):
        refuse_links(directory, FOLDERS)
        remove_watched(directory)
    for folder in _group_folders(directory):
        remove_ours(join(directory, folder))
        storage.remove_empty(join(directory, folder))
    found = _contents(directory)
    claims = _Claims(directory)
    # The manifest goes first: without it, nobody takes the rest for a finished job.
    for entry in sorted(found, key=lambda entry: (entry.name != MANIFEST, entry.name == PLAN)):
        if entry.kind == "file" and claims.hold(entry.name):
            storage.remove(join(directory, entry.name))
    for folder in _FOLDERS:
        if is_folder(directory, folder):
            storage.remove_empty(join(directory, folder))


def _group_folders(directory: str) -> list[str]:
    """The folders of counts by group: those that the manifest names, and those begun before it."""
    settings = read_plan(directory).get("settings")
    named = settings.get("group_by") if isinstance(settings, dict) else None
    manifest = read_json_object(join(directory, MANIFEST)) or {}
    if manifest.get("kind") == GROUPED_KIND:
        named = manifest.get("group_by")
    if not isinstance(named, str):
        return []
    groups = manifest.get("groups", ())
    values = (one.get("value") for one in groups if isinstance(one, dict))
    folders = {group_folder(named, value) for value in values if isinstance(value, str)}
    begun = storage.entries(directory, beginning=group_folder(named, ""))
    folders |= {one.name for one in begun if one.kind == "directory"}
    return sorted(folder for folder in folders if is_folder(directory, folder))


def refuse_inputs_inside(directory: str, reads: Iterable[str]) -> None:
    """Refuse a directory that holds what the job reads.

    Raises:
        OutputError: a path of ``reads`` lies in it.
    """
    local = storage.is_local(directory)
    root = os.path.realpath(directory) if local else directory
    for path in reads:
        if storage.is_local(path) != local:
            continue
        place = os.path.realpath(path) if local else path
        if place.startswith(root.rstrip("/") + "/"):
            raise OutputError(
                f"{path} is read by this job and lies in its output directory {directory}: "
                "choose another directory"
            )


def _check_same_job(directory: str, plan: Plan) -> None:
    then = read_plan(directory)
    if not then:
        raise OutputError(
            f"{directory}: cannot resume: it holds files but no {PLAN} of an earlier run: "
            "use `overwrite`, or another directory"
        )
    if different := plan.differences(then):
        more = "" if len(different) <= 3 else f" (and {len(different) - 3} more)"
        raise OutputError(
            f"{directory}: cannot resume: it was begun as another job: "
            f"{'; '.join(different[:3])}{more}: use `overwrite`, or another directory"
        )


def _files_of(kind: str, settings: object) -> tuple[str, ...]:
    """The files of a job beside its parts; counts of runs have their tokenizer among them."""
    has_runs = kind == "counts" and isinstance(settings, Mapping) and bool(settings.get(RUNS))
    return (*_FILES[kind], TOKENIZER) if has_runs else _FILES[kind]


class _Claims:
    """Which files of a directory an earlier job of ours wrote."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._files: set[str] = set()
        self._parts: set[int] = set()
        self._watched = is_watched(directory)
        plan = read_plan(directory)
        if plan.get("kind") in _FILES:
            self._files.update(_files_of(plan["kind"], plan.get("settings")))
            parts = plan.get("parts")
            if isinstance(parts, list):
                self._parts.update(part for part in parts if isinstance(part, int))
        manifest = read_json_object(join(directory, MANIFEST)) or {}
        if manifest.get("kind") in ("counts", "encoded") and "parts" in manifest:
            self._files.update(_files_of(manifest["kind"], manifest))

    def hold(self, name: str) -> bool:
        """Whether the file ``name``, relative to the directory, is ours."""
        path = join(self._directory, name)
        if name == REPORT:
            return is_report(path)
        part = parse_part(name)
        if part is None:
            return name in self._files
        if part.parts in self._parts or (part.key and self._watched):
            return True
        return _is_dead_letters(path) if name.startswith(f"{DEAD_LETTERS}/") else _is_part(path)


def _is_part(path: str) -> bool:
    try:
        with storage.open_binary(path) as file:
            schema = pq.read_schema(file)
    except (pa.ArrowException, OSError, InputError):
        return False
    counts = schema.names[:2] == ["pretoken", "count"]
    return counts or bool(schema.metadata and b"bpe.part" in schema.metadata)


def is_report(path: str) -> bool:
    """Whether the file is a report that `bpe report` wrote."""
    try:
        with storage.open_binary(path) as file:
            return REPORT_MARK.encode() in bytes(file.read(200))
    except (OSError, InputError):
        return False


def _is_dead_letters(path: str) -> bool:
    try:
        with storage.open_binary(path) as file:
            line = bytes(file.read(storage.CHUNK)).split(b"\n", 1)[0]
        record = json.loads(line)
    except (OSError, InputError, ValueError, RecursionError):
        return False
    return isinstance(record, dict) and {"file", "place", "reason", "size"} <= record.keys()


def _refuse_what_is_foreign(directory: str, plan: Plan, *, keep: set[str], resume: bool) -> None:
    """Refuse what stays, and what a reader of the directory would take for output of this job."""
    foreign, claims = [], _Claims(directory)
    own = _files_of(plan.kind, plan.settings)
    for entry in _contents(directory):
        name = entry.name
        part = parse_part(name)
        of_this_job = name in own or (part and part.parts in plan.parts)
        ours = of_this_job if resume else claims.hold(name)
        if name in keep or _is_leftover(entry) or (entry.kind == "file" and ours):
            continue
        in_data = name.endswith(".parquet") or name.startswith(f"{DATA}/")
        like_a_part = plan.kind != "tokenizer" and in_data
        if like_a_part or name in own or name.startswith(DEAD_LETTERS):
            foreign.append(name)
    if foreign:
        raise OutputError(
            f"{directory} holds {listed(foreign)}, which is not known to be the work of "
            f"{'this' if resume else 'an earlier'} job and would be taken for its output: move it "
            "away, or choose another directory"
        )


def _contents(directory: str, keep: Iterable[str] = ()) -> list[storage.Entry]:
    """What a directory holds but ``keep``; what is in its `_FOLDERS` is ``FOLDER/NAME``."""
    folders = [folder for folder in _FOLDERS if is_folder(directory, folder)]
    top = [entry for entry in storage.entries(directory) if entry.name not in {*keep, *folders}]
    return top + [entry for folder in folders for entry in _inside(directory, folder)]


def _inside(directory: str, folder: str) -> list[storage.Entry]:
    if not is_folder(directory, folder):
        return []
    return [
        storage.Entry(name=f"{folder}/{entry.name}", kind=entry.kind, size=entry.size)
        for entry in storage.entries(join(directory, folder))
    ]


def refuse_links(directory: str, names: Iterable[str]) -> None:
    """Refuse folders of an output directory that are links, which may lead out of it.

    Raises:
        OutputError: one is.
    """
    for name in names:
        if storage.is_local(directory) and Path(directory, name).is_symlink():
            raise OutputError(
                f"{join(directory, name)} is a link, which may lead out of {directory}: remove it, "
                "or choose another directory"
            )


def is_folder(directory: str, name: str) -> bool:
    """Whether ``name`` is a real folder of ``directory``: a link may lead out of it."""
    if not storage.is_local(directory):
        return True
    path = Path(directory, name)
    return path.is_dir() and not path.is_symlink()


def _is_name_of_ours(name: str) -> bool:
    known = {file for files in _FILES.values() for file in files}
    return name in known or bool(parse_part(name))


def listed(names: Iterable[str]) -> str:
    """The first of some names, and how many more there are, for a message."""
    ordered = sorted(names)
    more = f" and {len(ordered) - 3} more" if len(ordered) > 3 else ""
    return ", ".join(repr(name) for name in ordered[:3]) + more
