"""The cuts of gpt2, cl100k and o200k, compared with tiktoken's own at every byte.

tiktoken shows tokens, not pre-tokens, so it is given vocabularies that give its cuts away. In one
of them the tokens of two bytes are all (a, b) where bit k is clear in a and set in b: a byte can
only ever be the left or the right one, so two neighbours merge exactly if no cut is between
them. Eight bits and both directions see all neighbours but equal ones. For these, a vocabulary
has every repetition of one byte, up to a length: a run inside a pre-token becomes one token.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
import pytest
import regex
import tiktoken
from hypothesis import given
from tiktoken_ext import openai_public

from bpe.pretokenizer import PATTERNS, Pretokenizer
from tests.bpe.texts import every_code_point, library_sources, strings
from tests.examples import examples
from tests.shared_data import shared_file

if TYPE_CHECKING:
    from collections.abc import Iterable

SCHEMES = ("gpt2", "cl100k", "o200k")
LONGEST_RUN = 100

Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Probe:
    """A vocabulary of tiktoken's, and which neighbours it joins inside a pre-token."""

    encoding: tiktoken.Encoding
    lengths: npt.NDArray[np.int64]  # of each token, in bytes
    pairs: Flags  # by left and right byte

    def joins(self, data: Bytes) -> Flags:
        """For each byte but the first, whether it would join the one before."""
        joins: Flags = self.pairs[data[:-1], data[1:]]
        return joins

    def joined(self, text: str, size: int) -> Flags:
        """For each byte but the first, whether tiktoken joins it to the one before."""
        ids = self.encoding.encode_to_numpy(text, disallowed_special=())
        starts = np.cumsum(self.lengths[ids])[:-1]
        inside = np.ones(size, dtype=bool)
        inside[starts] = False
        return inside[1:]


def probe(name: str, pairs: Flags, *, longest: int = 2) -> Probe:
    tokens = [bytes([byte]) for byte in range(256)]
    joined = [bytes([*pair]) for pair in np.argwhere(pairs)]
    tokens += [pair[:1] + pair[1:] * n for n in range(1, longest) for pair in joined]
    encoding = tiktoken.Encoding(
        "probe",
        pat_str=PATTERNS[name],
        mergeable_ranks={token: rank for rank, token in enumerate(tokens)},
        special_tokens={},
    )
    return Probe(encoding, np.array([len(token) for token in tokens]), pairs)


@pytest.fixture(scope="module")
def probes() -> dict[str, list[Probe]]:
    """Of bit 7, set in the right byte or in the left; of 6 to 0; and of equal bytes."""
    has = [np.arange(256) >> bit & 1 for bit in range(7, -1, -1)]
    by_bit = [beyond.outer(bit, bit) for bit in has for beyond in (np.less, np.greater)]
    return {
        name: [
            *(probe(name, pairs) for pairs in by_bit),
            probe(name, np.eye(256, dtype=bool), longest=LONGEST_RUN),
        ]
        for name in SCHEMES
    }


def check(name: str, text: str, probes: Iterable[Probe]) -> None:
    data = text.encode()
    if len(data) < 2:
        return
    view = np.frombuffer(data, dtype=np.uint8)
    cut = np.zeros(len(data), dtype=bool)
    cut[[begin for begin, _ in Pretokenizer(name).spans(data)]] = True
    for one in probes:
        ours, theirs = one.joins(view) & ~cut[1:], one.joined(text, len(data))
        if not np.array_equal(ours, theirs):
            at = int(np.flatnonzero(ours != theirs)[0]) + 1
            around = (data[max(0, at - 20) : at], data[at : at + 20])
            pytest.fail(f"{name}: cut here? ours {cut[at]}, tiktoken's {not cut[at]}: {around}")


def without_long_runs(text: str) -> str:
    """The text with runs of a character cut to what the last probe can see through."""
    shorter: str = regex.sub(rf"(?s)((.)\2{{{LONGEST_RUN // 4 - 1}}})\2+", r"\1", text)
    return shorter


@pytest.mark.parametrize("name", SCHEMES)
def test_the_pattern_is_tiktokens(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_public, "load_tiktoken_bpe", lambda *args, **kwargs: {})
    constructor = "r50k_base" if name == "gpt2" else f"{name}_base"
    assert openai_public.ENCODING_CONSTRUCTORS[constructor]()["pat_str"] == PATTERNS[name]


def test_the_probes_find_a_wrong_cut(probes: dict[str, list[Probe]]) -> None:
    check("cl100k", "aa bb", probes["cl100k"])
    with pytest.raises(pytest.fail.Exception, match="cut here"):
        check("gpt2", "12345", probes["cl100k"])
    with pytest.raises(pytest.fail.Exception, match="cut here"):
        check("gpt2", "11111", probes["cl100k"])


@given(text=strings())
@examples(300)
def test_hard_text_is_cut_as_by_tiktoken(text: str, probes: dict[str, list[Probe]]) -> None:
    for name in SCHEMES:
        check(name, without_long_runs(text), probes[name])


@pytest.mark.parametrize("name", SCHEMES)
def test_every_code_point_is_cut_as_by_tiktoken(name: str, probes: dict[str, list[Probe]]) -> None:
    # Bit 7 sees the cuts between ASCII and others, bit 6 those between a last and a first byte.
    assigned, others = every_code_point()
    check(name, others, probes[name][:2])
    check(name, assigned, probes[name][:3])


@pytest.mark.parametrize("name", SCHEMES)
def test_source_code_is_cut_as_by_tiktoken(name: str, probes: dict[str, list[Probe]]) -> None:
    for source in library_sources(300_000):
        check(name, without_long_runs(source.decode("utf-8", "replace")), probes[name])


@pytest.mark.shared
@pytest.mark.parametrize("corpus", ["en", "multi"])
@pytest.mark.parametrize("name", SCHEMES)
def test_real_text_is_cut_as_by_tiktoken(
    name: str, corpus: str, probes: dict[str, list[Probe]]
) -> None:
    column = pq.read_table(shared_file(f"corpora/{corpus}.parquet"), columns=["text"])["text"]
    texts = [column[row].as_py()[:6000] for row in range(0, len(column), len(column) // 60)]
    check(name, without_long_runs("\n".join(texts)), probes[name])
