"""Pictures of how words merge, step by step."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bpe.errors import PictureError
from bpe.files import write_atomically
from bpe.pictures import svg
from bpe.pictures.layout import MARK, Picture, lay_out
from bpe.visible import visible

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from bpe.tokenizer import Tokenizer

__all__ = ["Picture", "draw", "is_picture", "lay_out"]

_HEAD = 512  # bytes: the mark stands before anything that is drawn


def draw(tokenizer: Tokenizer, texts: Sequence[str | bytes], path: str | os.PathLike[str]) -> None:
    """Draw how texts merge: a tree for each pre-token, a row for each merge, ids at the bottom.

    Args:
        tokenizer: whose merges are drawn, with their counts where its training is known.
        texts: one below the other.
        path: a file that ends in ``.svg`` (the same bytes every time) or ``.png`` (needs the
            package matplotlib: the extra ``pictures``).

    Raises:
        PictureError: the name ends otherwise, matplotlib is missing, or the picture is too large.
        EncodingError: a text cannot be encoded.
    """
    file = Path(path)
    kind = file.suffix.lower()
    if kind == ".svg":
        write_atomically(file, svg.render(lay_out(tokenizer, texts, spell=visible)).encode())
    elif kind == ".png":
        from bpe.pictures import png  # noqa: PLC0415 - matplotlib is large, and an extra

        write_atomically(file, png.render(lay_out(tokenizer, texts, spell=png.spell)))
    else:
        raise PictureError(f"{path}: a picture is a file whose name ends in .svg or .png")


def is_picture(path: str | os.PathLike[str]) -> bool:
    """Whether `draw` made the file at ``path``; False where there is none that can be read."""
    try:
        with Path(path).open("rb") as file:
            return MARK.encode() in file.read(_HEAD)
    except OSError:
        return False
