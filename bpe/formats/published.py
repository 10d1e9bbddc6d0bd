"""Published vocabularies: by the SHA-256 of their files, which are found, never downloaded."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bpe.errors import TokenizerFileError

_END = "<|endoftext|>"
_OPENAI = "https://openaipublic.blob.core.windows.net/encodings/"


class Published(NamedTuple):
    """A vocabulary that somebody publishes as a file of ranks.

    Attributes:
        names: the names that users give.
        file: the name of the published file.
        sha256: the SHA-256 of the file (hex).
        pretokenizer: the pre-tokenizer of the vocabulary.
        special_tokens: the special tokens of the vocabulary, with their ids.
        url: the URL from which tiktoken loads the file; empty if tiktoken does not.
    """

    names: tuple[str, ...]
    file: str
    sha256: str
    pretokenizer: str
    special_tokens: dict[str, int]
    url: str = ""


# OpenAI's are those of tiktoken 0.14. Llama 3's special tokens are those that all its releases name
# alike; the others are reserved.
PUBLISHED = (
    Published(
        ("gpt2", "r50k", "r50k_base"),
        "r50k_base.tiktoken",
        "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930",
        "gpt2",
        {_END: 50256},
        f"{_OPENAI}r50k_base.tiktoken",
    ),
    Published(
        ("cl100k", "cl100k_base", "gpt4"),
        "cl100k_base.tiktoken",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        "cl100k",
        {
            _END: 100257,
            "<|fim_prefix|>": 100258,
            "<|fim_middle|>": 100259,
            "<|fim_suffix|>": 100260,
            "<|endofprompt|>": 100276,
        },
        f"{_OPENAI}cl100k_base.tiktoken",
    ),
    Published(
        ("o200k", "o200k_base", "gpt4o"),
        "o200k_base.tiktoken",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        "o200k",
        {_END: 199999, "<|endofprompt|>": 200018},
        f"{_OPENAI}o200k_base.tiktoken",
    ),
    Published(
        ("llama3",),
        "tokenizer.model",
        "82e9d31979e92ab929cd544440f129d9ecd797b69e327f80f17e1c50d5551b55",
        "llama3",
        {
            "<|begin_of_text|>": 128000,
            "<|end_of_text|>": 128001,
            "<|start_header_id|>": 128006,
            "<|end_header_id|>": 128007,
            "<|eot_id|>": 128009,
        },
    ),
)


def of_contents(data: bytes) -> Published | None:
    """Return the published vocabulary whose file has these contents, or None."""
    sha256 = hashlib.sha256(data).hexdigest()
    return next((one for one in PUBLISHED if one.sha256 == sha256), None)


def of_name(name: str) -> Published | None:
    """Return the published vocabulary of this name; None if unknown or the name of a path."""
    if Path(name).exists():
        return None
    return next((one for one in PUBLISHED if name in one.names), None)


def find(published: Published, folder: str | os.PathLike[str] | None = None) -> Path:
    """Return the file of a published vocabulary on this machine.

    Args:
        published: the vocabulary.
        folder: looked in first, for a file of the published name; then the caches of tiktoken and
            of Hugging Face's hub.

    Raises:
        TokenizerFileError: no file with the right contents is there.
    """
    looked: list[str] = []
    for place, path in _places(published, folder):
        is_there = path.is_file()
        if is_there and hashlib.sha256(path.read_bytes()).hexdigest() == published.sha256:
            return path
        looked.append(f"{place} ({path.name} there is another file)" if is_there else place)
    raise TokenizerFileError(
        f"{published.names[0]}: {published.file}, whose SHA-256 begins with "
        f"{published.sha256[:12]}, is not on this machine; bpe downloads nothing: put the file "
        "into a folder and name the folder with `vocabulary_path`, or name the file itself. "
        f"Looked in {', '.join(looked)}"
    )


def _places(
    published: Published, folder: str | os.PathLike[str] | None
) -> Iterator[tuple[str, Path]]:
    """Yield the possible places of the file: in words, and its path."""
    if folder is not None:
        yield str(folder), Path(folder, published.file)
    if published.url:
        cache = _tiktoken_cache()
        name = hashlib.sha1(published.url.encode(), usedforsecurity=False).hexdigest()
        yield f"tiktoken's cache {cache}", cache / name
    hub = _hub_cache()
    yield f"the hub's cache {hub}", hub
    for blob in sorted(hub.glob(f"models--*/blobs/{published.sha256}")):
        yield str(blob.parent), blob


def _tiktoken_cache() -> Path:
    named = os.environ.get("TIKTOKEN_CACHE_DIR") or os.environ.get("DATA_GYM_CACHE_DIR")
    return Path(named) if named else Path(tempfile.gettempdir(), "data-gym-cache")


def _hub_cache() -> Path:
    if named := os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE"):
        return Path(named)
    home = os.environ.get("HF_HOME")
    if home is None:
        home = str(Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "huggingface"))
    return Path(home, "hub")
