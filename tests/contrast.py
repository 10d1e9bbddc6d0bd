"""Contrast: everything on a page can be read, in light and in dark."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.browser import element, shown, with_script

if TYPE_CHECKING:
    from pathlib import Path

LEAST = 4.5  # WCAG 2.2, 1.4.3: contrast (minimum)
SCHEMES = {"dark": 0, "light": 1}  # as Chromium numbers them


@dataclass(frozen=True)
class Text:
    """A text of a page.

    Attributes:
        name: element and classes, ``p.explanation``.
        text: how it begins.
        contrast: to its background, from 1 to 21.
    """

    name: str
    text: str
    contrast: float


# Opens all that is folded, then finds the contrast of each text to its background: of one of
# those that are alike in element, classes and colours.
_MEASURE = """
<pre id="measured"></pre>
<script>
function rgb(text) {
    const [r, g, b, alpha = 1] = text.match(/[\\d.]+/g).map(Number);
    if (alpha !== 0 && alpha !== 1) throw new Error("half seen through: " + text);
    return alpha ? [r, g, b] : null;
}
function luminance(colour) {
    const [r, g, b] = colour.map((one) => {
        const share = one / 255;
        return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
function contrast(one, other) {
    const [less, more] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (more + 0.05) / (less + 0.05);
}
// A picture in the background may be there or not: both are grounds of the text.
function behind(element) {
    const grounds = [];
    for (let one = element; one !== null; one = one.parentElement) {
        const style = getComputedStyle(one);
        for (const colour of style.backgroundImage.match(/rgba?\\([^)]*\\)/g) ?? [])
            if (rgb(colour) !== null) grounds.push(rgb(colour));
        if (rgb(style.backgroundColor) !== null)
            return [...grounds, rgb(style.backgroundColor)];
    }
    throw new Error("nothing behind " + element.tagName);
}
for (const one of document.querySelectorAll("details")) one.open = true;
const found = {};
for (const one of document.querySelectorAll("body *")) {
    const own = [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim() !== "");
    if (!own || one.getClientRects().length === 0) continue;
    const style = getComputedStyle(one);
    const colour = rgb(one instanceof SVGElement ? style.fill : style.color);
    for (const ground of behind(one)) {
        const name = [one.tagName.toLowerCase(), ...one.classList].join(".");
        const key = `${name} ${colour} on ${ground}`;
        found[key] = {name, text: one.textContent.slice(0, 40), contrast: contrast(colour, ground)};
    }
}
const dark = matchMedia("(prefers-color-scheme: dark)").matches;
document.getElementById("measured").textContent = JSON.stringify({dark, texts: found});
</script>
"""


def texts_of(page: Path, scheme: str) -> list[Text]:
    """The texts of a report as a browser shows it that is set to a colour scheme."""
    copy = with_script(page, _MEASURE)
    flags = (f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}",)
    found = json.loads(element(shown(copy, flags=flags), "measured"))
    assert found["dark"] == (scheme == "dark")
    return [Text(**one) for one in found["texts"].values()]
