from __future__ import annotations

import itertools
import subprocess
import sys
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import pytest

import bpe
from bpe.explain import columns, visible
from pipelines.errors import PictureError
from pipelines.report.pictures import draw, lay_out
from tests.cli.process import environment

if TYPE_CHECKING:
    from pathlib import Path

TEXTS = ["low lower lowest newest widest", "the newest 😀 😀 日本 日本 na\u0308ive <&> $x$"] * 3
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def tokenizer() -> bpe.Tokenizer:
    return bpe.train(bpe.count_pretokens(TEXTS), vocab_size=290)


def words(path: Path) -> list[str]:
    """The texts of an SVG file in the order of drawing."""
    root = ET.fromstring(path.read_text("utf-8"))  # noqa: S314 - our own
    return [node.text or "" for node in root.iter("{http://www.w3.org/2000/svg}text")]


def test_a_picture_holds_every_step_and_the_ids(tokenizer: bpe.Tokenizer, tmp_path: Path) -> None:
    path = tmp_path / "lowest.svg"
    draw(tokenizer, ["lowest"], path)
    steps = tokenizer.explain("lowest")
    expected = list("lowest")
    expected += [(step.merge[0] + step.merge[1]).decode() for step in steps if step.merge]
    expected += [symbol.decode() for symbol in steps[-1].symbols]
    ids = [str(id_) for id_ in tokenizer.encode("lowest")]
    shown = words(path)
    assert sorted(shown[: len(expected)]) == sorted(expected)
    assert set(ids) <= set(shown[len(expected) :])
    trained = tokenizer.training.merges[0] if tokenizer.training else None
    assert trained is not None
    assert f"rank 0, count {trained.count}" in shown


def test_the_same_word_gives_the_same_bytes(tokenizer: bpe.Tokenizer, tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg"):
        draw(tokenizer, [" newest 😀", b"\xff\x00"], tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


@pytest.mark.parametrize(
    "text", ["", "😀", "日本語", "na\u0308ive", "<&>", "\x00\x1b[31m", "x" * 300]
)
def test_any_text_is_well_formed(tokenizer: bpe.Tokenizer, tmp_path: Path, text: str) -> None:
    draw(tokenizer, [text], tmp_path / "x.svg")
    assert words(tmp_path / "x.svg")[-1 if not text else 0]


def test_nothing_is_wider_than_the_picture_or_on_top_of_another(tokenizer: bpe.Tokenizer) -> None:
    picture = lay_out(tokenizer, ["lowest newest 😀日本 na\u0308ive <&>"], spell=visible)
    boxes = sorted(picture.boxes, key=lambda box: (box.y, box.x))
    for one, other in itertools.pairwise(boxes):
        assert one.y != other.y or one.x + one.width < other.x
    assert max(box.x + box.width for box in boxes) < picture.width
    assert max(box.y for box in boxes) < picture.height


def test_words_that_fall_apart_into_wordpieces(tmp_path: Path) -> None:
    tokenizer = bpe.Tokenizer(
        tokens=[b"[UNK]", b"low", b"##er", b"##e", b"##r"],
        merges=[],
        pretokenizer=bpe.Pretokenizer("words"),
        special_tokens={"[UNK]": 0},
        model=bpe.WordPiece(),
    )
    draw(tokenizer, ["lower", "xy"], tmp_path / "x.svg")
    shown = words(tmp_path / "x.svg")
    assert {"lower", "low", "##er", "1", "2", "[UNK]", "0"} <= set(shown)


def test_a_png_is_drawn(tokenizer: bpe.Tokenizer, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    draw(tokenizer, ["lowest 😀 日本 $x$"], tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes().startswith(PNG)
    with pytest.raises(PictureError, match=r"pixels long.*shorter words, or an \.svg"):
        draw(tokenizer, ["x" * 3000], tmp_path / "y.png")
    assert not (tmp_path / "y.png").exists()


def test_other_files_are_refused(tokenizer: bpe.Tokenizer, tmp_path: Path) -> None:
    with pytest.raises(PictureError, match=r"x\.gif: .* ends in \.svg or \.png"):
        draw(tokenizer, ["low"], tmp_path / "x.gif")


def test_without_matplotlib_the_remedy_is_named(tmp_path: Path) -> None:
    code = (
        "import sys\nsys.modules['matplotlib'] = None\nimport bpe\n"
        "from pipelines.errors import PictureError\n"
        "from pipelines.report.pictures import draw\n"
        "t = bpe.train(bpe.count_pretokens(['low']), vocab_size=257)\n"
        "draw(t, ['low'], 'x.svg')\n"
        "try:\n    draw(t, ['low'], 'x.png')\n"
        "except PictureError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment(),
        check=True,
        capture_output=True,
        text=True,
    )
    assert "pip install matplotlib, or draw an .svg" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["x.svg"]


@pytest.mark.parametrize(
    ("text", "width"),
    [("", 0), ("low", 3), ("日本", 4), ("😀", 2), ("a\u0308", 1), ("␣", 1), ("\\xff", 4)],
)
def test_columns(text: str, width: int) -> None:
    assert columns(text) == width
