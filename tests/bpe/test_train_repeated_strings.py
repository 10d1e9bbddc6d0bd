"""The twin of Hugging Face's trainer, where two merges make the same string and share one token.

Over single bytes this cannot happen: a string is made in one way only, because all its
occurrences are merged alike. It happens when a symbol of the alphabet is itself a string of
others, such as the end-of-word mark ``</w>`` together with the characters it is written with. The
core beside its twins on such alphabets: ``train`` and ``extend`` of ``fuzz_targets.py``.
"""

from __future__ import annotations

import json

import tokenizers
from hypothesis import given
from hypothesis import strategies as st

from tests.bpe import huggingface_trainer


@given(
    words=st.dictionaries(
        st.lists(st.sampled_from(["a", "b", "</w>"]), min_size=1, max_size=5).map("".join),
        st.integers(1, 5),
        min_size=1,
        max_size=6,
    ),
    merges=st.integers(1, 12),
)
def test_the_twin_has_the_habits_of_the_real_trainer(words: dict[str, int], merges: int) -> None:
    """With an end-of-word suffix, ``tokenizers`` itself meets strings that are there already."""
    alphabet = sorted(set("".join(words)))
    symbols = [(*word[:-1], word[-1] + "</w>") for word in words]
    known = [*alphabet, *sorted({word[-1] for word in symbols})]
    size = len(known) + merges
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    tokenizer.train_from_iterator(
        [" ".join([word] * count) for word, count in words.items()],
        tokenizers.trainers.BpeTrainer(
            vocab_size=size, end_of_word_suffix="</w>", show_progress=False
        ),
    )
    model = json.loads(tokenizer.to_str())["model"]
    # Its ids of suffixed characters follow the order of its hash map: take them from its result.
    known = sorted(known, key=lambda symbol: model["vocab"][symbol])
    steps = huggingface_trainer.train(
        [
            (tuple(symbol.encode() for symbol in word), count)
            for word, count in zip(symbols, words.values(), strict=True)
        ],
        vocab_size=size,
        alphabet=[symbol.encode() for symbol in known],
    ).merges
    last = {(step.left.decode(), step.right.decode()): i for i, step in enumerate(steps)}
    assert [tuple(merge) for merge in model["merges"]] == sorted(last, key=last.__getitem__)
