"""Mutated inputs for the core's entry points, compared with ``bpe.reference``.

    python -m tests.bpe.fuzz --seconds 60

Scanning, counting, training, encoding, decoding, and loading of tokenizer files. Meant for a core
built with sanitizers (``make fuzz``, and a short form in ``make sanitize``). Texts grow out of
``fuzz_seeds/``; a text that made a difference once belongs there. The input under way lies in the
file ``--input-file``, so that it is still there after a crash; ``--replay FILE`` runs it alone.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

import bpe
from bpe.counts import PretokenCounts
from bpe.counts.texts import count_pretokens
from bpe.errors import BpeError
from bpe.models import ByteLevel
from bpe.pretokenize import LOSSY, PRETOKENIZERS, Pretokenizer
from bpe.reference import pretokenize, train
from bpe.reference.count import count as count_by_reference
from tests.bpe.models import reference as encode_by_reference
from tests.bpe.test_formats_fuzz import FORMATS
from tests.bpe.vocabularies import small_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable

SEEDS = Path(__file__).with_name("fuzz_seeds")
LONGEST = 2000  # bytes: the reference is slow
KEPT = 500  # mutants that are mutated again

PIECES = [
    *(b"", b"\0", b"\xff", b"\x80", b"\xf0\x9f\x99", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"),
    *(b" ", b"  ", b"\n", b"\r\n", b"\t", b"'s", b"'LL", b"\xe2\x80\xa8", b"\xc2\xa0"),
    *("é🙂漢ا".encode(), "ǅ".encode(), "e\u0301".encode(), "ſ".encode(), "İ".encode()),
    *(b"<|endoftext|>", b"<|end", b"{", b'"', b"[[", b"1e999", b"\\ud800", b"-1", b"9" * 40),
    *(b"a" * 70, b"ab" * 40, b" the" * 10, b"0" * 100, b"\n" * 65, b" " * 65),
]


class DifferenceError(Exception):
    """The core and the reference, or two ways through the core, do not agree."""


def same(found: object, expected: object, what: str) -> None:
    """Raise DifferenceError where two results differ."""
    if found != expected:
        raise DifferenceError(f"{what}:\n  core      {found!r:.600}\n  reference {expected!r:.600}")


def mutated(data: bytes, other: bytes, dice: random.Random) -> bytes:
    """``data`` with some bytes replaced, left out, put in, repeated, or taken from ``other``."""
    for _ in range(dice.choice((1, 1, 2, 4, 8))):
        begin = dice.randint(0, len(data))
        end = min(len(data), begin + dice.choice((0, 0, 1, 2, 5, 20, 200)))
        cut = dice.randint(0, len(other))
        put = dice.choice(
            (
                dice.choice(PIECES),
                bytes([dice.randrange(256)]),
                data[begin:end] * dice.choice((2, 3, 20)),
                other[cut : cut + dice.choice((1, 5, 50))],
                bytes(byte ^ 1 << dice.randrange(8) for byte in data[begin:end]),
            )
        )
        data = data[:begin] + put + data[end:]
    return data


def check_scan(data: bytes, dice: random.Random) -> None:
    """The cuts of each scheme."""
    text = data[:LONGEST]
    name = dice.choice([name for name in PRETOKENIZERS if name not in LOSSY])
    spans = Pretokenizer(name).spans(text)
    pieces = [text[begin:end] for begin, end in spans]
    same(pieces, pretokenize.split(name, text), f"cuts of {name}")


def check_count(data: bytes, dice: random.Random) -> None:
    """Counts of texts with special tokens, drained into shards and merged again."""
    text = data[:LONGEST]
    places = sorted(dice.randint(0, len(text)) for _ in range(3))
    texts = [text[: places[0]], text[places[0] : places[1]], text[places[1] :]]
    name = dice.choice(PRETOKENIZERS)
    special = dice.choice([(), ("<|endoftext|>",), ("<|end", "<|endoftext|>", "a")])
    counts = count_pretokens(
        pa.array(texts, pa.binary()), pretokenizer=name, special_tokens=special
    )
    expected = count_by_reference(
        texts, pretokenizer=name, special_tokens=[token.encode() for token in special]
    )
    same(list(counts.items()), sorted(expected.items()), f"counts of {name}")
    same(counts + counts, counts * 2, "counts that are added")


def check_train(data: bytes, dice: random.Random) -> None:
    """The merges of the words of a text."""
    words = [word[:40] for word in data[:300].split(b" ") if word][:12]
    items = {word: dice.choice((1, 1, 2, 3, 7)) for word in words} or {b"a": 1}
    counts = PretokenCounts.from_items(items)
    ties = dice.choice(("bytes-min", "bytes-max", "id-min"))
    merges = dice.randint(0, 30)
    trained = bpe.train(counts, vocab_size=256 + merges, ties=ties)
    model = ByteLevel()
    expected = train.train(
        [(model.symbols(word), count) for word, count in counts.items()],
        vocab_size=256 + merges,
        ties=ties,
        alphabet=train.alphabet_of(counts.pretokens.to_pylist(), model),
        prefix=train.prefix_of(model),
    )
    if trained.training is None:
        raise DifferenceError("a tokenizer that does not know its training")
    same(list(trained.training.merges), expected.merges, f"merges, {ties}")


def check_encode(data: bytes, dice: random.Random) -> None:
    """Ids of bytes, and the bytes of the ids."""
    text = data[:LONGEST]
    tokenizer = small_tokenizer(
        dice.choice([name for name in PRETOKENIZERS if name not in LOSSY]),
        ignore_merges=dice.random() < 0.3,
        special_tokens=("<|endoftext|>",),
    )
    rows = tokenizer.encode_arrow(pa.array([text, b"", text[::-1]], pa.binary()))
    for row, each in zip(rows, (text, b"", text[::-1]), strict=True):
        ids = row.as_py()
        same(ids, encode_by_reference(tokenizer, each), f"ids of {tokenizer.pretokenizer}")
        same(tokenizer.decode_bytes(ids), each, "bytes of the ids")


def check_decode(data: bytes, dice: random.Random) -> None:
    """Any ids: their bytes, or a refusal."""
    tokenizer = small_tokenizer("gpt2", special_tokens=("<|endoftext|>",))
    most = dice.choice((len(tokenizer.tokens), 1 << 16, 1 << 32))
    ids = [int.from_bytes(data[at : at + 4], "little") % most for at in range(0, 400, 4)]
    tokens = tokenizer.tokens
    known = [id_ for id_ in ids if id_ < len(tokens) and tokens[id_] is not None]
    same(
        tokenizer.decode_bytes(known),
        b"".join(tokens[id_] or b"" for id_ in known),
        "bytes of any ids",
    )
    if len(known) < len(ids):
        try:
            tokenizer.decode_bytes(ids)
        except BpeError:
            return
        raise DifferenceError(f"ids without tokens were decoded: {set(ids) - set(known)}")


def check_load(data: bytes, dice: random.Random) -> None:
    """A damaged tokenizer file: refused by an error of ours, or a tokenizer that works."""
    files = FORMATS[dice.choice(sorted(FORMATS))]
    changed = dice.choice(sorted(files))
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            new = mutated(content, data, dice) if name == changed else content
            Path(folder, name).write_bytes(new)
        given = {"pretokenizer": "gpt2"} if changed.endswith(".tiktoken") else {}
        try:
            tokenizer = bpe.Tokenizer.load(Path(folder, changed), **given)
            text = data[:LONGEST].decode("utf-8", "replace")
            ids = tokenizer.encode(text, allowed_special="all")
            tokenizer.decode_bytes(ids)
        except BpeError:
            return


TARGETS: dict[str, Callable[[bytes, random.Random], None]] = {
    "scan": check_scan,
    "count": check_count,
    "train": check_train,
    "encode": check_encode,
    "decode": check_decode,
    "load": check_load,
}


def fuzz(seconds: float, seed: int, input_file: Path) -> dict[str, int]:
    """Run all targets in turn for so long; returns how often each ran.

    Raises:
        DifferenceError: with the target and the seed that make it again.
    """
    seeds = [path.read_bytes() for path in sorted(SEEDS.iterdir())]
    dice = random.Random(seed)
    kept = list(seeds)
    runs = dict.fromkeys(TARGETS, 0)
    input_file.parent.mkdir(parents=True, exist_ok=True)
    for data in seeds:  # as they are, first
        for name in TARGETS:
            run(name, dice.getrandbits(32), data, input_file)
    end = time.monotonic() + seconds
    told = time.monotonic()
    while time.monotonic() < end:
        data = mutated(dice.choice(kept), dice.choice(kept), dice)[: 2 * LONGEST]
        for name in TARGETS:
            run(name, dice.getrandbits(32), data, input_file)
            runs[name] += 1
        if dice.random() < 0.1:
            kept = [*seeds, *kept[len(seeds) :][-KEPT:], data]
        if time.monotonic() - told > 30:
            told = time.monotonic()
            say(f"{end - told:4.0f} s left, {sum(runs.values()):,} runs")
    return runs


def run(name: str, seed: int, data: bytes, input_file: Path) -> None:
    """One input for one target."""
    input_file.write_bytes(f"{name} {seed}\n".encode() + data)
    try:
        TARGETS[name](data, random.Random(seed))
    except DifferenceError as error:
        raise DifferenceError(f"{name}: {error}\n  --replay {input_file}") from error


def replay(path: Path) -> None:
    """The input of a file that `run` left."""
    head, data = path.read_bytes().split(b"\n", 1)
    name, seed = head.decode().split()
    run(name, int(seed), data, path)


def say(line: str) -> None:
    """Print one line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=time.time_ns() % (1 << 32))
    parser.add_argument("--input-file", type=Path, default=Path("build/fuzz/input"))
    parser.add_argument("--replay", type=Path, help="run one input that was left")
    options = parser.parse_args()
    if options.replay:
        replay(options.replay)
        return
    say(f"seed {options.seed}, {options.seconds:.0f} s")
    runs = fuzz(options.seconds, options.seed, options.input_file)
    say("no difference: " + ", ".join(f"{name} {times:,}" for name, times in runs.items()))


if __name__ == "__main__":
    main()
