"""Fill templates with facts; the page loads and runs nothing, whatever a corpus holds."""

from __future__ import annotations

import functools
import inspect
import re
from typing import TYPE_CHECKING, Any

import jinja2
from markupsafe import Markup

from bpe.explain import visible
from pipelines.progress import duration, many, size_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from jinja2.environment import TemplateModule

MOST_SHOWN = 60  # characters of a token
DASH = "\N{EN DASH}"
_NUMBER = re.compile(r"[-+]?[0-9][0-9,]*(?:\.[0-9]+)?%?")


Facts = dict[str, Any]


def section(source: Callable[..., Facts | None] | str, **material: Any) -> TemplateModule | None:
    """Return a section: its template, filled with the material and the facts of a function.

    The template sets ``title``, the heading of the section, and ``key``, the target of links to it.

    Args:
        source: the template, without ``.html``; or a function that is called as its template is.
            The function is given what its parameters name; one without a default must be there, and
            not be None. Its facts are variables of the template. Bytes are shown as a token, an int
            with commas.
        material: what there is to report on, by name.

    Returns:
        None where there is nothing to say: no facts, or the template sets no ``title``.
    """
    name = source if isinstance(source, str) else source.__name__.replace("_", "-")
    facts = {} if isinstance(source, str) else _facts(source, material)
    if facts is None:
        return None
    template = "manifest" if name.endswith("-manifest") else name
    filled = _templates().get_template(f"{template}.html").make_module(material | facts)
    return filled if hasattr(filled, "title") else None


def _facts(facts_of: Callable[..., Facts | None], material: Facts) -> Facts | None:
    parameters = inspect.signature(facts_of).parameters
    given = {name: material.get(name, one.default) for name, one in parameters.items()}
    missing = (None, inspect.Parameter.empty)
    if any(given[name] in missing for name, one in parameters.items() if one.default is one.empty):
        return None
    return facts_of(**given)


def page(**facts: Any) -> str:
    """Return the text of the HTML file: the template with its variables."""
    return _templates().get_template("page.html").render(facts)


def shortened(data: bytes) -> str:
    """Return a token as visible text; a long token is cut short, with its size."""
    shown = visible(data)
    return shown if len(shown) <= MOST_SHOWN else f"{shown[:MOST_SHOWN]}… ({len(data):,} bytes)"


def token(data: bytes) -> Markup:
    """Return a token or pre-token as HTML; a long token is cut short, with its size."""
    return Markup("<code><bdi>{}</bdi></code>").format(shortened(data))


def tokens(these: Iterable[bytes], between: str = " ") -> Markup:
    """Return tokens as HTML, joined by a separator."""
    return Markup(between).join(map(token, these))  # noqa: S704 - no caller has it from a corpus


def number(value: float) -> str:
    """Return a number with at most four significant digits, or all digits before the point."""
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def decimal(value: float | None, digits: int = 2) -> str:
    """Return a number with this number of digits after the point; a dash for None."""
    return DASH if value is None else f"{value:,.{digits}f}"


def percent(value: float | None, digits: int = 1) -> str:
    """Return a part of 1 as percent; a dash for None."""
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
    """Return a value in the form that a template shows."""
    if isinstance(value, bytes):
        return token(value)
    return f"{value:,}" if isinstance(value, int) else value


def _is_figure(value: object) -> bool:
    """Return whether a cell is aligned to the right."""
    if isinstance(value, int | float):
        return True
    return isinstance(value, str) and (value == DASH or _NUMBER.fullmatch(value) is not None)
