"""Read the parts of an encoded corpus: one Parquet file of token ids for each split.

The bytes of a part depend on its split, the options and the tokenizer alone. A record
(`pipelines.stage.record`) proves that a part is finished; the file alone does not.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.errors import InputError, VerificationError
from pipelines.failures import one_line
from pipelines.output.state import checked_file
from pipelines.storage import join

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bpe.counts.manifest import CountsPart
    from pipelines.encode.manifest import Part


@contextlib.contextmanager
def opened(directory: str, part: Part | CountsPart) -> Iterator[pq.ParquetFile]:
    """Open a part of a corpus or of counts, and check its bytes against the manifest.

    Raises:
        InputError: the part is missing, damaged or another file; also if the block finds damage.
    """
    path = join(directory, part.file)
    try:
        with checked_file(path, part.bytes, part.sha256) as source:
            yield open_part(source)
    except VerificationError as error:
        raise InputError(f"{error}: check it with bpe verify {directory}") from error
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
        why = one_line(error)
        raise InputError(f"{path}: damaged: {why}: check it with bpe verify") from error


def open_part(source: Any) -> pq.ParquetFile:
    """Open a part so that every page that is read is checked against its checksum."""
    return pq.ParquetFile(source, page_checksum_verification=True)
