"""A small language model trained on what `bpe encode` and `bpe export` wrote, on the CPU.

``python -m examples.training mds export/mds --vocab-size 1000`` prints a loss that falls.
Each format is read as its own framework reads it; what follows is the same for all. It needs the
packages of the extra ``examples``.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np
import torch
from torch import nn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    Ids = npt.NDArray[np.int64]

_BATCH = 16


# One reader a format: the ids, row by row, as often as they are asked for.


def parquet(path: Path) -> Iterator[Ids]:
    """The directory of `bpe export --to parquet`, as a stream of Hugging Face's datasets."""
    from datasets import load_dataset

    for row in load_dataset(str(path), split="train", streaming=True):
        yield np.asarray(row["input_ids"], np.int64)


def flat(path: Path) -> Iterator[Ids]:
    """A ``.bin`` without header, mapped into memory as nanoGPT does."""
    kind = json.loads(path.with_name("manifest.json").read_bytes())["id_type"]
    ids = np.memmap(path, dtype=kind, mode="r")
    for begin in range(0, len(ids), 1 << 16):
        yield ids[begin : begin + (1 << 16)].astype(np.int64)


def megatron(path: Path) -> Iterator[Ids]:
    """The pair ``.bin`` and ``.idx`` of a path without ending."""
    from megatron.core.datasets.indexed_dataset import IndexedDataset

    dataset = IndexedDataset(str(path))
    for row in range(len(dataset)):
        yield dataset[row].astype(np.int64)


def mds(path: Path) -> Iterator[Ids]:
    """A directory of MosaicML's shards."""
    from streaming import StreamingDataset

    for sample in StreamingDataset(local=str(path), shuffle=False, batch_size=1):
        yield sample["input_ids"].astype(np.int64)


def litdata(path: Path) -> Iterator[Ids]:
    """A directory of litdata's chunks."""
    from litdata import StreamingDataset, TokensLoader

    for block in StreamingDataset(str(path), item_loader=TokensLoader(block_size=256)):
        yield np.asarray(block).astype(np.int64)


READERS: dict[str, Callable[[Path], Iterator[Ids]]] = {
    "parquet": parquet,
    "bin": flat,
    "megatron": megatron,
    "mds": mds,
    "litdata": litdata,
}


def batches(rows: Callable[[], Iterator[Ids]], length: int) -> Iterator[torch.Tensor]:
    """Batches of ``(_BATCH, length + 1)`` ids, over and over: rows joined, and cut anew.

    Raises:
        click.ClickException: the rows hold less than one batch.
    """
    need = _BATCH * (length + 1)
    held = np.empty(0, np.int64)
    for turn in itertools.count():
        made = turn
        for row in rows():
            held = np.concatenate([held, row])
            while len(held) >= need:
                yield torch.from_numpy(held[:need].reshape(_BATCH, length + 1))
                held = held[need:]
                made += 1
        if not made:
            raise click.ClickException(f"fewer than {need} ids: give a longer corpus")


class Model(nn.Module):  # type: ignore[misc]  # torch may not be installed
    """A transformer of two layers that predicts the next token."""

    def __init__(self, vocab_size: int, length: int, *, width: int = 128) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, width)
        self.places = nn.Embedding(length, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.mask = nn.Transformer.generate_square_subsequent_mask(length)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """The mean loss (nats a token) of each id after those before it."""
        inputs, targets = ids[:, :-1], ids[:, 1:]
        hidden = self.tokens(inputs) + self.places(torch.arange(inputs.shape[1]))
        hidden = self.layers(hidden, mask=self.mask, is_causal=True)
        logits = hidden @ self.tokens.weight.T / hidden.shape[-1] ** 0.5
        return nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


@click.command()
@click.argument("name", metavar="FORMAT", type=click.Choice([*READERS]))
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--vocab-size", type=int, required=True, help="Ids of the tokenizer.")
@click.option("--length", default=64, show_default=True, help="Tokens that the model sees.")
@click.option("--steps", default=60, show_default=True, help="Batches to train on.")
def main(name: str, path: Path, vocab_size: int, length: int, steps: int) -> None:
    """Train on the ids in PATH, and print the loss as it falls."""
    torch.manual_seed(0)
    torch.set_num_threads(1)  # the model is too small for more
    model = Model(vocab_size, length)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    rows = READERS[name]
    for batch in itertools.islice(batches(lambda: rows(path), length), steps):
        loss = model(batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    first, last = np.mean(losses[:10]), np.mean(losses[-10:])
    click.echo(f"loss of the first ten batches {first:.2f}, of the last ten {last:.2f}")
    if not last < first:
        raise click.ClickException("the loss does not fall")


if __name__ == "__main__":
    main()
