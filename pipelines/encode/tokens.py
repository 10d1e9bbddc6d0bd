"""Resolve settings of rows with a tokenizer: special tokens, roles, and the type of ids."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from bpe.errors import EncodingError
from bpe.roles import ROLES
from pipelines.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    import pyarrow as pa

    from bpe import Tokenizer
    from bpe.roles import Roles
    from pipelines.settings import EncodeSettings, RowSettings

_Rows = TypeVar("_Rows", bound="RowSettings")


def in_tokens(rows: _Rows, special_tokens: Collection[str], roles: Roles) -> _Rows:
    """Return the settings with special tokens in place of roles such as ``eos``.

    Args:
        rows: the settings.
        special_tokens: the special tokens of the tokenizer; a token named like a role takes
            precedence over the role.
        roles: the roles of the tokenizer.

    Raises:
        ConfigError: the tokenizer has no token for a role.
    """
    prepend, append = (
        token_of_role(getattr(rows, name), special_tokens, roles, option=f"`{name}`")
        for name in ("prepend_token", "append_token")
    )
    return replace(rows, prepend_token=prepend, append_token=append)


def token_of_role(
    token: str | None, special_tokens: Collection[str], roles: Roles, *, option: str
) -> str | None:
    """Return the token that an option names, directly or by a role; None if ``token`` is None.

    Raises:
        ConfigError: the tokenizer has no token for the role.
    """
    if token is None or token not in ROLES or token in special_tokens:
        return token
    if (found := roles.tokens.get(token)) is None:
        raise ConfigError(
            f"{option} {token}: the tokenizer has no token for this role: name a special token, or "
            f"train it with `{token}` TOKEN"
        )
    return found


def check_tokens(tokenizer: Tokenizer, encoding: EncodeSettings) -> None:
    """Check that a tokenizer supports the special tokens, type of ids and dropout of the settings.

    Raises:
        ConfigError: a special token is missing, an id is too great, or there are no merges to drop.
    """
    check_special_tokens(tuple(tokenizer.special_tokens), encoding)
    id_type(tokenizer, encoding)
    try:
        tokenizer.encode("", dropout=encoding.dropout)
    except EncodingError as error:
        raise ConfigError(f"`dropout` {encoding.dropout}: {error}") from error


def check_special_tokens(
    there: Sequence[str], rows: RowSettings, *, allow: str = "allow_special"
) -> None:
    """Check that the tokens of the settings are among the special tokens ``there``.

    ``allow`` is the name of the option of tokens that are recognized, for the message.

    Raises:
        ConfigError: a token is not.
    """
    asked = [
        ("`prepend_token`", rows.prepend_token),
        ("`append_token`", rows.append_token),
        *((f"`{allow}`", name) for name in rows.allow_special if name != "all"),
    ]
    check_named_tokens([(option, token) for option, token in asked if token is not None], there)


def end_ids(
    tokenizer: Tokenizer, rows: RowSettings, *, allow: str = "allow_special"
) -> dict[str, Any]:
    """Return the ids that settings with special tokens put at the ends of documents, or None.

    The names are those of `pipelines.encode.rows.with_ends`; ``allow`` is as for
    `check_special_tokens`.

    Raises:
        ConfigError: a token of the settings is not a special token of the tokenizer.
    """
    check_special_tokens(tuple(tokenizer.special_tokens), rows, allow=allow)
    tokens = {"prepend": rows.prepend_token, "append": rows.append_token}
    return {
        end: None if token is None else tokenizer.special_tokens[token]
        for end, token in tokens.items()
    }


def arrow_encoder(
    tokenizer: Tokenizer, rows: RowSettings, id_type: Literal["uint16", "uint32"]
) -> Callable[..., pa.ListArray]:
    """Return `bpe.Tokenizer.encode_arrow` with the arguments that the settings give."""
    allowed = "all" if "all" in rows.allow_special else rows.allow_special
    return partial(
        tokenizer.encode_arrow, allowed_special=allowed, dropout=rows.dropout, id_type=id_type
    )


def check_named_tokens(asked: Iterable[tuple[str, str]], there: Sequence[str]) -> None:
    """Check that tokens, each paired with its option, are among the special tokens ``there``.

    Raises:
        ConfigError: a token is not.
    """
    for option, token in asked:
        if token not in there:
            has = f"has {', '.join(map(repr, there))}" if there else "has none (see bpe train)"
            raise ConfigError(
                f"{option}: {token!r} is not a special token of the tokenizer, which {has}"
            )


def id_type(tokenizer: Tokenizer, encoding: EncodeSettings) -> Literal["uint16", "uint32"]:
    """Return the type of the ids: the requested type, or for ``auto`` the smallest possible.

    Raises:
        ConfigError: the requested type does not hold the greatest id.
    """
    fits = tokenizer.max_id < 1 << 16
    if encoding.id_type == "uint16" and not fits:
        raise ConfigError(
            f"`id_type` uint16: the greatest id is {tokenizer.max_id}, and uint16 ends at 65535: "
            "use uint32 or auto"
        )
    if encoding.id_type == "auto":
        return "uint16" if fits else "uint32"
    return encoding.id_type


def unknown_id(tokenizer: Tokenizer) -> int | None:
    """Return the id of the unknown token; None if the tokenizer has no such token."""
    token = getattr(tokenizer.model, "unknown", None)  # bytes have none
    return None if token is None else tokenizer.token_id(token.encode())
