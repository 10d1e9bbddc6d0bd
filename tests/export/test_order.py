"""The order of documents: that of the sources, or one that a seed decides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pipelines.errors import ConfigError
from pipelines.settings import ExportSettings
from tests.export import oracle
from tests.export.exports import export, export_and_check, export_plainly, found
from tests.export.oracle import Options
from tests.pipelines.corpora import TWO, tree

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def names(output: Path) -> list[str]:
    return [row["id"] for rows in found(output, "parquet") for row in rows]


def test_another_seed_is_another_order(ids: Callable[[str], Path], tmp_path: Path) -> None:
    sources, orders = {"web": ids("web"), "edges": ids("edges")}, []
    for seed in (0, 1, 2**63 - 1):
        export_and_check(sources, tmp_path / str(seed), Options(shuffle=seed))
        orders.append(names(tmp_path / str(seed)))
    assert len({tuple(order) for order in orders}) == 3
    assert sorted(orders[0]) == sorted(orders[1]) == sorted(one.id for one in oracle.read(sources))


def test_an_epoch_has_an_order_of_its_own(ids: Callable[[str], Path], tmp_path: Path) -> None:
    documents = oracle.read({"code": ids("code")})
    budget = 3 * sum(len(one.ids) for one in documents)
    options = Options(token_budget=budget, shuffle=3)
    export_and_check({"code": ids("code")}, tmp_path / "out", options)
    order = names(tmp_path / "out")
    assert sorted(order) == sorted(one.id for one in documents for _ in range(3))
    assert order[:40] != order[40:80] != order[80:]


@pytest.mark.parametrize(
    ("fan_in", "options"),
    [
        (2, Options(shuffle=1, validation="20%")),
        (3, Options(shuffle=2, pack=16, mix={"web": "1/2", "edges": "1/4", "code": "1/4"})),
    ],
)
def test_an_exchange_of_two_levels_gives_the_same(
    ids: Callable[[str], Path], tmp_path: Path, fan_in: int, options: Options
) -> None:
    sources = {"web": ids("web"), "edges": ids("edges"), "code": ids("code")}
    export_and_check(sources, tmp_path / "out", options, unit_tokens=100, fan_in=fan_in)


@pytest.mark.long
def test_an_exchange_of_two_levels_in_a_pipeline(
    ids: Callable[[str], Path], tmp_path: Path
) -> None:
    sources, options = {"web": ids("web"), "edges": ids("edges")}, Options(shuffle=1)
    export(sources, tmp_path / "job", options, fan_in=2, execution=TWO)
    export_plainly(sources, tmp_path / "plain", options)
    assert tree(tmp_path / "job") == tree(tmp_path / "plain")


def test_less_memory_gives_the_same(
    ids: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sorted runs of a few documents, portions of a few ids, and parts that are read twice."""
    for name, value in (
        ("spill.RUN_BYTES", 500),
        ("exchange._PORTION_IDS", 30),
        ("exchange._PORTION_DOCUMENTS", 3),
        ("source._IN_MEMORY", 0),
    ):
        monkeypatch.setattr(f"pipelines.export.{name}", value)
    sources = {name: ids(name) for name in ("edges", "web", "code")}
    for number, options in enumerate(
        (Options(shuffle=1, validation="20%"), Options(shuffle=2, pack=16), Options(pack=300))
    ):
        export_and_check(sources, tmp_path / str(number), options, fan_in=5)


@pytest.mark.parametrize("seed", [-1, 2**63, 1.5, "7", True])
def test_what_is_no_seed_is_refused(seed: Any) -> None:
    with pytest.raises(ConfigError, match="`shuffle` "):
        ExportSettings(to="bin", shuffle=seed)
