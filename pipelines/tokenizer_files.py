"""Tokenizers from files of any filesystem, and on their way to workers."""

from __future__ import annotations

import hashlib
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bpe import Tokenizer
from bpe.errors import BpeError
from bpe.formats import companions, may_have, tokenizer_config
from pipelines import storage
from pipelines.errors import InputError
from pipelines.output.names import TOKENIZER
from pipelines.output.state import complete
from pipelines.storage import join

if TYPE_CHECKING:
    from collections.abc import Mapping

# What helps where an encoded corpus has lost the tokenizer that lay in its directory.
PUT_BACK = (
    "put back the tokenizer.json that it was encoded with, or repeat its bpe encode (with "
    "`resume`, unless it was a watch), which writes it again and keeps the parts"
)


_LAST: dict[tuple[Any, ...], Tokenizer] = {}  # at most one, which is immutable


def load_tokenizer(path: str, *, pretokenizer: str | None = None) -> Tokenizer:
    """Load a tokenizer from any filesystem.

    Args:
        path: of its file.
        pretokenizer: how it cuts text, where the file does not say it.

    Raises:
        ConfigError: its filesystem cannot be used here.
        InputError: it cannot be read, is not a tokenizer, or a directory that is not complete.
    """
    try:
        if storage.is_local(path):
            if Path(path).is_dir():
                complete(path)
            return _loaded(Path(path), pretokenizer)
        storage.check_filesystem(path)
        # The library reads local files.
        with tempfile.TemporaryDirectory(prefix="bpe-tokenizer-") as folder:
            head, name = path.rstrip("/").rsplit("/", 1)
            local = Path(folder, name)
            local.write_bytes(storage.read(path))
            for companion in companions(local):
                companion.write_bytes(storage.read(join(head, companion.name)))
            for companion in may_have(local):
                if storage.exists(join(head, companion.name)):
                    companion.write_bytes(storage.read(join(head, companion.name)))
            return _loaded(local, pretokenizer)
    except OSError as error:
        raise InputError(f"{path}: cannot read the tokenizer: {storage.reason(error)}") from error
    except BpeError as error:
        raise InputError(str(error)) from error


def stored_tokenizer(directory: str, sha256: str) -> Tokenizer:
    """The tokenizer in the directory of an encoded corpus.

    Args:
        directory: of the corpus.
        sha256: of its ``tokenizer.json``, as the manifest states it (hex).

    Raises:
        InputError: it is missing, damaged or another.
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
    """Write a tokenizer.json, in the dialect where it needs that, first the file of its roles.

    Those who load it in this process next are given this tokenizer, without its training.

    Raises:
        bpe.errors.TokenizerError: no tokenizer.json holds it.
        OutputError: the file cannot be written.
    """
    tokenizer = tokenizer.with_training(None)
    text = _json(tokenizer)
    for name, data in tokenizer_config.files(tokenizer.roles).items():
        storage.write(join(path.rpartition("/")[0], name), data)
    storage.write(path, text.encode("utf-8"))
    if storage.is_local(path):
        _keep(_key(Path(path), None), tokenizer)


def _loaded(path: Path, pretokenizer: str | None) -> Tokenizer:
    """A tokenizer of local files, again the last one where they hold the same.

    A job that runs in this process reads it three times: to check the command, to plan, to encode.
    """
    if path.suffix != ".json" or not path.is_file():
        return Tokenizer.load(path, pretokenizer=pretokenizer)
    key = _key(path, pretokenizer)
    if (found := _LAST.get(key)) is None:
        found = Tokenizer.load(path, pretokenizer=pretokenizer)
        _keep(key, found)
    return found


def _key(path: Path, pretokenizer: str | None) -> tuple[Any, ...]:
    """Return a key of the tokenizer in local files."""
    others = [*companions(path), *(one for one in may_have(path) if one.exists())]
    digests = (hashlib.sha256(one.read_bytes()).digest() for one in (path, *others))
    return (pretokenizer, *(one.name for one in others), *digests)


def _keep(key: tuple[Any, ...], tokenizer: Tokenizer) -> None:
    _LAST.clear()
    _LAST[key] = tokenizer


def forget_tokenizer() -> None:
    """Let go of the last tokenizer that was loaded, with the words that it has met."""
    _LAST.clear()
    _json.cache_clear()


def tokenizer_json(tokenizer: Tokenizer, path: str) -> str:
    """A tokenizer as it goes to workers.

    Raises:
        InputError: no tokenizer.json holds it.
    """
    try:
        return _json(tokenizer)
    except BpeError as error:
        raise InputError(f"{path}: workers are sent a tokenizer.json, but {error}") from error


@lru_cache(maxsize=1)
def _json(tokenizer: Tokenizer) -> str:
    return tokenizer.to_json(dialect="beam-bpe")


def files_of(tokenizer: Tokenizer, path: str) -> dict[str, bytes]:
    """The files of a tokenizer in a directory: ``tokenizer.json``, and those of its roles.

    Raises:
        InputError: no tokenizer.json holds it.
    """
    text = tokenizer_json(tokenizer, path)
    return {**tokenizer_config.files(tokenizer.roles), TOKENIZER: text.encode("utf-8")}


def loads(files: Mapping[str, bytes]) -> Tokenizer:
    """The tokenizer in the contents of its files.

    Raises:
        InputError: there is none in it.
    """
    with tempfile.TemporaryDirectory(prefix="bpe-tokenizer-") as folder:
        for name, data in files.items():
            Path(folder, name).write_bytes(data)
        return load_tokenizer(str(Path(folder, TOKENIZER)))


def sent_tokenizer(path: str, *, sha256: str) -> Tokenizer:
    """Load, in a worker, the ``tokenizer.json`` that a job wrote for it.

    Raises:
        InputError: it cannot be read, or is another one by now.
    """
    data = storage.read(path)
    if hashlib.sha256(data).hexdigest() != sha256:
        raise InputError(f"{path} was changed while the job ran: start it again")
    return load_tokenizer(path)
