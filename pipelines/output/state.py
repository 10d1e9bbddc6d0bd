"""The state of an output directory, the same for every command."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bpe.formats import USUAL_NAMES
from pipelines import storage
from pipelines.errors import InputError
from pipelines.output.names import (
    APPENDED_KIND,
    COUNTS,
    DATA,
    DEAD_LETTERS,
    ENCODED,
    EXPORTED,
    FOLDERS_OF,
    GROUPED_KIND,
    MANIFEST,
    OF_WORDS,
    PLAN,
    RUNS,
    THEN,
    TOKENIZER,
    TRAINING,
    parse_part,
    read_manifest_object,
    read_plan,
)
from pipelines.storage import join

if TYPE_CHECKING:
    from pipelines.output.names import Kind

_KINDS: tuple[Kind, ...] = ("counts", "tokenizer", "encoded", "export")
# In the directory of a training or of `bpe run`, in the order in which they are made.
_FOLDERS: dict[str, Kind] = {
    COUNTS: "counts",
    OF_WORDS: "tokenizer",
    RUNS: "counts",
    ENCODED: "encoded",
    EXPORTED: "export",
}
_RESUME = "(an interrupted one can be finished with `resume`)"


@dataclass(frozen=True, kw_only=True)
class Output:
    """The state of a directory.

    Attributes:
        directory: the path of the directory.
        kind: the kind of output that a job made or began to make; None if neither plan nor
            manifest names one.
        problem: the message of the error if the output is incomplete; None if it is complete.
        inner: the outputs in the folders of a job that makes several.
        folder: the name of the folder, if the directory is one of a larger output.
    """

    directory: str
    kind: Kind | None
    problem: str | None = None
    inner: tuple[Output, ...] = ()
    folder: str = ""


def inspect(directory: str) -> Output:
    """Find the output in ``directory``; a missing one on an object store counts as empty.

    The plan names the kind of output before there is any; the manifest exists once the output is
    complete, even if hidden files are left. Both must name the same kind.

    Raises:
        InputError: the directory does not exist.
    """
    root = storage.located(directory)
    if storage.is_local(root) and not Path(root).is_dir():
        raise InputError(f"{directory}: there is no such directory")
    plan = _plan(root)
    kind, problem = _state(root, directory, plan)
    return Output(
        directory=directory,
        kind=kind,
        problem=problem,
        inner=_inner(root, directory, plan) if kind in ("tokenizer", None) else (),
    )


def complete(directory: str, *kinds: Kind) -> Output:
    """Find the complete output in ``directory``; folders of other outputs are not checked.

    Args:
        directory: a path on any filesystem.
        kinds: the accepted kinds; if none is given, any directory is accepted.

    Raises:
        InputError: the output is incomplete or of another kind.
    """
    output = inspect(directory)
    if output.problem is not None:
        raise InputError(output.problem)
    if kinds and output.kind not in kinds:
        raise InputError(_other(output, kinds))
    return output


def complete_outputs(directory: str, *kinds: Kind) -> tuple[Output, ...]:
    """Return all outputs of a job in ``directory``, in the order in which they are made.

    Args:
        directory: a path on any filesystem.
        kinds: the accepted kinds; if none is given, every kind.

    Raises:
        InputError: there is no output, one is incomplete, or it is of another kind.
    """
    output = complete(directory, *(kinds or _KINDS))
    for inner in output.inner:
        if inner.problem is not None:
            raise InputError(inner.problem)
    later = ("encoded", "export") if output.kind == "tokenizer" else ("export",)
    after = [inner for inner in output.inner if inner.kind in later]
    return (*(inner for inner in output.inner if inner not in after), output, *after)


def _plan(root: str) -> dict[str, Any]:
    plan = read_plan(root)
    return plan if plan.get("kind") in _KINDS else {}


def _state(root: str, name: str, plan: dict[str, Any]) -> tuple[Kind | None, str | None]:
    """Return the kind of output in a directory, and the problem if it is incomplete."""
    planned: Kind | None = plan.get("kind")
    path = join(root, MANIFEST)
    if not storage.exists(path):
        if planned in ("counts", "encoded", "export"):
            return planned, _unfinished(name)
        return _tokenizer_state(root, name, planned)
    try:
        manifest = _read(root)
    except InputError as error:
        return planned, str(error)
    kind = _kind_of(manifest)
    if kind is None and not _parts(root):
        kind, problem = _tokenizer_state(root, name, planned)
        if kind == "tokenizer":  # whose manifest it is, is not ours to know
            return kind, problem
    if kind is None:
        return planned, f"{path}: not a manifest of counts, of an encoded corpus or of an export"
    if planned not in (None, kind):
        return planned, (
            f"{path} is of {kind}, and {join(root, PLAN)} says that {planned} were begun here: it "
            "is the manifest of another directory: remove it"
        )
    return kind, None


def _tokenizer_state(root: str, name: str, planned: Kind | None) -> tuple[Kind | None, str | None]:
    """Return kind and problem of a directory without a manifest, such as a tokenizer's."""
    if planned is None and _parts(root):
        return None, _unfinished(name)
    if storage.exists(join(root, TOKENIZER)):
        return "tokenizer", None
    if storage.exists(join(root, TRAINING)):
        return "tokenizer", (
            f"{name} holds {TRAINING}, but {TOKENIZER} is missing: repeat its bpe train with "
            "`resume`, which keeps the counts and trains again"
        )
    if planned is not None:
        return "tokenizer", (
            f"{name}: no {TOKENIZER}: no finished training left its tokenizer here {_RESUME}"
        )
    others = (join(root, file) for file in USUAL_NAMES if file != TOKENIZER)
    return ("tokenizer" if any(map(storage.exists, others)) else None), None


def _inner(root: str, name: str, plan: dict[str, Any]) -> tuple[Output, ...]:
    found = []
    settings, promised = plan.get("settings"), FOLDERS_OF.get(str(plan.get(THEN)), ())
    crosses_words = isinstance(settings, dict) and RUNS in settings
    for folder, made in _FOLDERS.items():
        if folder in (OF_WORDS, RUNS) and not crosses_words:
            continue
        inner, path = join(root, folder), join(name, folder)
        begun = _plan(inner)
        kind, problem = _state(inner, path, begun)
        if kind == ENCODED and problem is None and _read(inner).get("discarded"):
            continue
        if folder in promised and kind is None:
            kind, problem = made, _unfinished(path)
        if kind == made or problem is not None:
            found.append(Output(directory=path, kind=kind, problem=problem, folder=folder))
    return tuple(found)


def _read(root: str) -> dict[str, Any]:
    return read_manifest_object(join(root, MANIFEST))


def _unfinished(name: str) -> str:
    return f"{name}: no {MANIFEST}: no finished job left its output here {_RESUME}"


def _other(output: Output, kinds: tuple[Kind, ...]) -> str:
    name, kind = output.directory, output.kind
    if kind is None:
        return (
            f"{name}: no {MANIFEST}: no finished job left its output here: name a directory that "
            f"bpe count, train, encode or run has made {_RESUME}"
        )
    if kind == "tokenizer":
        return (
            f"{name} holds a tokenizer, not counts or token ids: name what bpe count or bpe encode "
            "made (counts of a training are in its folder counts)"
        )
    wanted = {
        "counts": "counts (of bpe count)",
        "tokenizer": "a tokenizer (of bpe train)",
        "encoded": "token ids (of bpe encode)",
        "export": "an export (of bpe export)",
    }
    named = " or ".join(wanted.get(one, one) for one in kinds)
    return f"{name} holds {wanted[kind]}: name a directory of {named}"


def _kind_of(manifest: dict[str, Any]) -> Kind | None:
    """Return the kind of output that a manifest describes."""
    kind = manifest.get("kind")
    if kind in ("counts", APPENDED_KIND, GROUPED_KIND):
        return "counts"
    return kind if kind in ("encoded", "export") else None


def _parts(root: str) -> bool:
    """Return whether the directory has parts, which only a job that reads a corpus leaves."""
    return any(
        parse_part(f"{folder}/{entry.name}")
        for folder in (DATA, DEAD_LETTERS)
        if not storage.is_local(root) or Path(root, folder).is_dir()
        for entry in storage.entries(join(root, folder))
    )
