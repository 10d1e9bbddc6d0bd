"""The directory of a job: one that holds our plan is ours, by a fixed list of names.

A job writes its plan (`pipelines.output.names.PLAN`) into its directory before anything else. The
plan identifies the job: ``--resume`` continues the same job only, and ``--overwrite`` removes the
files of the job, damaged ones included. A directory without a plan must be empty, and a name that
is not in the list of the job is refused, so that files of others are never removed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from bpe._codec import from_jsonable
from bpe._inputs_file import INPUTS
from bpe.files import final_name
from pipelines import storage
from pipelines.errors import OutputError
from pipelines.output.names import (
    BASE,
    FOLDERS_OF,
    LAYOUTS,
    MANIFEST,
    PLAN,
    REPORT,
    ROLES_FILES,
    RUN,
    THEN,
    TIMINGS,
    TOKENIZER,
    Plan,
    dead_letters_in,
    group_folder,
    json_bytes,
    parse_part,
    read_plan,
)
from pipelines.storage import join

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pipelines.settings import OutputSettings

# The treatment of the contents of a job's directory: it is removed, if anything is there; the job
# goes on with it; or this very run began there, and its runner has started it anew.
Action: TypeAlias = Literal["begin", "resume", "own"]


def _holds(entry: storage.Entry, plan: Mapping[str, Any]) -> bool:
    """Return whether an entry of `contents` is of the job of the plan."""
    layout = LAYOUTS[plan["kind"]]
    name, (first, _, inside) = entry.name, entry.name.partition("/")
    if (group := _group(plan)) and first.startswith(group):
        name = inside
    if entry.is_directory:
        return name in layout.trees or name in layout.jobs
    name = final_name(name)
    return entry.is_file and (
        name in layout.files or name in _OF_EVERY_JOB or bool(layout.is_part(name))
    )


_OF_EVERY_JOB = frozenset({PLAN, MANIFEST, TIMINGS, REPORT})


def decide(output: OutputSettings, plan: Plan, *, reads: Iterable[str] = ()) -> Action:
    """Decide what a job may do with its output directory; change nothing.

    The command decides before it submits the job, and the first step of the job again (`prepare`).

    Args:
        output: the directory, and whether to overwrite, resume or append.
        plan: the plan of the job.
        reads: files the job reads; none of them may be in the directory.

    Raises:
        OutputError: the directory holds files of others, or output that may be neither overwritten
            nor resumed.
    """
    directory = storage.located(output.directory)
    refuse_inputs_inside(directory, reads)
    earlier = read_plan(directory)
    if plan.run and earlier.get(RUN) == plan.run:
        return "own"
    if not earlier:
        names = (one.name for one in contents(directory, earlier))
        if left := [one for one in names if one not in plan.keep and final_name(one) != PLAN]:
            raise OutputError(
                f"{directory} holds {listed(left)}, and no {PLAN} says that a job left it there: "
                "choose an empty directory"
            )
        return "begin"
    kind: Any = str(earlier.get("kind"))
    version = earlier.get("version")
    layout = LAYOUTS.get(kind)
    if layout is None or version != layout.version:
        raise OutputError(
            f"{directory} holds the output of another release of beam-bpe, {kind} in layout "
            f"{version} (this release writes {layout and layout.version}): remove it and run the "
            "job again, or choose another directory"
        )
    found = [one for one in contents(directory, earlier) if one.name not in plan.keep]
    _refuse_foreign(directory, earlier, found)
    complete = any(entry.name == layout.last for entry in found)
    alone = all(entry.is_file and "/" not in entry.name for entry in found)
    if not complete and (alone or kind == "counts"):  # of no use: counts are counted again
        return "begin"
    appends = plan.base is not None
    if not (output.resume or output.overwrite or appends):
        raise _occupied(directory, earlier, complete=complete)
    if output.overwrite:
        return "begin"
    if appends and not complete:
        same = earlier.get("inputs") == plan.inputs and not plan.differences(earlier)
        return "resume" if same else "begin"
    if different := plan.differences(earlier):
        more = "" if len(different) <= 3 else f" (and {len(different) - 3} more)"
        raise OutputError(
            f"{directory}: cannot {'append' if appends else 'resume'}: it was begun as another "
            f"job: {'; '.join(different[:3])}{more}: use `overwrite`, or another directory"
        )
    return "resume"


def prepare(output: OutputSettings, plan: Plan, *, reads: Iterable[str] = ()) -> None:
    """Prepare the output directory for a job, and write the plan into it.

    Args:
        output: the directory, and whether to overwrite, resume or append.
        plan: the plan of the job that is about to run.
        reads: as for `decide`.

    Raises:
        OutputError: the directory is refused (`decide`) or cannot be written to.
    """
    directory = storage.located(output.directory)
    action = decide(output, plan, reads=reads)
    remove_temporaries(directory)
    if action == "begin":
        remove_ours(directory)
    appended = plan.base is not None and action == "resume"
    if plan.kind != "tokenizer" and not appended:
        again = dead_letters_in(directory) if plan.kind == "counts" else []  # all is counted again
        for name in (MANIFEST, INPUTS, *again):
            storage.remove(join(directory, name))
    storage.write(join(directory, PLAN), json_bytes(plan.to_json()))


@contextlib.contextmanager
def locked(directory: str) -> Iterator[None]:
    """Keep other jobs out of a local directory for as long as the block runs.

    An object store has no locks: there the run id in the plan decides. The kernel releases the lock
    when the process ends, in whatever way. On filesystems without locks, no job is kept out.

    Raises:
        OutputError: another job holds the lock, or the directory cannot be opened.
    """
    directory = storage.located(directory)
    if not storage.is_local(directory):
        yield
        return
    with storage.writing(directory):
        try:
            Path(directory).mkdir(parents=True, exist_ok=True)
        except FileExistsError as error:
            raise OutputError(f"{directory} is a file: name a directory") from error
        handle = os.open(directory, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise OutputError(
                f"{directory}: another job is writing to it: wait for it, or choose another "
                "directory"
            ) from error
        except OSError:  # no locks here, as on some network filesystems
            pass
        yield
    finally:
        os.close(handle)


def plan_of_run(directory: str, run: str) -> Plan:
    """Return the plan that the run of this id has written.

    Raises:
        OutputError: the plan is another run's, or there is none.
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
    return from_jsonable(Plan, plan)


def write_files(directory: str, files: Mapping[str, bytes]) -> None:
    """Write the files that differ from those there; a ``tokenizer.json`` removes earlier roles.

    Raises:
        InputError, OutputError: a file cannot be read, written or removed.
    """
    for name, data in files.items():
        if storage.read_if_there(join(directory, name)) != data:
            storage.write(join(directory, name), data)
    if TOKENIZER in files:
        for name in set(ROLES_FILES).difference(files):
            storage.remove(join(directory, name))


def _refuse_foreign(
    directory: str, plan: Mapping[str, Any], found: Iterable[storage.Entry]
) -> None:
    """Check that every entry of a directory is of the job of its plan.

    Raises:
        OutputError: an entry is not.
    """
    command, parts = LAYOUTS[plan["kind"]].command, plan.get("parts") or ()
    foreign = []
    for entry in found:
        of = parse_part(final_name(entry.name)) if parts else None
        strange = of is not None and not of.generation and of.parts not in parts
        if not _holds(entry, plan) or strange:
            foreign.append(entry.name)
    if foreign:
        raise OutputError(
            f"{directory} holds {listed(foreign)}, which {command} does not leave there: "
            "move it away, or choose another directory"
        )


def _occupied(directory: str, plan: Mapping[str, Any], *, complete: bool) -> OutputError:
    """Return the error for the output of an earlier job, with the remedy."""
    command, then = LAYOUTS[plan["kind"]].command, plan.get(THEN)
    replace_it = "replace it with `overwrite`, or choose another directory"
    if BASE in plan:
        return OutputError(
            f"{directory} holds the output of {command} --append: repeat its command to go on "
            f"with it, {replace_it}"
        )
    if then is not None:
        command, folders = "bpe run", FOLDERS_OF.get(then, ())
        complete = all(storage.exists(join(directory, one, MANIFEST)) for one in folders)
    if complete:
        return OutputError(
            f"{directory} holds the output of {command}, which is complete: {replace_it}"
        )
    return OutputError(
        f"{directory} holds the output of {command}, which is not finished: repeat its "
        f"command with `resume`, {replace_it}"
    )


def remove_temporaries(directory: str) -> None:
    """Remove the temporary files of killed writers; no writer may be running."""
    plan = read_plan(directory)
    for entry in contents(directory, plan):
        final = final_name(entry.name)
        is_ours = final == PLAN or (plan.get("kind") in LAYOUTS and _holds(entry, plan))
        if entry.name != final and is_ours:
            storage.remove(join(directory, entry.name))


def remove_ours(directory: str) -> None:
    """Remove the files of the job whose plan is in ``directory``, and no others.

    Raises:
        OutputError: a file cannot be removed.
    """
    plan = read_plan(directory)
    if not plan:
        return
    layout = LAYOUTS[plan["kind"]]
    # The manifest goes first: without it, nobody takes the rest for a finished job.
    found = [entry for entry in contents(directory, plan) if _holds(entry, plan)]
    for entry in sorted(found, key=lambda one: (one.name != MANIFEST, one.name == PLAN, one.name)):
        if entry.is_file:
            storage.remove(join(directory, entry.name))
        elif entry.name in layout.trees:
            storage.remove_tree(join(directory, entry.name))
    emptied = {str(folder) for entry in found for folder in PurePosixPath(entry.name).parents}
    for folder in sorted({*emptied, *layout.folders} - {"."}, reverse=True):
        storage.remove_empty(join(directory, folder))


def _group(plan: Mapping[str, Any]) -> str:
    """Return the common prefix of the folders of groups; empty without groups."""
    field = plan.get("settings", {}).get("group_by") if plan.get("kind") == "counts" else None
    return group_folder(field, "") if isinstance(field, str) else ""


def contents(directory: str, plan: Mapping[str, Any]) -> Iterator[storage.Entry]:
    """Yield the entries of a directory; names in the folders of its job as ``FOLDER/NAME``.

    Args:
        directory: a path on any filesystem.
        plan: the plan of the job; one of another kind than `LAYOUTS` has no folders.
    """
    kind: Any = str(plan.get("kind"))
    group = _group(plan)
    folders = LAYOUTS[kind].folders if kind in LAYOUTS else ()
    for entry in storage.entries(directory):
        of_group = bool(group) and entry.name.startswith(group)
        if not entry.is_directory or not (of_group or entry.name in folders):
            yield entry
            continue
        inner = {"kind": kind} if of_group else {}
        for one in contents(join(directory, entry.name), inner):
            yield one._replace(name=f"{entry.name}/{one.name}")


def refuse_inputs_inside(directory: str, reads: Iterable[str]) -> None:
    """Check that the job reads no file in its output directory.

    Raises:
        OutputError: a path of ``reads`` is in it.
    """
    roots = _places(directory)
    for path in reads:
        if any(f"{place}/".startswith(f"{root}/") for place in _places(path) for root in roots):
            raise OutputError(
                f"{path} is read by this job and is in its output directory {directory}: "
                "choose another directory"
            )


def _places(path: str) -> set[str]:
    """Return a path as named and, if it is local, with links resolved."""
    path = path.rstrip("/")
    return {path, os.path.realpath(path)} if storage.is_local(path) else {path}


def refuse_links(directory: str, names: Iterable[str]) -> None:
    """Check that no folder of an output directory is a link, which may lead out of the directory.

    Raises:
        OutputError: a folder is a link.
    """
    for name in names:
        if storage.is_local(directory) and Path(directory, name).is_symlink():
            raise OutputError(
                f"{join(directory, name)} is a link, which may lead out of {directory}: remove it, "
                "or choose another directory"
            )


def listed(names: Iterable[str]) -> str:
    """Return the first names and the number of the others, for a message."""
    ordered = sorted(names)
    more = f" and {len(ordered) - 3} more" if len(ordered) > 3 else ""
    return ", ".join(repr(name) for name in ordered[:3]) + more
