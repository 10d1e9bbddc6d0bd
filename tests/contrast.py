"""Contrast: everything on a page can be read, in light and in dark."""

from __future__ import annotations

import html
import json
import re
from typing import TYPE_CHECKING

from tests.browser import shown

if TYPE_CHECKING:
    from pathlib import Path

LEAST = 4.5  # WCAG 2.2, 1.4.3: contrast (minimum)
SCHEMES = {"dark": 0, "light": 1}  # as Chromium numbers them


# Opens all that is folded, then finds the contrast of each text to its background: the least of
# those that are alike in element and classes.
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
        found[name] = Math.min(found[name] ?? 21, contrast(colour, ground));
    }
}
const dark = matchMedia("(prefers-color-scheme: dark)").matches;
document.getElementById("measured").textContent = JSON.stringify({dark, texts: found});
</script>
"""


def readable(page: Path) -> set[str]:
    """Check the contrast of all texts of a report.

    Returns:
        The element and classes of each, such as ``p.explanation``.
    """
    # The page lets no script run.
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.read_text("utf-8"))
    copy = page.with_name(f"measured-{page.name}")
    copy.write_text(text.replace("</body>", f"{_MEASURE}</body>"), "utf-8")
    for scheme, number in SCHEMES.items():
        dom = shown(copy, flags=(f"--blink-settings=preferredColorScheme={number}",))
        _, measured = dom.split('<pre id="measured">')
        found = json.loads(html.unescape(measured.split("</pre>")[0]))
        assert found["dark"] == (scheme == "dark")
        assert {name: one for name, one in found["texts"].items() if one < LEAST} == {}, scheme
    return set(found["texts"])
