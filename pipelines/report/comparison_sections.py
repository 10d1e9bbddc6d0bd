"""Sections of the report about compared tokenizers, and a page of them alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jinja2

from pipelines.errors import InputError
from pipelines.report.page import MOST_SHOWN, Facts, Section, section

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_GROUPS = 200
_MOST_TOKENS = 30  # of a piece


def comparison(result: Mapping[str, Any], number: int) -> Facts:
    """Comparison of several tokenizers on one corpus.

    Args:
        result: of `pipelines.compare.job.compare`, or of its file.
        number: of the comparison, where the page has several.
    """
    measures = result["total"]["tokenizers"]
    groups = result["groups"][:_GROUPS]
    return {
        **result,
        "key": "comparison" if number == 1 else f"comparison-{number}",
        "groups": groups,
        "names": [one["name"] for one in result["tokenizers"]],
        "measures": measures,
        "first": measures[0]["tokens"],
        "most": _best(measures),
        "most_by_group": _best(one for group in groups for one in group["tokenizers"]),
        "hidden": len(result["groups"]) - len(groups),
        "most_shown": MOST_SHOWN,
        "most_tokens": _MOST_TOKENS,
    }


def _best(measures: Iterable[Mapping[str, Any]]) -> float:
    return max((one["bytes_per_token"] or 0 for one in measures), default=0)


def comparison_section(result: Mapping[str, Any], *, number: int = 1, path: str = "") -> Section:
    """Return a comparison as a section.

    Raises:
        InputError: the file ``path`` of the comparison is damaged.
    """
    try:
        made = section(comparison, result=result, number=number)
    except (LookupError, TypeError, ValueError, AttributeError, jinja2.UndefinedError) as error:
        raise InputError(
            f"{path}: damaged: {type(error).__name__}: {error}: make it again with bpe compare"
        ) from error
    if made is None:
        raise TypeError("a comparison always has facts")
    return made
