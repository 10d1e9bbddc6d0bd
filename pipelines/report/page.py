"""The page: facts in templates. It loads and runs nothing, whatever a corpus holds."""

from __future__ import annotations

import functools
import inspect
import re
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import jinja2
from markupsafe import Markup

from bpe.explain import visible
from pipelines.progress import duration, many, size_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pipelines.report.material import Material

MOST_SHOWN = 60  # characters of a token
DASH = "\N{EN DASH}"
_NUMBER = re.compile(r"[-+]?[0-9][0-9,]*(?:\.[0-9]+)?%?")


Facts = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of the report under a heading of its own.

    Attributes:
        key: what a link leads to, ``#key``; of letters and hyphens.
        title: the heading.
        body: the HTML below it; text that is no Markup is escaped.
    """

    key: str
    title: str
    body: Markup | str


def section(facts_of: Callable[..., Facts | None], **material: Any) -> Section | None:
    """A section: the template that is called as a function is, filled with its facts.

    Args:
        facts_of: is given what its parameters name; one without a default must be there, and not
            be None. Its facts are variables of the template, as is the material, but for ``key`` of
            the section. Bytes are shown as a token, an int with commas.
        material: what there is to report on, by name.

    Returns:
        None where there is nothing to say.
    """
    parameters = inspect.signature(facts_of).parameters
    given = {name: material.get(name, one.default) for name, one in parameters.items()}
    missing = (None, inspect.Parameter.empty)
    if any(given[name] in missing for name, one in parameters.items() if one.default is one.empty):
        return None
    if (facts := facts_of(**given)) is None:
        return None
    name = facts_of.__name__.replace("_", "-")
    template = "manifest" if name.endswith("-manifest") else name
    filled = _templates().get_template(f"{template}.html").make_module(material | facts)
    return Section(
        key=facts.get("key", name),
        title=filled.title,  # type: ignore[attr-defined]  # each template sets it
        body=Markup(filled),  # noqa: S704 - escaped there
    )


def page(
    title: str,
    sections: Sequence[Section],
    *,
    material: Material | None = None,
    pictures: bool = True,
) -> str:
    """The text of the HTML file.

    Args:
        title: the heading.
        sections: in order.
        material: what they are about; None for a comparison alone.
        pictures: whether charts have pictures.
    """
    facts = {"title": title, "sections": sections, "material": material, "pictures": pictures}
    css = Markup(files(__package__).joinpath("page.css").read_text("utf-8"))  # noqa: S704 - our own
    return _templates().get_template("page.html").render(facts, css=css)


def shortened(data: bytes) -> str:
    """A token as it looks, whatever it holds; a long one is cut short, with its size."""
    shown = visible(data)
    return shown if len(shown) <= MOST_SHOWN else f"{shown[:MOST_SHOWN]}… ({len(data):,} bytes)"


def token(data: bytes) -> Markup:
    """A token or pre-token as it looks, whatever it holds; long ones are cut short."""
    return Markup("<code><bdi>{}</bdi></code>").format(shortened(data))


def tokens(these: Iterable[bytes], between: str = " ") -> Markup:
    """Tokens in a row."""
    return Markup(between).join(map(token, these))  # noqa: S704 - no caller has it from a corpus


def number(value: float) -> str:
    """A number in at most four significant digits, or all of those before the point."""
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def decimal(value: float | None, digits: int = 2) -> str:
    """A number with so many digits after the point; a dash for None."""
    return DASH if value is None else f"{value:,.{digits}f}"


def percent(value: float | None, digits: int = 1) -> str:
    """A part of 1 as percent; a dash for None."""
    return DASH if value is None else f"{value:.{digits}%}"


@functools.cache
def _templates() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"duration": duration, "many": many, "size": size_text, "tokens": tokens}
    made.filters |= {"decimal": decimal, "percent": percent}
    made.tests["figure"] = _is_figure
    return made


def _shown(value: object) -> object:
    """A value as a template shows it."""
    if isinstance(value, bytes):
        return token(value)
    return f"{value:,}" if isinstance(value, int) else value


def _is_figure(value: object) -> bool:
    """Return whether a cell is aligned to the right."""
    if isinstance(value, int | float):
        return True
    return isinstance(value, str) and (value == DASH or _NUMBER.fullmatch(value) is not None)
