"""Parquet to tokenizer.json with gigatoken: CORPUS OUTPUT VOCAB_SIZE [--own-reader]."""

import sys

import gigatoken
import pyarrow.parquet as pq
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

# GPT-2's spelling of bytes, in which tokenizer.json holds tokens.
PRINTABLE = [*range(33, 127), *range(161, 173), *range(174, 256)]
OTHERS = [byte for byte in range(256) if byte not in PRINTABLE]
SPELLING = {byte: chr(byte) for byte in PRINTABLE} | {
    byte: chr(256 + i) for i, byte in enumerate(OTHERS)
}


def spelled(token: bytes) -> str:
    """A token as tokenizer.json has it."""
    return "".join(SPELLING[byte] for byte in token)


corpus, output, vocab_size = sys.argv[1:4]
if sys.argv[4:] == ["--own-reader"]:
    source = gigatoken.ParquetFileSource([corpus])
    vocab, merges = gigatoken.train_bpe(source, int(vocab_size), [])
else:
    separator = b"<|endoftext|>"
    texts = pq.read_table(corpus, columns=["text"])["text"].to_pylist()
    data = separator.join(text.encode() for text in texts)
    vocab, merges = gigatoken.train_bpe(data, int(vocab_size), [], separator=separator)
tokenizer = Tokenizer(
    models.BPE(
        vocab={spelled(bytes(token)): id_ for id_, token in vocab.items()},
        merges=[(spelled(bytes(left)), spelled(bytes(right))) for left, right in merges],
    )
)
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
tokenizer.save(output)
