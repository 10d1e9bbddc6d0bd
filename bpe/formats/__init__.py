"""Tokenizer files: one module for each format, and the list of all, :data:`FORMATS`.

A new format is a module with a :class:`~bpe.formats.format.Format`, added to the list: names,
endings and companions of files follow from it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Mapping
from pathlib import Path

from bpe.errors import TokenizerError, TokenizerFileError
from bpe.files import uncollected
from bpe.formats import gpt2, huggingface, sentencepiece, tiktoken
from bpe.formats.export_checks import LEAVE_OUT as LEAVE_OUT
from bpe.formats.export_checks import check_leave_out
from bpe.formats.format import Format, SpecialIds, TokenizerFiles
from bpe.formats.published import find, of_name
from bpe.parts import Parts
from bpe.pretokenizer import Pretokenizer

FORMATS: tuple[Format, ...] = (
    tiktoken.FORMAT,
    sentencepiece.FORMAT,
    gpt2.FORMAT,
    huggingface.FORMAT,
)
"""All formats; a file is of the first that its name fits."""

ENDINGS = tuple(dict.fromkeys(Path(name).suffix for one in FORMATS for name in one.names))
"""The ends of the names of tokenizer files, of all formats."""

USUAL_NAMES = tuple(name for format_ in reversed(FORMATS) for name in format_.usual_names)
"""The names of tokenizer files in a directory; if it holds several, the first is read."""


@uncollected()
def read(
    path: Path,
    *,
    pretokenizer: Pretokenizer | None = None,
    special_tokens: SpecialIds | None = None,
    vocabulary_path: Path | None = None,
) -> Parts:
    """Read a tokenizer file of any format; its name says which.

    Args:
        path: ``*.tiktoken``, or a ``*.model`` that holds the same (Llama 3); any other
            ``*.model`` as SentencePiece's; ``*vocab.json`` with
            ``*merges.txt`` next to it, or either of the two; any other ``*.json`` as Hugging
            Face's tokenizer.json; a directory that holds such files; or the name of a published
            vocabulary, such as ``gpt2``, whose file is on this machine.
        pretokenizer: how text is cut, for formats that do not say it.
        special_tokens: each with its id, or by name where the file or its publisher gives it
            one, for formats that do not say it.
        vocabulary_path: the folder where the files of published vocabularies are looked for first.

    Raises:
        TokenizerFileError: the file cannot be read as its format, or is of none of them; or that
            of the published vocabulary is not here.
        OSError: the file cannot be opened.
    """
    if (known := of_name(str(path))) is not None:
        path = find(known, vocabulary_path)
    elif path.is_dir():
        path = _file_in(path)
    format_ = _format_of(path)
    if format_ is None:
        if not path.exists():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        raise TokenizerFileError(f"{path}: {_UNKNOWN}")
    if format_.self_contained and not (pretokenizer is None and special_tokens is None):
        raise TokenizerFileError(
            f"{path}: a {format_.files} defines its own pre-tokenizer and special tokens; give "
            "neither pre-tokenizer nor pattern nor special tokens"
        )
    return format_.read(path, pretokenizer, special_tokens)


def companions(path: Path) -> Mapping[Path, bool]:
    """Return the files read with a tokenizer file, and whether they have to be there.

    ``merges.txt`` has to with ``vocab.json``; files of roles do not.

    Raises:
        OSError: a ``.model`` file, whose contents decide, cannot be opened.
    """
    format_ = _format_of(path)
    return {} if format_ is None else format_.companions(path)


def write(
    parts: Parts,
    path: Path,
    *,
    leave_out: Collection[str] = (),
    dialect: str = "huggingface",
) -> TokenizerFiles:
    """Return a tokenizer as files of the format that a file name says, as for :func:`read`.

    Args:
        parts: what to write.
        path: ``*.tiktoken``; ``*vocab.json`` or ``*merges.txt`` for both of the pair; any other
            ``*.json``, or an existing directory, for tokenizer.json.
        leave_out: names of :data:`LEAVE_OUT` that the file may lose silently.
        dialect: of tokenizer.json: ``beam-bpe`` allows the one that only this library reads, for
            what Hugging Face's libraries cannot express.

    Returns:
        What to write, and what is lost; nothing is written yet.

    Raises:
        TokenizerError: the format cannot hold this tokenizer; the message names what it cannot.
    """
    check_leave_out(leave_out)
    if path.is_dir():
        path /= huggingface.NAME
    for format_ in FORMATS:
        if format_.is_named(path):
            return format_.write(parts, path, leave_out, dialect)
    raise TokenizerError(f"{path}: {_UNKNOWN}")


def _format_of(path: Path) -> Format | None:
    return next((one for one in FORMATS if one.is_named(path) or one.holds(path)), None)


def _file_in(directory: Path) -> Path:
    for name in USUAL_NAMES:
        if (directory / name).exists():
            return directory / name
    names = f"{', '.join(USUAL_NAMES[:-1])} nor {USUAL_NAMES[-1]}"
    raise TokenizerFileError(f"{directory}: the directory holds neither {names}")


_UNKNOWN = (
    "not known as a tokenizer file by its name: use "
    f"{', '.join(format_.files for format_ in reversed(FORMATS))}"
)
