"""Group documents by the values of a field."""

from __future__ import annotations

from operator import methodcaller
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from pipelines.output.names import group_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipelines.corpus.documents import Block, ReadOptions
    from pipelines.corpus.splits import FileRange

_MOST_NAME = 250  # bytes; filesystems allow 255


def named_groups(block: Block, options: ReadOptions, pieces: Sequence[FileRange]) -> Block:
    """Turn documents whose group is too long for the name of a folder into bad records."""
    if len(block) == 0 or block.own_ids is None:
        return block
    field = options.id_field or ""
    long = {
        value
        for value in pc.unique(block.own_ids).to_pylist()
        if len(group_folder(field, value)) > _MOST_NAME
    }
    if not long:
        return block
    reasons = {
        row: f"group field {field!r} holds a value too long to call a folder by, {value!r:.60} "
        "(name another field with `group_by`)"
        for row, value in enumerate(block.own_ids.to_pylist())
        if value in long
    }
    return block.without_bad(reasons, pieces)


def by_group(block: Block) -> Iterator[tuple[str, Block]]:
    """Yield each group of a block with its documents, in their order."""
    if len(block) == 0 or block.own_ids is None:
        return
    order = pc.sort_indices(block.own_ids)  # a stable sort
    values = block.own_ids.take(order)
    ends = pc.run_end_encode(values).run_ends.to_pylist()
    for begin, end in zip([0, *ends], ends, strict=False):
        rows = order.slice(begin, end - begin)
        is_all = len(rows) == len(block)
        of_group = block if is_all else block.changed(methodcaller("take", rows))
        yield values[begin].as_py(), of_group
