"""The documents that a mixture takes, and how often."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from pipelines.errors import ConfigError
from pipelines.settings import ExportSettings
from tests.examples import examples
from tests.export import oracle
from tests.export.exports import export_and_check, export_plainly, found
from tests.export.oracle import Options
from tests.shared_data import LONG

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MIX = {"web": "70%", "code": "30%"}


def names(output: Path) -> list[str]:
    return [row["id"] for rows in found(output, "parquet") for row in rows]


def tokens_by_source(sources: dict[str, Path], validation: str = "0") -> dict[str, int]:
    border = oracle.share(validation) * 2**64
    sizes = dict.fromkeys(sources, 0)
    for one in oracle.read(sources):
        sizes[one.source_name] += len(one.ids) if one.key >= border else 0
    return sizes


def test_keys_are_xxh64_of_the_ids(ids: Callable[[str], Path]) -> None:
    for one in oracle.read({"web": ids("web"), "edges": ids("edges")}):
        assert one.key == xxhash.xxh64_intdigest(one.id.encode())


@pytest.mark.parametrize(
    ("budget", "seed"),
    [(1000, 7), (None, 2**63 - 1), *([(1000, 0), (1, 0), (None, 0), (5000, 3)] if LONG else [])],
)
def test_each_source_has_its_share(
    ids: Callable[[str], Path], tmp_path: Path, budget: int | None, seed: int
) -> None:
    sources = {"web": ids("web"), "code": ids("code")}
    options = Options(mix=MIX, mix_seed=seed, token_budget=budget)
    export_and_check(sources, tmp_path / "out", options)
    has = tokens_by_source(sources)
    budget = budget or min(has["web"] * 10 // 7, has["code"] * 10 // 3)
    longest = max(len(one.ids) for one in oracle.read(sources))
    size_of = {one.id: len(one.ids) for one in oracle.read(sources)}
    for source, tenths in (("w", 7), ("c", 3)):
        taken = sum(size_of[name] for name in names(tmp_path / "out") if name[0] == source)
        assert 0 <= taken - budget * tenths // 10 < longest


def test_a_larger_budget_keeps_the_documents_of_a_smaller_one(
    ids: Callable[[str], Path], tmp_path: Path
) -> None:
    sources, before = {"web": ids("web"), "code": ids("code")}, Counter[str]()
    for budget in (300, 900, 4000):
        export_plainly(sources, tmp_path / str(budget), Options(mix=MIX, token_budget=budget))
        taken = Counter(names(tmp_path / str(budget)))
        assert before < taken
        before = taken


def test_a_source_of_which_all_is_asked_for_is_taken_entirely(
    ids: Callable[[str], Path], tmp_path: Path
) -> None:
    """With the empty documents, which have the last hash or any other."""
    tokens = tokens_by_source({"web": ids("web")})["web"]
    for times in (1, 2):
        output = tmp_path / str(times)
        export_and_check({"web": ids("web")}, output, Options(token_budget=times * tokens))
        taken = Counter(names(output))
        assert len(taken) == 90
        assert set(taken.values()) == {times}


def test_what_is_too_little_is_repeated_and_said(
    ids: Callable[[str], Path], tmp_path: Path
) -> None:
    tokens = tokens_by_source({"code": ids("code")})["code"]
    options = Options(token_budget=tokens * 5 // 2, shuffle=1)
    export_and_check({"code": ids("code")}, tmp_path / "out", options)
    assert set(Counter(names(tmp_path / "out")).values()) == {2, 3}


def test_held_out_documents_are_never_chosen_and_change_no_order(
    ids: Callable[[str], Path], tmp_path: Path
) -> None:
    sources = {"web": ids("web"), "code": ids("code")}
    options = Options(mix=MIX, token_budget=2500, validation="25%")
    export_and_check(sources, tmp_path / "out", options)
    held_out = {
        one["id"] for rows in found(tmp_path / "out", "parquet", "validation") for one in rows
    }
    assert held_out == {one.id for one in oracle.read(sources) if one.key < 2**62}
    assert not held_out & set(names(tmp_path / "out"))


@pytest.mark.parametrize("bins", [1, 3])
def test_a_coarser_histogram_chooses_the_same(
    ids: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bins: int
) -> None:
    monkeypatch.setattr("pipelines.export.choose.BINS", bins)
    sources = {"edges": ids("edges"), "code": ids("code"), "web": ids("web")}
    mix = {"edges": "1/7", "code": "2/7", "web": "4/7"}
    for budget in (1, 700, 3333) if LONG else (bins * 1111,):
        options = Options(mix=mix, token_budget=budget, validation="10%")
        export_and_check(sources, tmp_path / str(budget), options)


@pytest.mark.parametrize("shuffle", [None, pytest.param(4, marks=pytest.mark.long)])
def test_of_equal_documents_the_first_are_taken(
    ids: Callable[[str], Path], tmp_path: Path, shuffle: int | None
) -> None:
    for budget in range(1, 1200, 199 if LONG else 400):
        options = Options(token_budget=budget, shuffle=shuffle)
        export_and_check({"twins": ids("twins")}, tmp_path / str(budget), options)


@examples(15)
@given(
    web=st.integers(1, 999),
    budget=st.none() | st.integers(1, 9000),
    seed=st.integers(0, 2**63 - 1),
    validation=st.sampled_from(["0", "1/3", "0.9"]),
    shuffle=st.none() | st.integers(0, 9),
    unit_tokens=st.sampled_from([20, 100, 10**6]),
)
def test_any_mixture(
    ids: Callable[[str], Path],
    tmp_path_factory: pytest.TempPathFactory,
    *,
    web: int,
    budget: int | None,
    seed: int,
    validation: str,
    shuffle: int | None,
    unit_tokens: int,
) -> None:
    options = Options(
        mix={"edges": f"{web}/1000", "code": f"{1000 - web}/1000"},
        mix_seed=seed,
        token_budget=budget,
        validation=validation,
        shuffle=shuffle,
    )
    sources = {"code": ids("code"), "edges": ids("edges")}
    export_and_check(
        sources, tmp_path_factory.mktemp("mix") / "out", options, unit_tokens=unit_tokens
    )


@pytest.mark.parametrize(
    ("sources", "options", "reason"),
    [
        (("web",), Options(mix=MIX), "code"),
        (("web", "code", "edges"), Options(mix=MIX), "edges"),
        (("web", "code"), Options(token_budget=5), "mix"),
        (("web", "blank"), Options(mix={"web": "1/2", "blank": "1/2"}), "source blank .* no train"),
        (("blank",), Options(token_budget=5), "source blank .* no training tokens"),
    ],
)
def test_what_cannot_be_mixed_is_refused(
    ids: Callable[[str], Path],
    tmp_path: Path,
    sources: tuple[str, ...],
    options: Options,
    reason: str,
) -> None:
    with pytest.raises(ConfigError, match=reason):
        export_plainly({name: ids(name) for name in sources}, tmp_path / "out", options)
    assert not (tmp_path / "out" / "manifest.json").exists()


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"mix": ("web=70%", "code=20%")}, "the shares of `mix` add up to 90%, not to 100%"),
        ({"mix": ("web=70%", "web=30%")}, "web is given twice"),
        ({"mix": ("web=50%", "code=49.9999999%")}, r"add up to 99\.9999999%, not to 100%"),
        ({"mix": ("web=1/3", "code=1/2")}, "add up to 5/6, not to 100%"),
        ({"mix": ("web",)}, "write NAME=SHARE"),
        ({"mix": ("web=1/0",)}, "'1/0' is not a share"),
        ({"mix": ("web=1", "code=0")}, "`mix` code=0: leave the source out"),
        ({"mix": ("=100%",)}, "write NAME=SHARE, such as web=70%"),
        ({"mix_seed": 5}, "`mix_seed` needs `mix` NAME=SHARE or `token_budget` N"),
        ({"token_budget": 0}, "`token_budget` 0 is out of range"),
    ],
)
def test_what_is_no_mix_is_refused(settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        ExportSettings(to="bin", **settings)
