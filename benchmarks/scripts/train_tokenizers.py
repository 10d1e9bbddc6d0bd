"""Parquet to tokenizer.json with Hugging Face's tokenizers: CORPUS OUTPUT VOCAB_SIZE."""

import sys

import pyarrow.parquet as pq
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

corpus, output, vocab_size = sys.argv[1:]
tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
trainer = trainers.BpeTrainer(
    vocab_size=int(vocab_size),
    initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    show_progress=False,
)
batches = pq.ParquetFile(corpus).iter_batches(batch_size=1000, columns=["text"])
tokenizer.train_from_iterator((batch["text"].to_pylist() for batch in batches), trainer)
tokenizer.save(output)
