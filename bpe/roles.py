"""Roles of special tokens in a language model: what begins, ends and fills its texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bpe.errors import TokenizerError

ROLES = ("bos", "eos", "pad", "unk")


@dataclass(frozen=True, kw_only=True)
class Roles:
    """The tokens of each role, as Hugging Face's ``tokenizer_config.json`` records them.

    Encoding never adds one by itself: `bpe encode` takes a role where it takes a special token.

    Attributes:
        bos: begins a text.
        eos: ends a text.
        pad: fills the shorter texts of a batch.
        unk: in place of what has no token.
        add_bos: whether Hugging Face's libraries put ``bos`` before each text.
        add_eos: whether they put ``eos`` after it.
        chat_template: the Jinja template of a conversation.
        ignored: what else the file says and this library does not do, in words.

    Raises:
        TokenizerError: a token is to be added for a role that has none.
    """

    bos: str | None = None
    eos: str | None = None
    pad: str | None = None
    unk: str | None = None
    add_bos: bool = False
    add_eos: bool = False
    chat_template: str | None = None
    ignored: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for role, added in (("bos", self.add_bos), ("eos", self.add_eos)):
            if added and role not in self.tokens:
                raise TokenizerError(f"`add_{role}` needs `{role}` TOKEN: which token to add")

    @property
    def tokens(self) -> Mapping[str, str]:
        """Return the token of each role that has one."""
        return {role: vars(self)[role] for role in ROLES if vars(self)[role] is not None}

    def __bool__(self) -> bool:
        """Return whether there is anything to record."""
        return bool(self.tokens) or self.chat_template is not None

    def post_processor(self, ids: Mapping[str, int]) -> dict[str, Any] | None:
        """Return the post-processor of tokenizer.json that adds BOS and EOS; None if there is none.

        Args:
            ids: of the special tokens.

        Raises:
            TokenizerError: a token to be added is none of them.
        """
        bos = [self.bos] if self.add_bos and self.bos is not None else []
        eos = [self.eos] if self.add_eos and self.eos is not None else []
        for token in (*bos, *eos):
            if token not in ids:
                role = "bos" if token in bos else "eos"
                raise TokenizerError(f"`add_{role}`: {token!r} is not a special token")
        if not (bos or eos):
            return None

        def text(name: str, type_id: int) -> list[dict[str, Any]]:
            return [
                *({"SpecialToken": {"id": token, "type_id": type_id}} for token in bos),
                {"Sequence": {"id": name, "type_id": type_id}},
                *({"SpecialToken": {"id": token, "type_id": type_id}} for token in eos),
            ]

        return {
            "type": "TemplateProcessing",
            "single": text("A", 0),
            "pair": [*text("A", 0), *text("B", 1)],
            "special_tokens": {
                token: {"id": token, "ids": [ids[token]], "tokens": [token]}
                for token in (*bos, *eos)
            },
        }
