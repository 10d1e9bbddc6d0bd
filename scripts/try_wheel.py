"""Try an installed beam-bpe: ``library`` without Beam, ``jobs`` with the command ``bpe``.

Run it outside of the checkout, so that the installed packages are imported.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import bpe

TEXTS = ["low lower lowest", "the newest <|end|>", "日本語 \N{SLIGHTLY SMILING FACE}"] * 5


def library() -> None:
    """Count, train, save, load, encode and decode, without Beam.

    Raises:
        SystemExit: Beam was imported, or a text did not survive.
    """
    counts = bpe.count_pretokens(TEXTS, pretokenizer="gpt2")
    trained = bpe.train(counts, vocab_size=270, special_tokens=["<|end|>"])
    with tempfile.TemporaryDirectory() as folder:
        trained.save(Path(folder, "tokenizer.json"))
        tokenizer = bpe.Tokenizer.load(folder)
    if [tokenizer.decode(ids) for ids in tokenizer.encode_batch(TEXTS)] != TEXTS:
        sys.exit("a text did not decode to itself")
    if "apache_beam" in sys.modules:
        sys.exit("bpe has imported Beam")


def jobs() -> None:
    """Train, encode and verify with the installed command.

    Raises:
        subprocess.CalledProcessError: a command failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        lines = [json.dumps({"id": str(i), "text": text}) for i, text in enumerate(TEXTS)]
        Path(folder, "corpus.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
        command = str(Path(sys.executable).with_name("bpe"))
        corpus = ("--input", "corpus.jsonl")
        for arguments in (
            ("train", *corpus, "--output", "model", "--vocab-size", "270"),
            ("encode", *corpus, "--tokenizer", "model/tokenizer.json", "--output", "ids"),
            ("verify", "ids", *corpus),
        ):
            subprocess.run([command, *arguments], cwd=folder, check=True)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        {"library": library, "jobs": jobs}[name]()
        print(f"{name}: works")
