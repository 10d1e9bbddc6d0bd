"""Read and write tokenizers on any filesystem, and send them to workers."""

from __future__ import annotations

import hashlib
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bpe import Tokenizer
from bpe.errors import BpeError
from bpe.formats import companions, tokenizer_config
from bpe.training_report import Training
from pipelines import storage
from pipelines.errors import InputError
from pipelines.output.names import TOKENIZER, TRAINING
from pipelines.output.state import complete
from pipelines.storage import join

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Read = Callable[[Path], Tokenizer]

# What helps where an encoded corpus has lost the tokenizer that lay in its directory.
PUT_BACK = (
    "put back the tokenizer.json that it was encoded with, or repeat its bpe encode (with "
    "`resume`, unless it was a watch), which writes it again and keeps the parts"
)


_LAST: dict[tuple[Any, ...], Tokenizer] = {}  # at most one, which is immutable


def load_tokenizer(path: str, read: Read = Tokenizer.load) -> Tokenizer:
    """Load a tokenizer from any filesystem.

    Args:
        path: the file, a directory with a tokenizer, or the name of a published vocabulary.
        read: `bpe.Tokenizer.load`, with its arguments for files that do not state how text is cut.

    Raises:
        ConfigError: the filesystem cannot be used here, or a pre-tokenizer is wrong.
        InputError: the file cannot be read or is no tokenizer, or the directory is incomplete.
    """
    try:
        if storage.is_local(path):
            if Path(path).is_dir():
                complete(path)
            return _loaded(Path(path), read)
        # The library reads local files.
        with tempfile.TemporaryDirectory(prefix="bpe-tokenizer-") as folder:
            head, name = path.rstrip("/").rsplit("/", 1)
            local = Path(folder, name)
            local.write_bytes(storage.read(path))
            for companion, is_required in companions(local).items():
                if is_required or storage.exists(join(head, companion.name)):
                    companion.write_bytes(storage.read(join(head, companion.name)))
            return _loaded(local, read)
    except OSError as error:
        where = error.filename or path  # one of several files
        raise InputError(f"{where}: cannot read the tokenizer: {storage.reason(error)}") from error
    except BpeError as error:
        from pipelines.failures import as_job_error  # noqa: PLC0415 - only then; it loads gRPC

        raise as_job_error(error) from error


def training_file(tokenizer: str) -> str:
    """Return the path of ``training.json`` next to a tokenizer, a file or its folder."""
    if not storage.is_local(tokenizer):
        return join(storage.located(tokenizer).rpartition("/")[0], TRAINING)
    path = Path(tokenizer)
    return str((path if path.is_dir() else path.parent) / TRAINING)


def read_training(tokenizer: str) -> Training | None:
    """Return the training of a tokenizer, from the file next to it; None without this file.

    Raises:
        TokenizerFileError: the file is damaged.
    """
    path = training_file(tokenizer)
    data = storage.read_if_there(path)
    return None if data is None else Training.read(data, where=path)


def stored_tokenizer(directory: str, sha256: str) -> Tokenizer:
    """Load the tokenizer in the directory of an encoded corpus.

    Args:
        directory: the directory of the corpus.
        sha256: the SHA-256 of ``tokenizer.json`` in the manifest (hex).

    Raises:
        InputError: ``tokenizer.json`` is missing, damaged, or has another SHA-256.
    """
    path = join(directory, TOKENIZER)
    if not storage.exists(path):
        raise InputError(f"{path} is missing: {PUT_BACK}")
    try:
        tokenizer = load_tokenizer(path)
    except InputError as error:
        raise InputError(f"{error}: {PUT_BACK}") from error
    if storage.digest(path).sha256 != sha256:
        raise InputError(f"{path} is not the tokenizer that the manifest names: {PUT_BACK}")
    return tokenizer


def write_tokenizer(path: str, tokenizer: Tokenizer) -> None:
    """Write the files of the roles of a tokenizer, then tokenizer.json.

    The file is in the dialect of beam-bpe if Hugging Face's cannot express the tokenizer. The next
    `load_tokenizer` of this process returns this tokenizer, without the record of its training.

    Raises:
        bpe.errors.TokenizerError: no tokenizer.json can express the tokenizer.
        OutputError: the file cannot be written.
    """
    tokenizer = tokenizer.with_training(None)
    text = _json(tokenizer)
    for name, data in tokenizer_config.files(tokenizer.roles).items():
        storage.write(join(path.rpartition("/")[0], name), data)
    storage.write(path, text.encode("utf-8"))
    if storage.is_local(path):
        _keep(_key(Path(path), Tokenizer.load), tokenizer)


def _loaded(path: Path, read: Read) -> Tokenizer:
    """Return the tokenizer of local files; the last one if the files have the same content.

    A local job loads it three times: to check the command, to plan, to encode.
    """
    if path.suffix != ".json" or not path.is_file():
        return read(path)
    key = _key(path, read)
    if (found := _LAST.get(key)) is None:
        found = read(path)
        _keep(key, found)
    return found


def _key(path: Path, read: Read) -> tuple[Any, ...]:
    """Return a key of the tokenizer in local files."""
    others = [one for one, is_required in companions(path).items() if is_required or one.exists()]
    digests = (hashlib.sha256(one.read_bytes()).digest() for one in (path, *others))
    return (repr(read), *(one.name for one in others), *digests)


def _keep(key: tuple[Any, ...], tokenizer: Tokenizer) -> None:
    _LAST.clear()
    _LAST[key] = tokenizer


def forget_tokenizer() -> None:
    """Free the memory of the last tokenizer, with its cache of words."""
    _LAST.clear()
    _json.cache_clear()


def tokenizer_json(tokenizer: Tokenizer, path: str) -> str:
    """Return a tokenizer as the text that is sent to workers.

    Raises:
        InputError: no tokenizer.json can express the tokenizer.
    """
    try:
        return _json(tokenizer)
    except BpeError as error:
        raise InputError(f"{path}: workers are sent a tokenizer.json, but {error}") from error


@lru_cache(maxsize=1)
def _json(tokenizer: Tokenizer) -> str:
    return tokenizer.to_json(dialect="beam-bpe")


def files_of(tokenizer: Tokenizer, path: str) -> dict[str, bytes]:
    """Return ``tokenizer.json`` and the files of the roles of a tokenizer, by name.

    Raises:
        InputError: no tokenizer.json can express the tokenizer.
    """
    text = tokenizer_json(tokenizer, path)
    return {**tokenizer_config.files(tokenizer.roles), TOKENIZER: text.encode("utf-8")}


def loads(files: Mapping[str, bytes]) -> Tokenizer:
    """Return the tokenizer that these files contain, by name.

    Raises:
        InputError: the files contain no tokenizer.
    """
    with tempfile.TemporaryDirectory(prefix="bpe-tokenizer-") as folder:
        for name, data in files.items():
            Path(folder, name).write_bytes(data)
        return load_tokenizer(str(Path(folder, TOKENIZER)))


def sent_tokenizer(path: str, *, sha256: str) -> Tokenizer:
    """Load, in a worker, the ``tokenizer.json`` that a job wrote for it.

    Raises:
        InputError: it cannot be read, or has another SHA-256.
    """
    data = storage.read(path)
    if hashlib.sha256(data).hexdigest() != sha256:
        raise InputError(f"{path} was changed while the job ran: start it again")
    return load_tokenizer(path)
