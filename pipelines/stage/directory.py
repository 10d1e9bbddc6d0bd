"""Whose output directory it is: one that holds our plan is ours, by a fixed list of names.

A job leaves its plan in its directory before anything else. It says what the job is, so that a run
with ``resume`` goes on with the same job alone, and ``overwrite`` removes what is ours. Anything
that is not named in the list of the job is refused, never removed.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pipelines import storage
from pipelines.errors import OutputError
from pipelines.output.names import MANIFEST, PLAN, PROGRAM, RUN, TIMINGS, json_bytes, read_plan
from pipelines.stage.record import RECORDS, RECORDS_FILE
from pipelines.stage.stage import WORK
from pipelines.storage import join

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pipelines.settings import OutputSettings

STAGED_VERSION = 3  # of `PLAN`, where stages made the output
_OWN = frozenset({PLAN, MANIFEST, RECORDS_FILE, TIMINGS})
_HEADER = ("program", "version", "kind")


@dataclass(frozen=True, kw_only=True)
class Names:
    """The names in the output directory of a kind of job, beside those that every job has.

    Attributes:
        files: of files.
        folders: of folders, with all that is in them.
        pattern: of more files; matched in full.
    """

    files: frozenset[str] = frozenset()
    folders: frozenset[str] = frozenset()
    pattern: str = "(?!)"

    def hold(self, name: str) -> bool:
        """Whether an entry of this name is ours."""
        name = storage.is_temporary(name) or name
        return name in self.files | _OWN or name in self.all_folders or self.is_part(name)

    def is_part(self, name: str) -> bool:
        """Whether a file of this name holds rows."""
        return re.fullmatch(self.pattern, name) is not None

    @property
    def all_folders(self) -> frozenset[str]:
        """Of every job, too."""
        return self.folders | {RECORDS, WORK}


def plan_file(kind: str, run: str, header: Mapping[str, Any]) -> dict[str, Any]:
    """The contents of `PLAN`.

    Args:
        kind: of the job.
        run: the id of its run.
        header: what makes it the same job as another one; the manifest begins with it.
    """
    return {
        "program": PROGRAM,
        "version": STAGED_VERSION,
        "kind": kind,
        RUN: run,
        "header": dict(header),
    }


def decide(
    output: OutputSettings, plan: Mapping[str, Any], *, names: Names, reads: Iterable[str] = ()
) -> Literal["begin", "resume", "own"]:
    """Decide what a job may do with its output directory; change nothing.

    Args:
        output: the directory, and what may be done with what is in it.
        plan: of the job (`plan_file`).
        names: of its kind.
        reads: files or directories that it reads; none may lie in the directory.

    Returns:
        ``begin``: remove what an earlier job left, if anything; ``resume`` that job; ``own``: this
        very run began there, and its runner has started it anew.

    Raises:
        OutputError: the directory holds something that is not ours, or that neither ``overwrite``
            nor ``resume`` applies to.
    """
    directory = storage.located(output.directory)
    _refuse_inputs_inside(directory, reads)
    earlier = read_plan(directory)
    if earlier.get(RUN) == plan[RUN]:
        return "own"
    found = [entry.name for entry in storage.entries(directory)]
    _refuse_links(directory, names)
    foreign = sorted(name for name in found if not names.hold(name))
    if earlier and (earlier.get("kind"), earlier.get("version")) != (plan["kind"], STAGED_VERSION):
        raise OutputError(
            f"{directory} holds the output of another job (kind {earlier.get('kind')!r}, version "
            f"{earlier.get('version')!r}): choose another directory, or remove it"
        )
    if foreign or (found and not earlier and not _only_temporaries(found)):
        first = (foreign or sorted(found))[0]
        raise OutputError(
            f"{directory} holds {first!r}, which is not the output of this kind of job: choose an "
            "empty directory"
        )
    if not earlier:
        return "begin"
    complete = MANIFEST in found
    if not (output.resume or output.overwrite):
        state = "complete" if complete else "not finished"
        helps = "" if complete else "finish it with `resume`, "
        raise OutputError(
            f"{directory} holds the output of an earlier run, which is {state}: {helps}replace it "
            "with `overwrite`, or choose another directory"
        )
    if output.overwrite:
        return "begin"
    if differences := _differences(earlier.get("header"), plan["header"]):
        more = "" if len(differences) <= 3 else f" (and {len(differences) - 3} more)"
        raise OutputError(
            f"{directory}: cannot resume: it was begun as another job: "
            f"{'; '.join(differences[:3])}{more}: use `overwrite`, or another directory"
        )
    return "resume"


def prepare(
    output: OutputSettings, plan: Mapping[str, Any], *, names: Names, reads: Iterable[str] = ()
) -> Literal["begin", "resume", "own"]:
    """Do as `decide` says, and leave the plan in the directory.

    Raises:
        OutputError: the directory cannot be used, or not be written to.
    """
    directory = storage.located(output.directory)
    action = decide(output, plan, names=names, reads=reads)
    storage.make_directory(directory)
    if action == "begin":
        remove_output(directory, names)
    if action != "own":
        storage.remove(join(directory, MANIFEST))
        storage.write(join(directory, PLAN), json_bytes(plan))
    return action


def remove_output(directory: str, names: Names) -> None:
    """Remove the output of a job; the manifest goes first, the plan last.

    Raises:
        OutputError: something cannot be removed.
    """
    found = [entry for entry in storage.entries(directory) if names.hold(entry.name)]
    for entry in sorted(found, key=lambda one: (one.name != MANIFEST, one.name == PLAN, one.name)):
        if entry.name in names.all_folders:
            storage.remove_tree(join(directory, entry.name))
        else:
            storage.remove(join(directory, entry.name))


def remove_temporaries(directory: str, names: Names) -> None:
    """Remove what writers left that were killed; none may be at work.

    Raises:
        OutputError: something cannot be removed.
    """
    for folder in (directory, *(join(directory, name) for name in sorted(names.folders))):
        for entry in storage.entries(folder):
            if storage.is_temporary(entry.name) is not None:
                storage.remove(join(folder, entry.name))


def _only_temporaries(found: Iterable[str]) -> bool:
    """Whether a killed writer of the plan left all that is there."""
    return all(storage.is_temporary(name) == PLAN for name in found)


def _differences(earlier: object, header: Mapping[str, Any], place: str = "") -> list[str]:
    """What makes an earlier job another one, one phrase for each value."""
    if not isinstance(earlier, dict):
        return [f"{place or 'its plan'} cannot be read"]
    found = []
    for name in sorted(earlier.keys() | header.keys()):
        old, new = earlier.get(name), header.get(name)
        if old == new:
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            found += _differences(old, new, f"{place}{name}.")
        else:
            found.append(f"{place}{name} was {_short(old)}, is {_short(new)}")
    return found


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _refuse_inputs_inside(directory: str, reads: Iterable[str]) -> None:
    roots = _places(directory)
    for path in reads:
        if any(f"{place}/".startswith(f"{root}/") for place in _places(path) for root in roots):
            raise OutputError(
                f"{path} is read by this job and lies in its output directory {directory}: choose "
                "another directory"
            )


def _places(path: str) -> set[str]:
    """A path as it is named and, where it is local, as links lead there."""
    return {path.rstrip("/"), os.path.realpath(path)} if storage.is_local(path) else {path}


def _refuse_links(directory: str, names: Names) -> None:
    """Refuse folders that are links: they may lead out of the directory."""
    if not storage.is_local(directory):
        return
    for name in sorted(names.all_folders):
        if Path(directory, name).is_symlink():
            raise OutputError(
                f"{join(directory, name)} is a link, which may lead out of {directory}: remove it, "
                "or choose another directory"
            )
