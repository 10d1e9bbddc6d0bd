"""The documents that an export takes: of a mixture or budget, and those held out of training."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.errors import ConfigError
from tests.examples import examples
from tests.export import oracle
from tests.export.exports import Options, export_and_check, export_plainly
from tests.shared_data import LONG

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.settings import ExportSettings
    from tests.export.conftest import Ids

MIX = ("web=70%", "code=30%")


def test_a_larger_budget_or_share_keeps_the_documents_of_a_smaller_one(ids: Ids) -> None:
    """Of the oracle, beside which exports are tested; held-out documents are never chosen."""
    documents = oracle.read({"web": ids("web"), "code": ids("code")})
    options = [
        Options(mix=MIX, token_budget=budget, validation=validation)
        for budget, validation in ((300, 0.05), (900, 0.05), (900, 0.25), (4000, 0.75))
    ]
    small, budget, share, large = (oracle.halves(documents, one) for one in options)
    taken = [Counter(one.id for one in half["train"]) for half in (small, budget)]
    assert taken[0] < taken[1]
    held_out = [{one.id for one in half["validation"]} for half in (budget, share, large)]
    assert held_out[0] < held_out[1] < held_out[2]
    assert held_out[1] == {one.id for one in documents if one.key < 2**62}
    assert not held_out[1] & {one.id for one in share["train"]}


def test_a_source_of_which_all_is_asked_for_is_taken_entirely(ids: Ids, tmp_path: Path) -> None:
    """With the empty documents, which have the last hash or any other."""
    documents = oracle.read({"web": ids("web")})
    tokens = sum(len(one.ids) for one in documents)
    for times in (1, 2):
        options = Options(token_budget=times * tokens)
        export_and_check({"web": ids("web")}, tmp_path / str(times), options)
        assert len(oracle.halves(documents, options)["train"]) == times * len(documents)


@pytest.mark.parametrize("shuffle", [None, pytest.param(4, marks=pytest.mark.long)])
def test_of_equal_documents_the_first_are_taken(
    ids: Ids, tmp_path: Path, shuffle: int | None
) -> None:
    for budget in range(1, 1200, 199 if LONG else 400):
        options = Options(token_budget=budget, shuffle=shuffle)
        export_and_check({"twins": ids("twins")}, tmp_path / str(budget), options)


@examples(15)
@given(
    options=st.builds(
        Options,
        mix=st.integers(1, 999).map(lambda web: (f"edges={web}/1000", f"code={1000 - web}/1000")),
        mix_seed=st.integers(0, 2**63 - 1),
        token_budget=st.none() | st.integers(1, 9000),
        validation=st.sampled_from([0, 1 / 3, 0.9]),
        shuffle=st.none() | st.integers(0, 9),
    ),
    unit_tokens=st.sampled_from([20, 100, 10**6]),
)
def test_any_mixture(
    ids: Ids, tmp_path_factory: pytest.TempPathFactory, *, options: ExportSettings, unit_tokens: int
) -> None:
    sources = {"code": ids("code"), "edges": ids("edges")}
    output = tmp_path_factory.mktemp("mix") / "out"
    export_and_check(sources, output, options, unit_tokens=unit_tokens)


PADDED = Options(pack=8, pack_remainder="pad")


@pytest.mark.parametrize(
    ("sources", "options", "reason"),
    [
        (("web",), Options(mix=MIX), "code"),
        (("web", "code", "edges"), Options(mix=MIX), "edges"),
        (("web", "code"), Options(token_budget=5), "mix"),
        (("web", "blank"), Options(mix=("web=1/2", "blank=1/2")), "source blank .* no train"),
        (("blank",), Options(token_budget=5), "source blank .* no training tokens"),
        (("web",), replace(PADDED, pad_token="<pad>"), "'<pad>' is not a special token"),
        (("web",), PADDED, "no token for the role pad: name a special token"),
    ],
)
def test_what_sources_or_tokenizer_do_not_have_is_refused(
    ids: Ids,
    tmp_path: Path,
    sources: tuple[str, ...],
    options: ExportSettings,
    reason: str,
) -> None:
    with pytest.raises(ConfigError, match=reason):
        export_plainly({name: ids(name) for name in sources}, tmp_path / "out", options)
    assert not (tmp_path / "out" / "manifest.json").exists()
