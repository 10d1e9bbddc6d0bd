"""Results as Markdown: what is asked and whether it holds, then the medians of everybody."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.cells import holds
from benchmarks.work import OURS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from benchmarks.cells import Outcome
    from benchmarks.results import Figures, Machine, Measured, Results

PEERS = ("tiktoken", "tokenizers", "gigatoken", "rustbpe", "fastokens", "datasets", "pyarrow")


def report(results: Results) -> str:
    """Where and with what it was measured, the cells, and the medians."""
    return "\n\n".join(
        [conditions(results), cells_table(results["works"]), medians_table(results["works"])]
    )


def conditions(results: Results) -> str:
    """A sentence or two: date, commit, machine, versions."""
    versions = ", ".join(
        f"{name} {results['versions'][name]}" for name in PEERS if name in results["versions"]
    )
    quick = "" if results["scale"] == "full" else " (short form: less text, fewer rounds)"
    return (
        f"Measured {results['when'][:10]} at commit `{results['commit']}`{quick}, on "
        f"{machine(results['machine'])}; {versions}."
    )


def machine(found: Machine) -> str:
    """The machine in some words."""
    return (
        f"{found['processor']}, {found['cores']} cores, {found['memory_bytes'] / 2**30:.0f} GiB, "
        f"{found['system'].split('-')[0]}, Python {found['python']}"
        + ("" if found["pinned"] else ", processes not pinned to cores")
    )


def cells_table(works: Iterable[Measured]) -> str:
    """A row for each thing that is asked."""
    rows = []
    for work in works:
        title = _title(work)
        for cell in work["cells"]:
            rows.append(
                [
                    title,
                    cell["what"],
                    _value(cell),
                    _bound(cell, cell["must"]),
                    _bound(cell, cell["aim"]),
                ]
            )
            title = ""
    return _markdown(["work", "", "measured", "must", "aim"], rows)


def medians_table(works: Iterable[Measured]) -> str:
    """A row for each contender."""
    rows = []
    for work in works:
        title = _title(work)
        for name, figures in work["contenders"].items():
            found = ", ".join(
                f"{measure} {_figure(measure, value, figures)}"
                for measure, value in figures["medians"].items()
            )
            memory = f"{figures['peak_bytes'] / 1e6:,.0f} MB"
            rows.append([title, _strong(name), found, str(len(figures["rounds"])), memory])
            title = ""
    return _markdown(["work", "who", "medians", "rounds", "peak memory"], rows)


def _title(work: Measured) -> str:
    cores = "1 core" if work["cores"] == 1 else f"{work['cores']} cores"
    if work["cores"] < work["cores_wanted"]:
        cores += f" of {work['cores_wanted']} wanted"
    sizes = sorted({figures["text_bytes"] for figures in work["contenders"].values()})
    size = f" {sizes[0] / 1e6:.3g} MB" if len(sizes) == 1 and sizes[0] else ""
    return f"{work['title']}{size} ({cores})"


def _strong(name: str) -> str:
    return f"**{name}**" if name == OURS else name


def _figure(measure: str, value: float, figures: Figures) -> str:
    if measure.endswith("bytes"):
        return f"{value:,.0f} B" if value < 10_000 else f"{value / 1e6:,.0f} MB"
    rate = f" ({figures['text_bytes'] / 1e6 / value:,.0f} MB/s)" if figures["text_bytes"] else ""
    return f"{value:.3g} s{rate}"


def _value(cell: Outcome) -> str:
    if cell["unit"] == "times":
        return f"{cell['value']:.2f} × {cell['against']}"
    if cell["unit"] == "exponent":
        return f"exponent {cell['value']:.2f}"
    return f"{cell['value']:.3g} {cell['unit']}"


def _bound(cell: Outcome, bound: float | None) -> str:
    if bound is None:
        return ""
    sign = "≥" if cell["better"] == "greater" else "≤"
    unit = {"times": " ×", "exponent": ""}.get(cell["unit"], f" {cell['unit']}")
    return f"{sign} {bound:g}{unit} {'✓' if holds(cell, bound) else '✗'}"


def _markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines)
