"""The whole job on real text that every machine has: the sources of Python's standard library.

Gathers the .py files into demo/corpus (a file is a document), then runs the commands that it
prints. Some of Python's own tests are malformed on purpose (not UTF-8): they are kept in the
corpus, and end in dead-letters/ with place and reason, as bad records of any corpus would.
Run again, it finds everything up to date.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import bpe
from pipelines.encode.manifest import VERSION
from pipelines.encode.steps import LAYOUT
from pipelines.export.plan import LAYOUT as OF_EXPORT

ROOT = Path(__file__).resolve().parent.parent
DEMO = ROOT / "demo"
CORPUS = DEMO / "corpus"
OUTPUT = DEMO / "output"
TOKENIZER = OUTPUT / "tokenizer.json"
ENCODED = OUTPUT / "encoded"
EXPORT = OUTPUT / "export"
# Below the standard library, but not part of it.
NOT_OURS = {"site-packages", "dist-packages", "__pycache__"}
SENTENCE = "def __init__(self, path: str) -> None:  # reads the whole file"


def main() -> int:
    """Gather, run the job, verify it, show a sample; the exit status is the first that fails."""
    gather()
    begun = ["--resume"] if TOKENIZER.parent.exists() else []
    for command in (
        ["run", "configs/demo.yaml", *begun],
        ["verify", relative(ENCODED), "--input", relative(CORPUS)],
        ["verify", relative(EXPORT), "--input", relative(ENCODED)],
    ):
        status = run(command)
        if status:
            return status
    show_sample(bpe.Tokenizer.load(str(TOKENIZER)))
    for command in (["show", relative(TOKENIZER), " classmethod"], ["report", relative(OUTPUT)]):
        status = run(command)
        if status:
            return status
    say(f"\nLook at it in a browser: {(OUTPUT / 'report.html').as_uri()}")
    return 0


def gather() -> None:
    """Copy the standard library's .py files, unless this Python's are there already."""
    library = Path(sysconfig.get_paths()["stdlib"])
    sources = [
        path
        for path in sorted(library.rglob("*.py"))
        if not NOT_OURS.intersection(path.relative_to(library).parts)
    ]
    size = sum(path.stat().st_size for path in sources)
    origin = f"{sys.version}\n{library}\n{len(sources)} files, {size} bytes\n"
    origin += (
        f"output of layouts {LAYOUT}, {OF_EXPORT}, version {VERSION}\n"  # of another: begin anew
    )
    stamp = DEMO / "corpus.txt"
    if not stamp.is_file() or stamp.read_text(encoding="utf-8") != origin:
        shutil.rmtree(DEMO, ignore_errors=True)
        for path in sources:
            target = CORPUS / path.relative_to(library)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
        stamp.write_text(origin, encoding="utf-8")
    say(f"corpus: {len(sources):,} files, {size / 1e6:.1f} MB, the .py files of {library}")
    say("(A few of Python's own tests are not UTF-8: they will be set aside in dead-letters/.)")


def show_sample(tokenizer: bpe.Tokenizer) -> None:
    """Print what the vocabulary looks like, and a line of Python in tokens."""
    tokens = [tokenizer.token_bytes(i) for i in range(len(tokenizer))]
    learned = tokens[len(tokenizer.special_tokens) + 256 :]
    # A word of prose has a space before it; without one, many a token is the rest of a word.
    words = [token for token in learned if token[:1] == b" " and token[1:].isalpha()]
    say("first merges:   " + shown(learned[:12]))
    say("last merges:    " + shown(learned[-6:]))
    say("longest words:  " + shown(sorted(words, key=len)[-6:]))
    ids = tokenizer.encode(SENTENCE)
    say(f"a line of {len(SENTENCE)} bytes in {len(ids)} tokens:")
    say("  " + "|".join(tokenizer.decode([i]) for i in ids))


def shown(tokens: list[bytes]) -> str:
    """Tokens on one line, each as Python would write it."""
    return "  ".join(repr(token.decode("utf-8", "backslashreplace")) for token in tokens)


def run(arguments: list[str]) -> int:
    """Run ``bpe`` with ``arguments``, after printing the command."""
    say("\n$ bpe " + " ".join(f"'{one}'" if " " in one else one for one in arguments))
    return subprocess.run(
        [sys.executable, "-m", "pipelines.cli", *arguments], cwd=ROOT, check=False
    ).returncode


def relative(path: Path) -> str:
    """``path`` as typed in the root of the repository."""
    return path.relative_to(ROOT).as_posix()


def say(text: str) -> None:
    """Print one line at once, before the next command prints its own."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
