"""Pictures as SVG: text stays text, the same picture gives the same bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from bpe.pictures.layout import BOX, FONT, MARK

if TYPE_CHECKING:
    from bpe.pictures.layout import Box, Label, Line, Picture

_STYLE = (
    "text{font:"
    f"{FONT}px 'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:#1a1a1a;white-space:pre}}"
    ".b{font-weight:bold}.m{text-anchor:middle}"
    "rect{stroke:#5a6b7b}polyline{fill:none;stroke:#9aa7b3;stroke-width:1.5}"
)


def render(picture: Picture) -> str:
    """The text of an SVG file, on white."""
    size = f'width="{picture.width:.0f}" height="{picture.height:.0f}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size}>',
            f"<!-- {MARK} -->",
            f"<style>{_STYLE}</style>",
            '<rect width="100%" height="100%" style="fill:#fff;stroke:none"/>',
            *map(_line, picture.lines),
            *map(_box, picture.boxes),
            *map(_label, picture.labels),
            "</svg>\n",
        ]
    )


def _line(line: Line) -> str:
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in line.points)
    return f'<polyline points="{points}"/>'


def _box(box: Box) -> str:
    x, width = f"{box.x:.1f}", f"{box.width:.1f}"
    rect = (
        f'<rect x="{x}" y="{box.y:.1f}" width="{width}" height="{BOX}" rx="4" fill="{box.fill}"/>'
    )
    classes = _classes(strong=box.strong, centred=True)
    return rect + _text(box.x + box.width / 2, box.y + BOX / 2, box.text, classes)


def _label(label: Label) -> str:
    classes = _classes(strong=label.strong, centred=label.centred)
    return _text(label.x, label.y, label.text, classes)


def _classes(*, strong: bool, centred: bool) -> str:
    names = " ".join(name for name, has in (("b", strong), ("m", centred)) if has)
    return f' class="{names}"' if names else ""


def _text(x: float, y: float, text: str, classes: str) -> str:
    return f'<text x="{x:.1f}" y="{y + FONT * 0.35:.1f}"{classes}>{escape(text)}</text>'
