"""Pictures of numbers as SVG that takes its colours from the page, drawn by matplotlib.

matplotlib comes with the extra ``pictures``; without it, a chart is its table alone.
"""

from __future__ import annotations

import importlib.util
import io
import math
import re
from typing import TYPE_CHECKING, Any

from pipelines.report.html import Html, escaped, folded, joined, table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# Colours that stand for those of the page, light or dark.
_INK, _GRID, _SERIES, _SECOND = "#010203", "#040506", "#070809", "#0a0b0c"
_OF_PAGE = {
    _INK: "currentColor",
    _GRID: "var(--grid)",
    _SERIES: "var(--series)",
    _SECOND: "var(--second)",
}
_MOST_POINTS = 800  # of a line
_TABLE_ROWS = 40
_MOST_LABELS = 16  # below bars
_LABEL_CHARACTERS = 76  # of all labels together, with two between neighbours
_MOST_ACROSS = 14  # bars below each other
_LEAST_SEEN = 0.005  # of the longest bar: shorter ones cannot be seen
_FEW_DECADES = 1000  # between the ends of an axis: 1, 2, 5, 10 and so on have labels
INCHES = (7.2, 2.9)


def has_matplotlib() -> bool:
    """Whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def line(
    name: str,
    *,
    points: Sequence[tuple[float, float]],
    axes: tuple[str, str],
    logarithmic: tuple[bool, bool] = (False, False),
    spell: tuple[Callable[[float], str], Callable[[float], str]] | None = None,
) -> Html:
    """A curve, and its table.

    Args:
        name: what it shows, for those who cannot see it; also what tells it from other charts.
        points: (x, y), ascending in x.
        axes: what x and y are.
        logarithmic: whether each axis is.
        spell: how x and y are written in the table.
    """
    some = thinned(points, _MOST_POINTS, logarithmic=logarithmic[0])
    scales = [" (log scale)" if one else "" for one in logarithmic]

    def draw(ax: Any) -> None:
        xs, ys = zip(*some, strict=True)
        ax.plot(xs, ys, color=_SERIES, linewidth=2)
        if logarithmic[0]:
            ax.set_xscale("log")
        if logarithmic[1]:
            ax.set_yscale("log")
        else:
            ax.set_ylim(bottom=0)

    write_x, write_y = spell or (number, number)
    rows = thinned(points, _TABLE_ROWS, logarithmic=logarithmic[0])
    return _chart(
        name,
        draw,
        axes=(axes[0] + scales[0], axes[1] + scales[1]),
        rows=[(write_x(x), write_y(y)) for x, y in rows],
        points=len(some),
        heads=axes,
    )


def bars(
    name: str,
    *,
    values: Sequence[tuple[str, float]],
    axes: tuple[str, str],
    second: Sequence[float] | None = None,
    legend: tuple[str, str] = ("", ""),
) -> Html:
    """Bars that stand beside each other, in the order given, and their table.

    Args:
        name: as for :func:`line`.
        values: what each bar is, and its height.
        axes: what the bars are, and what their height is.
        second: the heights of a second bar beside each.
        legend: what the two kinds of bars are.
    """

    def draw(ax: Any) -> None:
        places = range(len(values))
        heights = [value for _, value in values]
        if second is None:
            ax.bar(places, heights, color=_SERIES, width=0.8)
        else:
            ax.bar([p - 0.2 for p in places], heights, color=_SERIES, width=0.38, label=legend[0])
            ax.bar([p + 0.2 for p in places], second, color=_SECOND, width=0.38, label=legend[1])
            ax.legend(frameon=False, labelcolor=_INK)
        widest = max((len(label) for label, _ in values), default=0) + 2
        most = min(_MOST_LABELS, _LABEL_CHARACTERS // widest)
        some = list(places)[:: -max(1, math.ceil(len(values) / max(most, 1)))]  # the last is one
        ax.set_xticks(some, [values[place][0] for place in some])
        ax.set_ylim(bottom=0)

    rows: list[tuple[object, ...]] = [(label, number(value)) for label, value in values]
    heads = axes
    if second is not None:
        rows = [(*row, number(value)) for row, value in zip(rows, second, strict=True)]
        heads = (axes[0], *legend)  # type: ignore[assignment]  # one column more
    return _chart(name, draw, axes=axes, rows=rows, points=len(values), heads=heads)


def horizontal_bars(name: str, *, values: Sequence[tuple[str, float]], axis: str) -> Html:
    """Bars that lie below each other with their figures, and their table.

    Args:
        name: as for :func:`line`.
        values: what each bar is, and its length, the longest first; what is too short to be seen
            beside it is added up in the last bar.
        axis: what the length is.
    """
    values = _seen(values)

    def draw(ax: Any) -> None:
        places = range(len(values))
        drawn = ax.barh(places, [value for _, value in values], color=_SERIES, height=0.7)
        ax.bar_label(drawn, [f"{value:.3g}" for _, value in values], padding=3, color=_INK)
        ax.set_yticks(list(places), [label for label, _ in values])
        ax.invert_yaxis()
        ax.tick_params(axis="y", length=0)

    rows = [(label, number(value)) for label, value in values]
    return _chart(
        name,
        draw,
        axes=(axis, ""),
        rows=rows,
        points=len(values),
        height=0.7 + 0.27 * len(values),
        heads=("", axis),
        lines_along="x",
    )


def _seen(values: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    """The first values, as far as they give bars to be seen, and what the others come to."""
    least = max((value for _, value in values), default=0) * _LEAST_SEEN
    seen = [one for one in values[:_MOST_ACROSS] if one[1] >= least]
    others = values[len(seen) :]
    if len(others) == 1:
        return [*seen, *others]
    rest = [(f"{len(others)} others", sum(value for _, value in others))] if others else []
    return [*seen, *rest]


def number(value: float) -> str:
    """A number in at most four significant digits, or all of those before the point."""
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def thinned(
    points: Sequence[tuple[float, float]], most: int, *, logarithmic: bool
) -> list[tuple[float, float]]:
    """At most about so many of the points, first and last among them, evenly spread over x."""
    count = len(points)
    if count <= most:
        return list(points)
    if logarithmic:
        places = {round((count - 1) ** (i / (most - 1))) for i in range(most)} | {0}
    else:
        places = {round(i * (count - 1) / (most - 1)) for i in range(most)}
    return [points[place] for place in sorted(places)]


def _chart(
    name: str,
    draw: Callable[[Any], None],
    *,
    axes: tuple[str, str],
    rows: Sequence[Sequence[object]],
    points: int,
    height: float = INCHES[1],
    heads: Sequence[str] = (),
    lines_along: str = "y",
) -> Html:
    if not points:
        return Html("")
    figures = table(heads or axes, rows, most=200)
    if not has_matplotlib():
        return folded(f"{name}: the figures", figures)
    svg = _svg(name, draw, axes=axes, height=height, lines_along=lines_along)
    return joined(Html(f"<figure>{svg}</figure>"), folded("The figures as a table", figures))


def _svg(
    name: str,
    draw: Callable[[Any], None],
    *,
    axes: tuple[str, str],
    height: float,
    lines_along: str,
) -> str:
    import matplotlib as mpl  # noqa: PLC0415  # an extra, and slow to import
    from matplotlib.figure import Figure  # noqa: PLC0415

    settings = {
        "svg.fonttype": "none",  # text stays text, in the font of the page
        "svg.hashsalt": name,  # the same bytes each time, and names unlike those of other charts
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
    with mpl.rc_context(settings):
        figure = Figure(figsize=(INCHES[0], height))
        ax = figure.add_subplot()
        draw(ax)
        ax.set_xlabel(axes[0])
        ax.set_ylabel(axes[1])
        ax.grid(visible=True, axis=lines_along)  # type: ignore[arg-type]
        ax.set_axisbelow(True)
        for along in (ax.xaxis, ax.yaxis):
            _plain_numbers(along)
        file = io.StringIO()
        figure.savefig(
            file, format="svg", transparent=True, bbox_inches="tight", metadata={"Date": None}
        )
    return _in_page(file.getvalue(), name)


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


def _in_page(svg: str, name: str) -> str:
    """What stands in the page of an SVG file: no head, no names of groups, its own colours."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'<g id="[^"]*"', "<g", svg)
    svg = re.sub(r' (?:width|height)="[\d.]+pt"', "", svg, count=2)
    svg = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px", svg)
    for colour, of_page in _OF_PAGE.items():
        svg = svg.replace(colour, of_page)
    return svg.replace("<svg ", f'<svg role="img" aria-label="{escaped(name)}" ', 1)
