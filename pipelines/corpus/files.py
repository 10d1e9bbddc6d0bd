"""Files of a corpus, with the format and the compression that their names give."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pipelines.errors import ConfigError, InputError
from pipelines.formats import FILE_FORMATS, SUFFIXES, WITH_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipelines.formats import FileFormat
    from pipelines.settings import Format
    from pipelines.storage import Version

Compression = Literal["none", "gz", "zst", "bz2", "xz"]
COMPRESSION_SUFFIXES: dict[str, Compression] = {
    ".gz": "gz",
    ".zst": "zst",
    ".bz2": "bz2",
    ".xz": "xz",
}
UNREADABLE_SUFFIXES = (".zip", ".tar", ".tgz", ".7z", ".rar", ".lz4", ".z", ".br", ".lzma", ".sz")
# Of files that hold records in a way that is not read.
RECORD_SUFFIXES = (
    *(".csv", ".tsv", ".psv", ".xls", ".xlsx", ".ods", ".avro", ".orc", ".arrow", ".feather"),
    *(".tfrecord", ".tfrecords", ".msgpack", ".bson", ".jsonlines", ".warc", ".sqlite", ".sqlite3"),
    *(".h5", ".hdf5", ".npy", ".npz", ".pkl", ".pickle"),
)
# Added to the name of a file that is kept next to another.
_BACKUP = re.compile(r"(?:\.(?:bak|backup|old|orig|save|tmp|copy|part|[0-9][0-9-]*)|~)+\Z")


@dataclass(frozen=True, kw_only=True)
class InputFile:
    r"""One file of a corpus.

    Attributes:
        path: the location: an absolute local path, or a URL of one of Beam's filesystems.
        name: the path below the deepest folder that holds all inputs, with ``/`` between its
            parts; bytes of a file name that are not UTF-8 are written ``\xNN``. Document ids
            and manifests use this name, so that they do not depend on the path of the corpus.
        file_size: the stored size in bytes.
        format: the format of the file.
        compression: the compression of the file; ``none`` if the file is not compressed.
        version: the version that was listed; None if the version is not known.
        source: the name of the source of the file; empty if the source has no name.
    """

    path: str
    name: str
    file_size: int
    format: FileFormat
    compression: Compression
    version: Version | None = None
    source: str = ""

    @property
    def size(self) -> int:
        """Return the stored size in bytes."""
        return self.file_size

    @property
    def can_be_cut(self) -> bool:
        """True if a range of the file can be read by itself."""
        return self.compression == "none" and not FILE_FORMATS[self.format].uncut


def check_columns(files: Iterable[InputFile], option: str) -> None:
    """Check that the records of all files have columns, or fields; ``option`` names them.

    Raises:
        ConfigError: a file has a format without columns.
    """
    for file in files:
        if file.format not in WITH_COLUMNS:
            raise ConfigError(
                f"{option}: {file.path} is read as {file.format}, which has no columns: only "
                f"{' and '.join(WITH_COLUMNS)} have"
            )


def input_file(
    path: str, name: str, size: int, asked: Format, *, version: Version | None = None
) -> InputFile:
    """Return the input file of a name; ``asked`` is the format, or ``auto``.

    Raises:
        InputError: files of this kind are not read.
    """
    suffix, compression = suffix_of(name)
    if asked == "auto" and suffix in UNREADABLE_SUFFIXES:
        raise InputError(
            f"{path}: {suffix} files are not read: unpack it, or compress it as .gz, .zst, .bz2 or "
            ".xz (or say `format` if it is plain text after all)"
        )
    if asked == "auto" and (records := _unread_records(name)):
        raise InputError(
            f"{path}: the name says that it holds records ({records}), and such files are not "
            "read: make JSON lines or Parquet of it, leave it out with a pattern, or say "
            "`format` (text: the whole file is one document)"
        )
    format_ = format_of(name) if asked == "auto" else asked
    if compression != "none" and not FILE_FORMATS[format_].can_be_compressed:
        raise InputError(
            f"{path}: {format_} files are compressed inside and read at random: unpack the "
            f".{compression} around it"
        )
    return InputFile(
        path=path,
        name=name,
        file_size=size,
        format=format_,
        compression=compression,
        version=version,
    )


def suffix_of(name: str) -> tuple[str, Compression]:
    """Return the suffix that gives the format, and the compression of the file."""
    stem, suffix = posixpath.splitext(name.lower())
    compression = COMPRESSION_SUFFIXES.get(suffix, "none")
    return (suffix if compression == "none" else posixpath.splitext(stem)[1]), compression


def _unread_records(name: str) -> str:
    """Return the suffix of a file of records that is not read; empty for other files."""
    stem, last = posixpath.splitext(name.lower())
    if last not in COMPRESSION_SUFFIXES:
        stem += last
    original = _BACKUP.sub("", stem)
    suffix, _ = suffix_of(original)
    is_backup = original != stem and suffix in SUFFIXES
    return suffix if is_backup or suffix in RECORD_SUFFIXES else ""


def format_of(name: str) -> FileFormat:
    """Return the format that the name of a file gives."""
    return SUFFIXES.get(suffix_of(name)[0], "text")


def check_formats(pattern: str, names: Iterable[str]) -> None:
    """Check that the files of a folder or glob are not partly records and partly text.

    Raises:
        InputError: some files hold records and others are text; the message counts each format.
    """
    first: dict[str, str] = {}
    formats: Counter[str] = Counter()
    for name in names:
        format_ = format_of(name)
        formats[format_] += 1
        first[format_] = min(first.get(format_, name), name)
    if len(formats) > 1 and "text" in formats:
        listed = ", ".join(
            f"{formats[one]:,} {one} ({printable_name(first[one])})" for one in sorted(formats)
        )
        raise InputError(
            f"{pattern!r} matches files of records and text files, of which each would be one "
            f"document: {listed}: name one kind with a pattern such as '*.jsonl', or say `format`"
        )


def printable_name(path: str) -> str:
    """Return a path as text; bytes that are not UTF-8 become escapes."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
