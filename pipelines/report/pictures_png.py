"""Pictures of how words merge as PNG, by matplotlib."""

from __future__ import annotations

import io
from functools import cache
from typing import TYPE_CHECKING, Any

from bpe.explain import visible
from pipelines.errors import PictureError
from pipelines.report.pictures import BOX, FONT, MARK

try:
    from matplotlib import font_manager
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import FancyBboxPatch
except ImportError as error:
    raise PictureError(
        "a .png needs the package matplotlib: pip install matplotlib, or draw an .svg, which needs "
        f"nothing ({error})"
    ) from error

if TYPE_CHECKING:
    from pipelines.report.pictures import Picture

# The first comes with matplotlib; of the others, those that the machine has.
_FAMILIES = (
    *("DejaVu Sans Mono", "DejaVu Sans", "Noto Sans Mono CJK JP", "Noto Sans CJK JP"),
    *("Noto Sans CJK SC", "Hiragino Sans", "PingFang SC", "Yu Gothic", "Microsoft YaHei"),
    *("Noto Emoji", "Segoe UI Symbol", "Noto Sans Devanagari", "Noto Naskh Arabic"),
)
_POINTS = 72  # an inch: one point of the figure is a pixel of the layout
_SHARPNESS = 2
_MOST_PIXELS = 30_000  # a side; matplotlib draws up to 65,535


@cache
def _fonts() -> tuple[str, ...]:
    installed = {font.name for font in font_manager.fontManager.ttflist}
    return tuple(family for family in _FAMILIES if family in installed)


@cache
def _drawable(char: str) -> bool:
    paths = [font_manager.findfont(family) for family in _fonts()]
    return any(ord(char) in font_manager.get_font(path).get_charmap() for path in paths)


def spell(data: bytes) -> str:
    """As `bpe.explain.visible`; a character that no font here has as U+1F600."""
    return "".join(char if _drawable(char) else f"U+{ord(char):04X}" for char in visible(data))


def render(picture: Picture) -> bytes:
    """The bytes of a PNG file, on white.

    Raises:
        PictureError: the picture is too large.
    """
    size = max(picture.width, picture.height) * _SHARPNESS
    if size > _MOST_PIXELS:
        raise PictureError(
            f"the picture would be {size:,.0f} pixels long, more than {_MOST_PIXELS:,}: draw "
            "shorter words, or an .svg"
        )
    figure = Figure(figsize=(picture.width / _POINTS, picture.height / _POINTS))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, picture.width), ylim=(picture.height, 0))
    axes.axis("off")
    for line in picture.lines:
        xs, ys = zip(*line.points, strict=True)
        axes.add_line(Line2D(xs, ys, color="#9aa7b3", linewidth=1.5))
    style: dict[str, Any] = {
        "family": list(_fonts()),
        "size": FONT,
        "va": "center_baseline",
        "color": "#1a1a1a",
        "parse_math": False,  # a $ is a $
        "zorder": 3,
    }
    for box in picture.boxes:
        shape = FancyBboxPatch(
            (box.x, box.y),
            box.width,
            BOX,
            boxstyle="round,pad=0,rounding_size=4",
            facecolor=box.fill,
            edgecolor="#5a6b7b",
            zorder=2,
        )
        axes.add_patch(shape)
        weight = "bold" if box.strong else "normal"
        x, y = box.x + box.width / 2, box.y + BOX / 2
        axes.text(x, y, box.text, ha="center", weight=weight, **style)
    for label in picture.labels:
        weight = "bold" if label.strong else "normal"
        align = "center" if label.centred else "left"
        axes.text(label.x, label.y, label.text, ha=align, weight=weight, **style)
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=_POINTS * _SHARPNESS, metadata={"Software": MARK})
    return file.getvalue()
