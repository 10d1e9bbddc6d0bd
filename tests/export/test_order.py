"""The order of documents: that of the sources, or one that a seed decides."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.export import oracle
from tests.export.exports import Options, export_and_check

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.settings import ExportSettings
    from tests.export.conftest import Ids


def test_seeds_and_epochs_have_orders_of_their_own(ids: Ids) -> None:
    """Of the oracle, beside which exports are tested."""
    documents = oracle.read({"code": ids("code")})
    budget = 3 * sum(len(one.ids) for one in documents)
    orders = set()
    for seed in (0, 1, 2**63 - 1):
        options = Options(shuffle=seed, token_budget=budget)
        order = [one.id for one in oracle.halves(documents, options)["train"]]
        orders |= {tuple(order[i : i + 40]) for i in (0, 40, 80)}
        assert sorted(order) == sorted(one.id for one in documents for _ in range(3))
    assert len(orders) == 9


# Sorted runs of a few documents, portions of a few ids, and parts that are read twice.
LITTLE = {
    "exchange.FAN_IN": 5,
    "exchange.RUN_BYTES": 500,
    "exchange._PORTION_IDS": 30,
    "exchange._PORTION_DOCUMENTS": 3,
    "source._IN_MEMORY": 0,
}
MIX = ("web=4/7", "edges=1/7", "code=2/7")


@pytest.mark.parametrize(
    ("limits", "options"),
    [
        ({"choose.BINS": 1}, Options(mix=MIX, token_budget=1, validation=0.1)),
        ({"choose.BINS": 1}, Options(mix=MIX, token_budget=1111, validation=0.1)),
        ({"choose.BINS": 3}, Options(mix=MIX, token_budget=3333, validation=0.1)),
        ({"exchange.FAN_IN": 2}, Options(shuffle=1, validation=0.2)),
        ({"exchange.FAN_IN": 3}, Options(shuffle=2, pack=16, mix=MIX)),
        (LITTLE, Options(shuffle=1, validation=0.2)),
        (LITTLE, Options(shuffle=2, pack=16)),
        (LITTLE, Options(pack=300)),
    ],
)
def test_lower_limits_give_the_same(
    ids: Ids,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    limits: dict[str, int],
    options: ExportSettings,
) -> None:
    """A coarser histogram, an exchange of two levels, and less memory."""
    for name, value in limits.items():
        monkeypatch.setattr(f"pipelines.export.{name}", value)
    sources = {name: ids(name) for name in ("edges", "web", "code")}
    export_and_check(sources, tmp_path / "out", options, unit_tokens=100)
