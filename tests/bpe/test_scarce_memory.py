"""Objects of the core stay whole without memory. (Sanitizers take more than the limit here.)"""

from __future__ import annotations

import subprocess
import sys

import pytest

# One pre-token that no memory is left for, and then many for which there is some.
SCARCE = """
import resource
import pyarrow as pa
from bpe.counting import PretokenCounter
from bpe.pretokenizer import Pretokenizer

counter = PretokenCounter(Pretokenizer("gpt2"))
huge, many = pa.array(["x" * 2**26]), pa.array([f"{number:020d}" * 20 for number in range(20_000)])
counter.add(pa.array(["long enough to have memory of its own".replace(" ", "")]))
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2**25, -1))
try:
    counter.add(huge)
except MemoryError:
    counter.add(many)
    print(len(counter))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the memory of a process is limited there")
def test_counter_goes_on_after_it_had_no_memory() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCARCE], capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"20001\n", b"")
