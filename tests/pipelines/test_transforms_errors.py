"""Bad elements have the output that Beam's own transforms give them."""

from __future__ import annotations

import copy
import inspect
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import apache_beam as beam
import pyarrow as pa
import pytest
from apache_beam.testing.util import equal_to
from apache_beam.transforms.error_handling import ErrorHandler
from apache_beam.transforms.window import FixedWindows, GlobalWindows

from pipelines import CountPretokens, EncodeDocuments, ReadDocuments
from pipelines.errors import ConfigError, RecordError
from tests.pipelines.beam_runs import (
    assert_that,
    at_times,
    both_modes,
    pipeline,
    reason_of,
)
from tests.shared_data import long_but

if TYPE_CHECKING:
    from pathlib import Path

    import bpe

TEXTS = ["ab", "x", {"text": 7}, {"text": "cab"}]  # one is bad before its batch, one in it
NO_TOKEN = "the character 'x' (U+0078) has no token, and the tokenizer has no unknown token"
# Beam itself has no str or dict with a lone surrogate cross from one step to another.
BAD = {
    "the element is int 7": 7,
    "the element has no field 'text' (its fields": {"body": "ab"},
    "field 'text' has a lone surrogate at character 0": beam.Row(text="\udc80"),
    "the table has 0 columns 'text' (its columns": pa.table({"body": ["ab"]}),
}
NAMES = ["CountPretokens", "EncodeDocuments"]


@pytest.fixture
def transform(name: str, letters: bpe.Tokenizer) -> Any:
    """The transform of that name; one that encodes has no token for x."""
    return EncodeDocuments(tokenizer=letters) if name == "EncodeDocuments" else CountPretokens()


def plain(made: Any) -> Any:
    """The text of what is encoded, which for a table are its ids; a count as it is."""
    if isinstance(made, pa.Table):
        return made["id"].to_pylist()
    return made["text"] if isinstance(made, dict) else getattr(made, "text", made)


@both_modes
@pytest.mark.parametrize(
    ("name", "tags", "good", "bad_rows"),
    [
        ("CountPretokens", (), [(b"ab", 2), (b"abx", 2), (b"cab", 1)], [[3]]),
        ("EncodeDocuments", ("fine", "my errors"), ["ab", "cab", [1]], ["abx", [2], [3]]),
    ],
)
def test_bad_elements_have_an_output(
    mode: str, transform: Any, tags: tuple[str, ...], good: list[Any], bad_rows: list[Any]
) -> None:
    """Of a table, its bad rows; a row has its number in the table, not in its chunk."""
    table = pa.table({"text": pa.chunked_array([["ab"], ["abx", None]]), "id": [1, 2, 3]})
    elements = [*BAD.values(), "ab", "abx", {"text": "cab"}, table]
    with pipeline(mode) as p:
        numbers = p | beam.Create(range(len(elements)), reshuffle=False)
        handled = transform.with_exception_handling(*tags)
        made, bad = numbers | beam.Map(elements.__getitem__) | handled
        assert_that(made | beam.Map(plain), equal_to(good), "good")
        reasons = [*BAD, "column 'text' is null", *[NO_TOKEN] * (len(bad_rows) - 1)]
        assert_that(bad | beam.Reshuffle() | beam.Map(reason_of), equal_to(reasons), "reasons")
        rows = bad | beam.Filter(lambda one: reason_of(one) not in BAD)
        assert_that(rows | "Rows" >> beam.Map(lambda one: plain(one[0])), equal_to(bad_rows))


@pytest.mark.parametrize(
    ("name", "element", "reason"),
    [
        ("CountPretokens", {"body": "ab"}, "the element has no field 'text'"),
        ("EncodeDocuments", {"body": "ab"}, "the element has no field 'text'"),
        ("EncodeDocuments", "abx", r"has no token.* — element 'abx'"),
    ],
)
def test_a_bad_element_ends_the_pipeline(transform: Any, element: Any, reason: str) -> None:
    message = f"{reason}.* collect bad elements with with_exception_handling"
    with pytest.raises(Exception, match=message), pipeline() as p:
        _ = p | beam.Create([element]) | transform


@pytest.mark.parametrize("tags", [(), ("fine", "my errors")])
def test_outputs_have_tags_and_unpack(tags: tuple[str, ...]) -> None:
    main, dead = tags or ("good", "bad")
    handled = CountPretokens().with_exception_handling(*tags)
    outputs = pipeline() | beam.Create(TEXTS) | handled
    first, second = outputs
    assert (outputs[main], outputs[dead]) == (first, second)
    assert getattr(outputs, main) is first
    assert copy.copy(outputs)[dead] is second
    with pytest.raises(AttributeError):
        _ = outputs.other


def refuse(element: Any) -> Any:
    raise RecordError(f"refused: {element}")


def test_an_error_handler_takes_bad_elements(letters: bpe.Tokenizer, tmp_path: Path) -> None:
    """As it takes those of Beam's own ``Map``."""
    (tmp_path / "a.jsonl").write_text('{"text": "ab"}\nno json\n')
    encode = EncodeDocuments(tokenizer=letters)
    assert encode.with_error_handler(None) is encode
    with pipeline() as p:
        with ErrorHandler(beam.Map(reason_of)) as handler:
            documents = p | ReadDocuments([str(tmp_path)]).with_error_handler(handler)
            texts = documents | beam.Map(lambda document: document.text)
            elements = p | beam.Create(TEXTS)
            encoded = elements | encode.with_exception_handling(error_handler=handler)
            counts = elements | CountPretokens().with_error_handler(handler)
            _ = p | "Theirs" >> beam.Create([1]) | beam.Map(refuse).with_error_handler(handler)
        assert_that(texts, equal_to(["ab"]), "documents")
        assert_that(encoded | beam.Map(plain), equal_to(["ab", "cab"]), "encoded")
        assert_that(counts, equal_to([(b"ab", 1), (b"cab", 1), (b"x", 1)]), "counts")
        found = handler.output() | beam.Filter(lambda one: "a.jsonl" not in one)
        reasons = [*["field 'text' is int 7, not text"] * 2, NO_TOKEN, "refused"]
        assert_that(found, equal_to(reasons), "handled")


@pytest.mark.parametrize("name", long_but(NAMES, "EncodeDocuments"))
def test_more_than_the_threshold_fails_the_pipeline(name: str, transform: Any) -> None:
    bad = 2 if name == "EncodeDocuments" else 1
    with pipeline() as p:
        _ = p | beam.Create(TEXTS) | transform.with_exception_handling(threshold=bad / 4)
    fewer = transform.with_exception_handling(threshold=bad / 4 - 0.01)
    with pytest.raises(Exception, match=f"exceeded threshold: {bad} / 4"), pipeline() as p:
        _ = p | beam.Create(TEXTS) | fewer


@pytest.mark.parametrize("name", ["EncodeDocuments"])
def test_the_threshold_has_windows_of_its_own(transform: Any) -> None:
    fails: Any = pytest.raises(Exception, match="exceeded threshold: 1 / 1")
    for windows, ends in ((None, fails), (GlobalWindows(), nullcontext())):
        with ends, pipeline() as p:
            texts = p | at_times(("ab", 1.0), ("x", 12.0)) | beam.WindowInto(FixedWindows(10))
            limits = {"threshold": 0.5, "threshold_windowing": windows}
            _ = texts | transform.with_exception_handling(**limits)


def test_steps_have_the_same_names_with_and_without(letters: bpe.Tokenizer, tmp_path: Path) -> None:
    def steps(*, handled: bool) -> list[str]:
        p = pipeline()
        texts = p | beam.Create(TEXTS)
        for source, transform in (
            (p, ReadDocuments([str(tmp_path)])),
            (texts, CountPretokens()),
            (texts, EncodeDocuments(tokenizer=letters)),
        ):
            _ = source | (transform.with_exception_handling() if handled else transform)
        transforms = p.to_runner_api().components.transforms.values()
        return sorted(one.unique_name for one in transforms if not one.subtransforms)

    assert steps(handled=True) == steps(handled=False)


@pytest.mark.parametrize("name", ["EncodeDocuments"])
def test_other_errors_are_not_caught(transform: Any) -> None:
    with pytest.raises(Exception, match="has no token"), pipeline() as p:
        _ = p | beam.Create(["x"]) | transform.with_exception_handling(exc_class=KeyError)


def test_arguments_are_those_of_beam_but_for_what_handles_single_calls() -> None:
    handle: Any = CountPretokens().with_exception_handling
    parameters = inspect.signature(beam.ParDo.with_exception_handling).parameters
    handle(**{name: one.default for name, one in parameters.items() if name != "self"})
    with pytest.raises(ConfigError, match=r"partial, timeout is not supported.*in batches: leave"):
        handle(partial=True, timeout=1)
    with pytest.raises(ConfigError, match="max_failures is not supported"):
        handle(max_failures=1)
