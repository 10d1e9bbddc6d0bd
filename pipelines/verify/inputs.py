"""The match of the inputs given with the inputs in the manifest of an output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.append import base_of
from pipelines.corpus.inputs import find_inputs
from pipelines.errors import VerificationError
from pipelines.output.names import BASE, read_plan

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipelines.corpus.files import InputFile
    from pipelines.settings import InputSettings
    from pipelines.totals import SetAside


def match_inputs(
    directory: str,
    inputs: InputSettings,
    stated: Iterable[tuple[str, int, str | None]],
    *,
    set_aside: Iterable[SetAside] = (),
) -> list[InputFile]:
    """Return the files given that a manifest names, in the order of the manifest.

    Args:
        directory: the directory of the output.
        inputs: the files given.
        stated: name, size and source of each file of the manifest; the source is None if the
            manifest names no sources, and empty if the file has none.
        set_aside: unreadable files, which are ignored if files were appended to the output.

    Raises:
        VerificationError: the files given differ from the manifest in name, size or source.
        InputError: the files cannot be listed.
    """
    appended = BASE in read_plan(directory)
    found = find_inputs(inputs, below=base_of(directory) if appended else None).files
    aside = {one.name for one in set_aside}
    given: dict[str, list[InputFile]] = {}
    for file in found:
        if not appended or file.name not in aside:
            given.setdefault(file.name, []).append(file)
    same = "give the same `input` patterns as for the job"
    matched = []
    for name, size, source in stated:
        if not given.get(name):
            raise VerificationError(
                f"{directory}: input {name!r} of the manifest is not among the files given: {same}"
            )
        file = given[name].pop(0)
        if source is not None and file.source not in ("", source):
            raise VerificationError(
                f"{file.path} was given as of the source {file.source}, and the manifest says "
                f"{source or 'that it is of none'}: give the same `input` NAME=PATTERN as for the "
                "job"
            )
        if file.size != size:
            raise VerificationError(
                f"{file.path} has {file.size} bytes, the manifest says {size}: the input was "
                "changed"
            )
        matched.append(file)
    if more := sorted(name for name, left in given.items() if left):
        raise VerificationError(
            f"{directory}: input {more[0]!r} is not among the inputs of the manifest: {same}"
        )
    return matched
