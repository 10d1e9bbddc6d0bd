"""Charts as SVG that takes its colours from the page, drawn by matplotlib; and their figures.

matplotlib comes with the extra ``pictures``; without it, a chart is its figures alone.
"""

from __future__ import annotations

import importlib.util
import io
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup, escape

from pipelines.report.page import number

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pipelines.report.counted_facts import Sums

# Colours that are replaced by those of the page, light or dark.
_INK, _GRID, _SERIES, _SECOND = "#010203", "#040506", "#070809", "#0a0b0c"
_OF_PAGE = {
    _INK: "currentColor",
    _GRID: "var(--grid)",
    _SERIES: "var(--series)",
    _SECOND: "var(--second)",
}
_STYLE = {
    "svg.fonttype": "none",  # text stays text, in the font of the page
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "grid.color": _GRID,
    "font.size": 9.5,
    "text.parse_math": False,  # a $ is a $
    "axes.formatter.use_mathtext": False,
}
_MOST_POINTS = 800  # of a line
_TABLE_ROWS = 40
_MOST_LABELS = 16  # below bars
_LABEL_CHARACTERS = 76  # of all labels together, with two between neighbours
_FEW_DECADES = 1000  # between the ends of an axis: 1, 2, 5, 10 and so on have labels
_INCHES = (7.2, 2.9)
_WIDEST = 24  # bytes or tokens: longer things share a bar


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A chart, ready for a page.

    Attributes:
        name: what it shows, for those who cannot see it; no other chart has it.
        svg: the picture; empty without matplotlib.
        heads: of the table of its figures.
        rows: of this table; empty where there is nothing to show.
    """

    name: str
    svg: Markup
    heads: Sequence[str]
    rows: Sequence[Sequence[object]]


def has_matplotlib() -> bool:
    """Return whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def line(
    name: str,
    *,
    points: Sequence[tuple[float, float]],
    axes: tuple[str, str],
    logarithmic: tuple[bool, bool] = (False, False),
    spell_y: Callable[[float], str] = number,
) -> Chart:
    """Return a curve.

    Args:
        name: as of `Chart`.
        points: (x, y), ascending in x.
        axes: what x and y are.
        logarithmic: whether each axis is.
        spell_y: how y is written in the table.
    """
    scales = [" (log scale)" if one else "" for one in logarithmic]

    def draw(ax: Any) -> None:
        xs, ys = zip(*thinned(points, _MOST_POINTS, logarithmic=logarithmic[0]), strict=True)
        ax.plot(xs, ys, color=_SERIES, linewidth=2)
        if logarithmic[0]:
            ax.set_xscale("log")
        if logarithmic[1]:
            ax.set_yscale("log")
        else:
            ax.set_ylim(bottom=0)

    rows = thinned(points, _TABLE_ROWS, logarithmic=logarithmic[0])
    return _chart(
        name,
        draw,
        axes=(axes[0] + scales[0], axes[1] + scales[1]),
        heads=axes,
        rows=[(number(x), spell_y(y)) for x, y in rows],
    )


def bars(
    name: str,
    *,
    labels: Sequence[str],
    counts: Sequence[Sequence[int]],
    axis: str,
    legend: Sequence[str],
) -> Chart:
    """Bars next to each other, in the order given.

    Args:
        name: as of `Chart`.
        labels: what the bars are.
        counts: of one or two kinds of things, how many each label has; a bar is as high as these
            are in percent of all of the kind.
        axis: what the labels are.
        legend: what the percents of each kind are.
    """
    heights = [[100 * one / max(sum(kind), 1) for one in kind] for kind in counts]

    def draw(ax: Any) -> None:
        positions, step = range(len(labels)), 0.8 / len(heights)
        colours = (_SERIES, _SECOND)
        for place, (kind, of) in enumerate(zip(heights, legend, strict=True)):
            at = np.array(positions) + (place - (len(heights) - 1) / 2) * step
            ax.bar(at, kind, color=colours[place], width=0.95 * step, label=of)
        if len(heights) > 1:
            ax.legend(frameon=False, labelcolor=_INK)
        widest = max(map(len, labels)) + 2
        most = min(_MOST_LABELS, _LABEL_CHARACTERS // widest)
        some = list(positions)[:: -max(1, math.ceil(len(labels) / max(most, 1)))]  # the last is one
        ax.set_xticks(some, [labels[position] for position in some])
        ax.set_ylim(bottom=0)

    return _chart(
        name,
        draw,
        axes=(axis, legend[0] if len(legend) == 1 else "percent"),
        heads=(axis, *legend),
        rows=[(label, *map(number, row)) for label, *row in zip(labels, *heights, strict=True)],
    )


def lengths(name: str, *, sums: Mapping[int, Sums], axis: str, legend: Sequence[str]) -> Chart:
    """Return bars of the lengths from 1 on; those of 24 and more share the last one.

    Args:
        name: as of `Chart`.
        sums: by length.
        axis: what the lengths are.
        legend: as of `bars`; of distinct ones, and of their occurrences where there are two.
    """
    sizes = range(1, min(max(sums, default=0), _WIDEST) + 1)
    counts = [[0] * len(sizes) for _ in legend]
    for size, one in sums.items():
        for column, amount in zip(counts, one, strict=False):
            column[min(size, _WIDEST) - 1] += amount
    labels = [f"{size}+" if size == _WIDEST else str(size) for size in sizes]
    return bars(name, labels=labels, counts=counts, axis=axis, legend=legend)


def thinned(
    points: Sequence[tuple[float, float]], most: int, *, logarithmic: bool
) -> list[tuple[float, float]]:
    """At most about so many of the points, first and last among them, evenly spread over x."""
    count = len(points)
    if count <= most:
        return list(points)
    spread = np.geomspace if logarithmic else np.linspace
    numbers = np.unique(spread(1, count, most).round().astype(int))
    return [points[number - 1] for number in numbers]


def _chart(
    name: str,
    draw: Callable[[Any], None],
    *,
    axes: tuple[str, str],
    heads: Sequence[str],
    rows: Sequence[Sequence[object]],
) -> Chart:
    """Return a chart, whose picture ``draw`` draws on the axes that it is called with."""
    if not (rows and has_matplotlib()):
        return Chart(name=name, svg=Markup(""), heads=heads, rows=rows)
    import matplotlib as mpl  # noqa: PLC0415  # an extra, and slow to import
    from matplotlib.figure import Figure  # noqa: PLC0415

    # The salt: the same bytes each time, and names unlike those of other charts.
    with mpl.rc_context({**_STYLE, "svg.hashsalt": name}):
        figure = Figure(figsize=_INCHES)
        ax = figure.add_subplot()
        draw(ax)
        ax.set_xlabel(axes[0])
        ax.set_ylabel(axes[1])
        ax.grid(visible=True, axis="y")
        ax.set_axisbelow(True)
        for along in (ax.xaxis, ax.yaxis):
            _plain_numbers(along)
        file = io.StringIO()
        none = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(file, format="svg", transparent=True, bbox_inches="tight", metadata=none)
    return Chart(name=name, svg=_in_page(file.getvalue(), name), heads=heads, rows=rows)


def _plain_numbers(axis: Any) -> None:
    """10,000 and not 10^4; what has labels of its own keeps them."""
    from matplotlib import ticker  # noqa: PLC0415

    if isinstance(axis.get_major_locator(), ticker.FixedLocator):
        return
    first, last = axis.get_view_interval()
    if axis.get_scale() == "log" and last < _FEW_DECADES * first:
        axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: number(value)))
    axis.set_minor_formatter(ticker.NullFormatter())


def _in_page(svg: str, name: str) -> Markup:
    """Return an SVG file for a page: no head, no names of groups, the page's colours."""
    svg = re.sub(r'<g id="[^"]*"', "<g", svg[svg.index("<svg") :])
    for colour, of_page in _OF_PAGE.items():
        svg = svg.replace(colour, of_page)
    named = svg.replace("<svg ", f'<svg role="img" aria-label="{escape(name)}" ', 1)
    return Markup(named)  # noqa: S704 - matplotlib escapes labels
