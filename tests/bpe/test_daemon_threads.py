"""A process that ends while threads are in the core ends as it would without them."""

from __future__ import annotations

import subprocess
import sys

ENDING = """
import sys, threading, time
import bpe

counts = bpe.count_pretokens(["the lower lowest newest"])
tokenizer = bpe.train(counts, vocab_size=260)
begun = threading.Barrier(4)

def encode():
    begun.wait()
    while True:
        tokenizer.encode_batch(["the lowest newest"] * 20)

for _ in range(3):
    threading.Thread(target=encode, daemon=True).start()
begun.wait()
time.sleep(0.1)
sys.exit(3)
"""


def test_daemon_threads_do_not_end_the_process() -> None:
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", ENDING], capture_output=True, timeout=60, check=False
        )
        assert (done.returncode, done.stderr) == (3, b"")
