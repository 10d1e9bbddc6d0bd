"""Counts on a local disk: Parquet parts in ``data/``, and ``manifest.json``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bpe._native import CountRun, merge_runs
from bpe.counts.files import counts_part, read_part, shard_bytes
from bpe.counts.manifest import DATA, MANIFEST_NAME, CountsManifest, check_shards, is_part_name
from bpe.errors import CountsError

if TYPE_CHECKING:
    from pathlib import Path


def write_counts(directory: Path, run: CountRun, manifest: CountsManifest, *, shards: int) -> None:
    """Write the parts, then the manifest with their names; each under a temporary name first.

    Raises:
        CountsError: the directory holds something else, or a pre-token is too large.
        OSError: it cannot be written.
    """
    check_shards(shards)
    directory.mkdir(parents=True, exist_ok=True)
    before = _parts_of_counts(directory)
    data_is_new = not (directory / DATA).exists()
    (directory / DATA).mkdir(exist_ok=True)
    parts = []
    try:
        for shard, part_run in enumerate(run.split(shards)):
            data = shard_bytes(part_run)
            parts.append(counts_part(data, rows=len(part_run), shard=shard, shards=shards))
            _write(directory / parts[-1].file, data)
        text = replace(manifest, parts=tuple(parts)).to_json()
        _write(directory / MANIFEST_NAME, text.encode("utf-8"))
    except BaseException:
        for name in {part.file for part in parts} - before:
            (directory / name).unlink(missing_ok=True)
        if data_is_new:
            (directory / DATA).rmdir()
        raise
    for name in before - {part.file for part in parts}:
        (directory / name).unlink(missing_ok=True)


def read_counts(directory: Path) -> tuple[CountRun, CountsManifest]:
    """All parts as one run, checked against the manifest.

    Raises:
        CountsError: the manifest or a part is missing, damaged, or of another run.
    """
    path = directory / MANIFEST_NAME
    try:
        text = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise CountsError(
            f"{path} is missing: {directory} holds no counts, or counting did not finish; "
            "count again"
        ) from error
    manifest = CountsManifest.from_json(text, where=str(path))
    runs = []
    for shard, part in enumerate(manifest.parts):
        path = directory / part.file
        try:
            data = path.read_bytes()
        except FileNotFoundError as error:
            raise CountsError(f"{path} is missing, the manifest names it: count again") from error
        run = read_part(data, part, shard=shard, shards=len(manifest.parts), where=str(path))
        if (run.documents is None) != (manifest.order_span is None):
            raise CountsError(
                f"{path} {'lacks' if run.documents is None else 'has'} the columns of order, "
                f"the manifest says order_span={manifest.order_span}: count again"
            )
        runs.append(run)
    return merge_runs(runs), manifest


def _parts_of_counts(directory: Path) -> set[str]:
    """The parts in a directory that is empty or holds counts; raises CountsError otherwise."""
    names = {entry.name for entry in directory.iterdir()}
    if not names:
        return names
    path, data = directory / MANIFEST_NAME, directory / DATA
    if MANIFEST_NAME not in names:
        raise CountsError(
            f"{directory} is not empty and holds no finished counts: name another, or delete it"
        )
    CountsManifest.from_json(path.read_bytes(), where=str(path))
    if data.is_symlink():
        raise CountsError(
            f"{data} is a link, which may lead out of {directory}: remove it, or name another "
            "directory"
        )
    parts = {entry.name for entry in data.iterdir()} if data.is_dir() else set()
    others = names - {MANIFEST_NAME, _temporary(path).name, DATA}
    others |= {f"{DATA}/{name}" for name in parts if not is_part_name(name.strip(".~"))}
    if others:
        raise CountsError(
            f"{directory} holds other files than counts, like {min(others)!r}: name another"
        )
    return {f"{DATA}/{name}" for name in parts}


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}~")


def _write(path: Path, data: bytes) -> None:
    temporary = _temporary(path)
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
