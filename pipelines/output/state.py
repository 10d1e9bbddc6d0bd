"""The state of an output directory, and checks of its files, the same for every command."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bpe.files import CHECKSUM, final_name
from bpe.formats import USUAL_NAMES
from pipelines import storage
from pipelines.errors import InputError, VerificationError
from pipelines.output.directory import contents
from pipelines.output.names import (
    APPENDED_KIND,
    COUNTS,
    DATA,
    DEAD_LETTERS,
    ENCODED,
    EXPORTED,
    FOLDERS_OF,
    GROUPED_KIND,
    LAYOUTS,
    MANIFEST,
    OF_WORDS,
    PLAN,
    RUNS,
    THEN,
    TOKENIZER,
    TRAINING,
    VALIDATION,
    generation_of,
    is_rows,
    json_object,
    parse_part,
    read_manifest_object,
    read_plan,
)
from pipelines.storage import join

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from pipelines.output.names import Kind
    from pipelines.storage import Written

# In the directory of a training or of `bpe run`, in the order in which they are made.
_FOLDERS: dict[str, Kind] = {
    COUNTS: "counts",
    OF_WORDS: "tokenizer",
    RUNS: "counts",
    ENCODED: "encoded",
    EXPORTED: "export",
}
# By the kind that a manifest states.
_KIND_OF: dict[str, Kind] = {
    **dict.fromkeys(("counts", APPENDED_KIND, GROUPED_KIND), "counts"),
    "encoded": "encoded",
    "export": "export",
}
_RESUME = "(an interrupted one can be finished with `resume`)"


@dataclass(frozen=True, kw_only=True)
class Output:
    """A complete output.

    Attributes:
        directory: the path of the directory.
        kind: the kind of output; None if neither plan nor manifest names one.
        manifest: the JSON object in its manifest; empty if it has none.
        folder: the name of the folder, if the directory is one of a larger output.
    """

    directory: str
    kind: Kind | None
    manifest: dict[str, Any] = field(default_factory=dict)
    folder: str = ""


def complete(directory: str, *kinds: Kind) -> Output:
    """Find the complete output in ``directory``; folders of other outputs are not checked.

    Args:
        directory: a path on any filesystem; a missing directory on a store counts as empty.
        kinds: the accepted kinds; if none is given, any directory is accepted.

    Raises:
        InputError: there is no such directory, or the output is incomplete or of another kind.
    """
    root = storage.located(directory)
    if storage.is_local(root) and not Path(root).is_dir():
        raise InputError(f"{directory}: there is no such directory")
    output = _complete(root, directory)
    if kinds and output.kind not in kinds:
        raise InputError(_other(directory, output.kind, kinds))
    return output


def complete_outputs(directory: str) -> tuple[Output, ...]:
    """Return all outputs of a job in ``directory``, in the order in which they are made.

    Raises:
        InputError: there is no output, or one is incomplete.
    """
    output = complete(directory, "counts", "tokenizer", "encoded", "export")
    if output.kind != "tokenizer":
        return (output,)
    root = storage.located(directory)
    plan = read_plan(root)
    settings, promised = plan.get("settings"), FOLDERS_OF.get(str(plan.get(THEN)), ())
    crosses_words = isinstance(settings, dict) and RUNS in settings
    before, after = list[Output](), list[Output]()
    for folder, made in _FOLDERS.items():
        if folder in (OF_WORDS, RUNS) and not crosses_words:
            continue
        path = join(directory, folder)
        found = _complete(join(root, folder), path)
        if folder in promised and found.kind is None:
            raise InputError(_unfinished(path))
        if found.kind == made and not found.manifest.get("discarded"):
            inner = after if folder in (ENCODED, EXPORTED) else before
            inner.append(replace(found, folder=folder))
    return (*before, output, *after)


def _complete(root: str, name: str) -> Output:
    """Return the complete output in a directory, or one of no kind.

    The plan names the kind before there is any output; the manifest exists once the output is
    complete, even if hidden files are left. Both must name the same kind.

    Args:
        root: the directory.
        name: the name of the directory in errors.

    Raises:
        InputError: the output is incomplete.
    """
    path, planned = join(root, MANIFEST), read_plan(root).get("kind")
    is_there = storage.exists(path)
    manifest = _own_manifest(path) if is_there else {}
    kind = _KIND_OF.get(str(manifest.get("kind")))
    if kind is not None and planned not in (None, kind):
        raise InputError(
            f"{path} is of {kind}, and {join(root, PLAN)} says that {planned} were begun here: it "
            "is the manifest of another directory: remove it"
        )
    if kind is not None:
        return Output(directory=name, kind=kind, manifest=manifest)
    # Only a job that reads a corpus leaves parts.
    parts = any(parse_part(one.name) for one in contents(root, {"kind": "encoded"}))
    if planned not in (None, "tokenizer") or (planned is None and parts):
        foreign = f"{path}: not a manifest of counts, of an encoded corpus or of an export"
        raise InputError(foreign if is_there else _unfinished(name))
    if storage.exists(join(root, TOKENIZER)):
        return Output(directory=name, kind="tokenizer")
    if storage.exists(join(root, TRAINING)):
        raise InputError(
            f"{name} holds {TRAINING}, but {TOKENIZER} is missing: repeat its bpe train with "
            "`resume`, which keeps the counts and trains again"
        )
    if planned is not None:
        raise InputError(
            f"{name}: no {TOKENIZER}: no finished training left its tokenizer here {_RESUME}"
        )
    others = (join(root, file) for file in USUAL_NAMES if file != TOKENIZER)
    return Output(directory=name, kind="tokenizer" if any(map(storage.exists, others)) else None)


def _unfinished(name: str) -> str:
    return f"{name}: no {MANIFEST}: no finished job left its output here {_RESUME}"


def _other(name: str, kind: Kind | None, kinds: tuple[Kind, ...]) -> str:
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
    named = " or ".join(f"{LAYOUTS[one].holds} (of {LAYOUTS[one].command})" for one in kinds)
    layout = LAYOUTS[kind]
    return f"{name} holds {layout.holds} (of {layout.command}): name a directory of {named}"


def _own_manifest(path: str) -> dict[str, Any]:
    """Return the JSON object in a manifest; empty if no job of ours wrote it.

    Raises:
        InputError: a manifest of ours is damaged, or it is no JSON object.
    """
    try:
        return read_manifest_object(path)
    except InputError:
        value = json_object(storage.read(path))
        if value is None or CHECKSUM in value or str(value.get("kind")) in _KIND_OF:
            raise
        return {}  # whose it is, is not ours to know


def check_names(
    directory: str, kind: Kind, *, named: Collection[str], appended: bool = False
) -> None:
    """Check that all files of rows and of bad records are ``named``, and none is half-written.

    Files that an appending job has begun to write are allowed and, with ``appended``, superseded
    ones.

    Raises:
        VerificationError: there is such a file.
    """
    for name in (entry.name for entry in contents(directory, {"kind": kind})):
        final = final_name(name)
        part = parse_part(final)
        if (part and (part.generation or appended)) or (appended and final != name):
            continue
        if final != name:
            raise VerificationError(
                f"{join(directory, name)} is half written: a job is at work here, or was killed"
            )
        of_rows = name.startswith((f"{DATA}/", f"{DEAD_LETTERS}/", f"{VALIDATION}/"))
        if (
            of_rows or (name.endswith(".parquet") and not generation_of(name)) or is_rows(name)
        ) and name not in named:
            raise VerificationError(
                f"{join(directory, name)} is not named in the manifest: it is of another run, or "
                "none of ours: move it away"
            )


def check_file(path: str, size: int, sha256: str) -> None:
    """Compare a file with its size in bytes and SHA-256 (hex).

    Raises:
        VerificationError: the file is missing, or its size or SHA-256 differs.
    """
    _check_exists(path)
    _compare(path, storage.digest(path), size, sha256)


@contextlib.contextmanager
def checked_file(path: str, size: int, sha256: str) -> Iterator[Any]:
    """Check a file like `check_file` and open the checked bytes for reading.

    Raises:
        VerificationError: the file is missing, or its size or SHA-256 differs.
    """
    _check_exists(path)
    with storage.read_once(path) as (file, found):
        _compare(path, found, size, sha256)
        yield file


def _check_exists(path: str) -> None:
    if not storage.exists(path):
        raise VerificationError(f"{path} is missing, the manifest names it")


def _compare(path: str, found: Written, size: int, sha256: str) -> None:
    if found.bytes != size:
        raise VerificationError(f"{path} has {found.bytes} bytes, the manifest says {size}")
    if found.sha256 != sha256:
        raise VerificationError(f"{path}: its SHA-256 is not that of the manifest: it was changed")
