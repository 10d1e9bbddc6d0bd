"""What the report says of tokenizers that were compared; and a page of that alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipelines.report.page import MOST_SHOWN, Section, page, section

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_GROUPS = 200
_MOST_TOKENS = 30  # of a piece


def comparison(result: Mapping[str, Any], *, number: int = 1) -> Section:
    """A comparison as a section.

    Args:
        result: of `pipelines.compare.job.compare`, or of its file.
        number: of the comparison, where the page has several.
    """
    names = [one["name"] for one in result["tokenizers"]]
    measures = result["total"]["tokenizers"]
    groups = result["groups"][:_GROUPS]
    return section(
        "comparison",
        f"Comparison of {', '.join(names[:-1])} and {names[-1]}",
        key="comparison" if number == 1 else f"comparison-{number}",
        **{**result, "groups": groups},
        names=names,
        measures=measures,
        first=measures[0]["tokens"],
        most=_best(measures),
        most_by_group=_best(one for group in groups for one in group["tokenizers"]),
        hidden=len(result["groups"]) - len(groups),
        most_shown=MOST_SHOWN,
        most_tokens=_MOST_TOKENS,
    )


def _best(measures: Iterable[Mapping[str, Any]]) -> float:
    return max((one["bytes_per_token"] or 0 for one in measures), default=0)


def comparison_page(result: Mapping[str, Any]) -> str:
    """A comparison as a page by itself."""
    return page("Tokenizers compared", [comparison(result)])
