"""Results as Markdown: a row for each measure of each work, and the medians of everybody."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from benchmarks.cells import OURS, holds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from benchmarks.cells import Outcome
    from benchmarks.results import Machine, Measured, Results

HEADLINES = ("encode-r50k-en", "encode-o200k-multi", "merges", "train-command", "encode-command")
PEERS = ("tiktoken", "tokenizers", "gigatoken", "rustbpe", "fastokens", "datasets", "pyarrow")


def summary(results: Results) -> str:
    """The machine, the versions, and the targets with their results."""
    return f"{conditions(results)}\n\n{main_table(results['works'])}"


def headlines(results: Results) -> str:
    """The works that most users ask about, in a few rows, and where they were measured."""
    works = [work for work in results["works"] if work["name"] in HEADLINES]
    rows = [row[:3] for work in works for row in list(_rows(work))[:1]]
    shown: Results = {**results, "works": works}
    return f"{markdown(['work', 'beam-bpe', 'others'], rows)}\n\n{conditions(shown)}"


def report(results: Results) -> str:
    """The same, the medians of all contenders, and what must be and is not."""
    parts = [summary(results), medians_table(results["works"])]
    if results["scale"] == "full":  # targets mean little on little text
        missed = [f"- missed: {line}" for line in missed_targets(results["works"])]
        parts.append("\n".join(missed) or "Every must holds.")
    return "\n\n".join(parts)


def conditions(results: Results) -> str:
    """A sentence: date, commit, machine, versions."""
    versions = ", ".join(
        f"{name} {results['versions'][name]}" for name in PEERS if name in results["versions"]
    )
    scale = "" if results["scale"] == "full" else f" (`--scale {results['scale']}`: less text)"
    return (
        f"Measured on {results['when'][:10]} at commit `{results['commit']}`{scale}, "
        f"{machine(results['machine'])}; {versions}."
    ) + _measured_later(results)


def _measured_later(results: Results) -> str:
    """A list of the rows of each other commit; empty where all rows are of one run."""
    later: dict[tuple[str, str], list[str]] = {}
    for work in results["works"]:
        if "when" in work and "commit" in work:
            later.setdefault((work["when"][:10], work["commit"]), []).append(_title(work))
    if not later:
        return ""
    return " These rows are exceptions:\n\n" + "\n".join(
        f"- on {when} at commit `{commit}`: {'; '.join(dict.fromkeys(titles))}."
        for (when, commit), titles in later.items()
    )


def machine(found: Machine) -> str:
    """The machine in some words."""
    return (
        f"{found['processor']}, {found['cores']} cores, {found['memory_bytes'] / 2**30:.0f} GiB, "
        f"{found['system'].split('-')[0]}, Python {found['python']}"
        + ("" if found["pinned"] else ", processes not pinned to cores")
    )


def main_table(works: Iterable[Measured]) -> str:
    """Medians, with their spread, of ours and of the best of each peer; ratios with targets."""
    head = ["work", "beam-bpe", "others", "must", "aim"]
    return markdown(head, [row for work in works for row in _rows(work)])


def medians_table(works: Iterable[Measured]) -> str:
    """A row for each contender."""
    rows = []
    for work in works:
        title = _title(work)
        for name, figures in work["contenders"].items():
            found = ", ".join(
                f"{measure} {_figure(work, name, measure)}" for measure in figures["medians"]
            )
            rows.append([title, name, found, str(len(figures["rounds"]))])
            title = ""
    return markdown(["work", "who", "medians", "rounds"], rows)


def missed_targets(works: Iterable[Measured]) -> Iterator[str]:
    """The targets that are missed."""
    for work in works:
        for cell in work["cells"]:
            if holds(cell, cell["must"]) is False:
                yield f"{_title(work)}, {cell['what']}: {_target(cell, cell['must'])}"


def _rows(work: Measured) -> Iterator[list[str]]:
    ours = work["contenders"].get(OURS)
    measures = [cell["what"] for cell in work["cells"]]
    if ours is not None:
        measures += [measure for measure in ours["medians"] if measure != "memory"]
    measures = list(dict.fromkeys(measures))
    for measure in measures:
        cells = [cell for cell in work["cells"] if cell["what"] == measure]
        us, *others = _best(work, measure, cells)
        yield [
            ", ".join([_title(work), *([measure] if len(measures) > 1 else [])]),
            us,
            ", ".join(others),
            *(
                "<br>".join(
                    _target(cell, cell[level]) + _other(work, cell, cells[0]["ours"])
                    for cell in cells
                    if cell[level] is not None
                )
                for level in ("must", "aim")
            ),
        ]


def _best(work: Measured, measure: str, cells: Sequence[Outcome]) -> Iterator[str]:
    """Our figure, then the best of each other tool with its name."""
    names = list(work["contenders"])
    if cells and cells[0]["unit"] == "exponent":
        yield f"exponent {cells[0]['value']:.2f}"
        yield from (f"{name}: {_figure(work, name, measure)}" for name in names)
        return
    ours = cells[0]["ours"] if cells else OURS
    yield _figure(work, ours, measure)
    best: dict[str, str] = {}
    for name in names:
        tool = name.partition(",")[0]
        least = best.setdefault(tool, name)
        medians = [work["contenders"][one]["medians"][measure] for one in (name, least)]
        if medians[0] < medians[1]:
            best[tool] = name
    for tool, name in best.items():
        if tool not in (OURS, ours):
            yield f"{tool} {_figure(work, name, measure)}"


def _title(work: Measured) -> str:
    cores = "1 core" if work["cores"] == 1 else f"{work['cores']} cores"
    if work["cores"] < work["cores_wanted"]:
        cores += f" of {work['cores_wanted']} wanted"
    sizes = {figures["text_bytes"] for figures in work["contenders"].values()}
    size = f" {max(sizes) / 1e6:.3g} MB" if len(sizes) == 1 and max(sizes) else ""
    where = f" ({work['machine']})" if "machine" in work else ""
    return f"{work['title']}{size}, {cores}{where}"


def _figure(work: Measured, name: str, measure: str) -> str:
    figures = work["contenders"][name]
    value = figures["medians"][measure]
    if measure == "memory":
        return _megabytes(value)
    spread = _spread([one[measure] for one in figures["rounds"]])
    if any(cell["unit"] == "B" and cell["what"] == measure for cell in work["cells"]):
        return f"{value:.0f} B{spread}"
    size = figures.get("part_bytes", {}).get(measure, figures["text_bytes"])
    if size and measure != "load":  # which reads no text
        return f"{value:.3g} s{spread} ({size / 1e6 / value:,.3g} MB/s)"
    return f"{value:.3g} s{spread}"


def _megabytes(value: float) -> str:
    return f"{value / 1e6:,.0f} MB"


def _spread(values: Sequence[float]) -> str:
    """Half of the interquartile range, in per cent of the median; empty for a single value."""
    if len(values) == 1:
        return ""
    low, middle, high = np.percentile(values, (25, 50, 75))
    return f" ±{50 * (high - low) / abs(middle):.0f}%"


def _target(cell: Outcome, bound: float | None) -> str:
    """A bound, what was reached where it says more than our figure, and whether it holds."""
    sign = "≥" if cell["better"] == "greater" else "≤"
    mark = "✓" if holds(cell, bound) else "✗"
    if cell["unit"] == "times":
        tool = cell["against"].partition(",")[0]
        ratio = f"{cell['value']:.2f}"
        if mark == "✗" and float(ratio) == bound:  # it would look as if it held
            ratio = f"{cell['value']:.3f}"
        return f"{sign} {bound:g} × {tool}: {ratio} {mark}"
    if cell["what"] == "memory" and bound is not None:
        return f"{sign} {_megabytes(bound)} {mark}"
    unit = "" if cell["unit"] == "exponent" else f" {cell['unit']}"
    return f"{sign} {bound:g}{unit} {mark}"


def _other(work: Measured, cell: Outcome, shown: str) -> str:
    """The one of our contenders that a ratio is of, where the row shows another."""
    if cell["ours"] == shown:
        return ""
    variant = cell["ours"].partition(", ")[2]
    return f" (ours with {variant}: {_figure(work, cell['ours'], cell['what'])})"


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table, its cells unchanged."""
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines)
