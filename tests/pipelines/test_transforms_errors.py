"""Bad elements have the output that Beam's own transforms give them."""

from __future__ import annotations

import copy
import inspect
from typing import TYPE_CHECKING, Any

import apache_beam as beam
import pytest
from apache_beam.testing.util import equal_to
from apache_beam.transforms.error_handling import ErrorHandler
from apache_beam.transforms.window import FixedWindows, GlobalWindows

from pipelines import CountPretokens, EncodeDocuments, ReadDocuments
from pipelines.errors import ConfigError, RecordError
from tests.pipelines.beam_runs import assert_that, at_times, pipeline, reason_of
from tests.shared_data import long_but

if TYPE_CHECKING:
    from pathlib import Path

    import bpe

TEXTS = ["ab", "x", {"text": 7}, {"text": "cab"}]  # one is bad before its batch, one in it


def text_of(element: Any) -> str:
    """The result of Beam's own ``Map`` on the same elements."""
    text = element if isinstance(element, str) else element["text"]
    if not isinstance(text, str) or "x" in text:
        raise RecordError("bad")
    return text


def test_bad_elements_are_as_those_of_a_map(letters: bpe.Tokenizer) -> None:
    with pipeline() as p:
        elements = p | beam.Create(TEXTS)
        theirs = elements | beam.Map(text_of).with_exception_handling()
        ours = elements | EncodeDocuments(tokenizer=letters).with_exception_handling()
        expected = theirs.bad | "Theirs" >> beam.Map(_form)
        assert_that(
            ours.bad | "Ours" >> beam.Map(_form), equal_to([("x", 3), ({"text": 7}, 3)]), "ours"
        )
        assert_that(expected, equal_to([("x", 3), ({"text": 7}, 3)]), "theirs")


def _form(bad: Any) -> tuple[Any, int]:
    element, (kind, shown, trace) = bad
    assert issubclass(kind, RecordError)
    assert shown.startswith("RecordError(")
    assert all(isinstance(line, str) for line in trace)
    return element, len(bad[1])


def test_outputs_have_tags_and_unpack(letters: bpe.Tokenizer) -> None:
    tags: tuple[str, ...]
    with pipeline() as p:
        elements = p | beam.Create(TEXTS)
        for transform, good, tags in (
            (CountPretokens(), [(b"ab", 1), (b"cab", 1), (b"x", 1)], ()),
            (EncodeDocuments(tokenizer=letters), ["ab", "cab"], ("fine", "my errors")),
        ):
            name = type(transform).__name__
            main, dead = tags or ("good", "bad")
            outputs = elements | transform.with_exception_handling(*tags)
            first, second = outputs
            assert (outputs[main], outputs[dead]) == (first, second)
            assert getattr(outputs, main) is first
            values = first | f"{name} good" >> beam.Map(_text)
            assert_that(values, equal_to(good), f"{name} is good")
            bad = second | f"{name} bad" >> beam.Map(lambda one: one[0])
            expected: list[Any] = [{"text": 7}, *(["x"] if name == "EncodeDocuments" else [])]
            assert_that(bad, equal_to(expected), f"{name} is bad")
        with pytest.raises(AttributeError):
            _ = (elements | "Again" >> CountPretokens().with_exception_handling()).other


def _text(made: Any) -> Any:
    return made["text"] if isinstance(made, dict) else getattr(made, "text", made)


def test_an_error_handler_takes_bad_elements(letters: bpe.Tokenizer, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "ab"}\nno json\n')
    with pipeline() as p:
        with ErrorHandler(beam.Map(reason_of)) as handler:
            documents = p | ReadDocuments([str(tmp_path)]).with_error_handler(handler)
            texts = documents | beam.Map(lambda document: document.text)
            elements = p | beam.Create(TEXTS)
            encode = EncodeDocuments(tokenizer=letters).with_exception_handling(
                error_handler=handler
            )
            encoded = elements | encode
            counts = elements | CountPretokens().with_error_handler(handler)
        assert_that(texts, equal_to(["ab"]), "documents")
        assert_that(encoded | beam.Map(_text), equal_to(["ab", "cab"]), "encoded")
        assert_that(counts, equal_to([(b"ab", 1), (b"cab", 1), (b"x", 1)]), "counts")
        reasons = [
            *["field 'text' is int 7, not text"] * 2,
            "the character 'x' (U+0078) has no token, and the tokenizer has no unknown token",
        ]
        found = handler.output() | beam.Filter(lambda one: "a.jsonl" not in one)
        assert_that(found, equal_to(reasons), "handled")
    encode = EncodeDocuments(tokenizer=letters)
    assert encode.with_error_handler(None) is encode


@pytest.mark.parametrize("name", long_but(["CountPretokens", "EncodeDocuments"], "EncodeDocuments"))
def test_more_than_the_threshold_fails_the_pipeline(name: str, letters: bpe.Tokenizer) -> None:
    encode = EncodeDocuments(tokenizer=letters)
    transform = encode if name == "EncodeDocuments" else CountPretokens()
    bad = 2 if name == "EncodeDocuments" else 1
    with pipeline() as p:
        _ = p | beam.Create(TEXTS) | transform.with_exception_handling(threshold=bad / 4)
    p = pipeline()
    _ = p | beam.Create(TEXTS) | transform.with_exception_handling(threshold=bad / 4 - 0.01)
    with pytest.raises(Exception, match=f"exceeded threshold: {bad} / 4"):
        p.run().wait_until_finish()


def test_the_threshold_has_windows_of_its_own(letters: bpe.Tokenizer) -> None:
    encode = EncodeDocuments(tokenizer=letters)
    for windows, fails in ((None, True), (GlobalWindows(), False)):
        p = pipeline()
        texts = p | at_times(("ab", 1.0), ("x", 12.0)) | beam.WindowInto(FixedWindows(10))
        _ = texts | encode.with_exception_handling(threshold=0.5, threshold_windowing=windows)
        if fails:
            with pytest.raises(Exception, match="exceeded threshold: 1 / 1"):
                p.run().wait_until_finish()
        else:
            p.run().wait_until_finish()


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


def test_other_errors_are_not_caught(letters: bpe.Tokenizer) -> None:
    encode = EncodeDocuments(tokenizer=letters).with_exception_handling(exc_class=KeyError)
    p = pipeline()
    _ = p | beam.Create(["x"]) | encode
    with pytest.raises(Exception, match="has no token"):
        p.run().wait_until_finish()


@pytest.mark.parametrize("name", ["partial", "use_subprocess", "timeout", "on_failure_callback"])
def test_what_handles_single_calls_is_refused(name: str) -> None:
    handle: Any = CountPretokens().with_exception_handling
    with pytest.raises(ConfigError, match=f"{name} is not supported.*in batches: leave it out"):
        handle(**{name: 1})
    handle(**{name: None})


@pytest.mark.parametrize("value", [3, None])
def test_an_unknown_argument_is_refused(value: int | None) -> None:
    handle: Any = EncodeDocuments(tokenizer="tokenizer.json").with_exception_handling
    with pytest.raises(ConfigError, match="has no argument max_failures: use main_tag"):
        handle(max_failures=value)


def test_beams_arguments_are_accepted_at_their_defaults() -> None:
    parameters = inspect.signature(beam.ParDo.with_exception_handling).parameters
    defaults = {name: parameter.default for name, parameter in parameters.items() if name != "self"}
    CountPretokens().with_exception_handling(**defaults)


def test_outputs_can_be_copied(letters: bpe.Tokenizer) -> None:
    encode = EncodeDocuments(tokenizer=letters).with_exception_handling()
    outputs = beam.Pipeline() | beam.Create(TEXTS) | encode
    assert copy.copy(outputs).bad is outputs.bad
