"""``tokenizer_config.json`` and ``special_tokens_map.json``: the roles of special tokens.

``transformers.AutoTokenizer`` reads them next to ``tokenizer.json``, and so does this library. They
change no id of ours: what they ask to add is named in `bpe.Tokenizer.not_applied`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bpe.formats.strict_json import Entry, read_bytes, read_json, read_text
from bpe.roles import ROLES, Roles

CONFIG = "tokenizer_config.json"
TOKENS_MAP = "special_tokens_map.json"
CHAT_TEMPLATE = "chat_template.jinja"
NAMES = (CONFIG, TOKENS_MAP, CHAT_TEMPLATE)
"""Files that may be next to a tokenizer.json."""


def read_roles(
    folder: Path, *, is_token: Callable[[str], bool], post_processor: Mapping[str, Any] | None
) -> Roles:
    """Return the roles that the files in a folder give; no roles if there are no files.

    Args:
        folder: that of the tokenizer.json.
        is_token: whether the tokenizer has a token.
        post_processor: of the tokenizer.json; it already says which tokens are added.

    Raises:
        TokenizerFileError: a file is broken.
        OSError: a file cannot be opened.
    """
    ignored: list[str] = []
    named: dict[str, str] = {}
    config, tokens_map = _read(folder / CONFIG), _read(folder / TOKENS_MAP)
    for role in ROLES:
        entries = (file.get(f"{role}_token") for file in (config, tokens_map))
        token = next((_token(entry) for entry in entries if entry.value is not None), None)
        if token is not None and is_token(token):
            named[role] = token
        elif token is not None:
            ignored.append(
                f"the role {role} of {CONFIG}: its token {token!r} is not in the vocabulary"
            )
    added: dict[str, bool] = {}
    for role in ("bos", "eos"):
        added[role] = role in named and config.get(f"add_{role}_token").boolean(default=False)
        if added[role] and post_processor is None:
            ignored.append(
                f"add_{role}_token of {CONFIG}, by which transformers adds {named[role]!r} to each "
                "text"
            )
    if config.get("add_prefix_space").value is True:
        ignored.append(f"add_prefix_space of {CONFIG}, by which transformers changes texts")
    return Roles(
        **named,
        add_bos=added["bos"],
        add_eos=added["eos"],
        chat_template=_chat_template(folder, config),
        ignored=tuple(ignored),
    )


def files(roles: Roles) -> dict[str, bytes]:
    """Return the files that record roles, by name; empty if there is nothing to record."""
    if not roles:
        return {}
    tokens = {f"{role}_token": token for role, token in roles.tokens.items()}
    config: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        **tokens,
        **({"add_bos_token": True} if roles.add_bos else {}),
        **({"add_eos_token": True} if roles.add_eos else {}),
    }
    if roles.chat_template is not None:
        config["chat_template"] = roles.chat_template
    return {CONFIG: _json(config), TOKENS_MAP: _json(tokens)}


def _read(path: Path) -> Entry:
    """Return the object in a file; an empty one if there is no file."""
    return read_json(str(path), read_bytes(path) if path.is_file() else b"{}").object()


def _token(entry: Entry) -> str:
    """Return a token: a string, or an object with its ``content``, as older releases write it."""
    return (entry.get("content") if isinstance(entry.value, dict) else entry).string()


def _chat_template(folder: Path, config: Entry) -> str | None:
    """Return the template in its own file, else in the configuration: of several, ``default``."""
    path = folder / CHAT_TEMPLATE
    if path.is_file():
        return read_text(path)
    entry = config.get("chat_template")
    if entry.value is None:
        return None
    if not isinstance(entry.value, list):
        return entry.string()
    named = {one.object().get("name").string(): one.get("template") for one in entry.items()}
    return named["default"].string() if "default" in named else None


def _json(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode()
