"""Counts of windows that fire several times are those of Beam's own count, pane by pane."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import TYPE_CHECKING, Any

import apache_beam as beam
import pytest
from apache_beam.testing.test_stream import TestStream
from apache_beam.testing.util import BeamAssertException, equal_to
from apache_beam.transforms.trigger import (
    AccumulationMode,
    AfterAll,
    AfterAny,
    AfterCount,
    AfterEach,
    AfterProcessingTime,
    AfterWatermark,
    Always,
    DefaultTrigger,
    Repeatedly,
)
from apache_beam.transforms.window import (
    FixedWindows,
    GlobalWindows,
    Sessions,
    SlidingWindows,
    TimestampCombiner,
    TimestampedValue,
)

import bpe
from pipelines import CountPretokens, EncodeDocuments, TrainTokenizer
from pipelines.errors import ConfigError
from tests.pipelines.beam_runs import assert_that, at_times, pipeline, streaming_pipeline, windowed
from tests.shared_data import LONG, long_but

if TYPE_CHECKING:
    from collections.abc import Iterable

TRIGGERS = {
    "default": DefaultTrigger(),
    "watermark": AfterWatermark(),
    "each early and late": AfterWatermark(early=AfterCount(1), late=AfterCount(1)),
    "two early, each late": AfterWatermark(early=AfterCount(2), late=AfterCount(1)),
    "early by time": AfterWatermark(early=AfterProcessingTime(5)),
    "late": AfterWatermark(late=AfterCount(1)),
    "each": Repeatedly(AfterCount(1)),
    "always": Always(),
    "two early and late": AfterWatermark(early=AfterCount(2), late=AfterCount(2)),
    "three": Repeatedly(AfterCount(3)),
    "by time": Repeatedly(AfterProcessingTime(5)),
    "any": Repeatedly(AfterAny(AfterCount(3), AfterProcessingTime(5))),
    "all": Repeatedly(AfterAll(AfterCount(2), AfterProcessingTime(5))),
    "in turn": AfterEach(AfterCount(2), Repeatedly(AfterCount(1))),
}
# The runner in this process stalls where elements wait for a trigger that never comes: these run on
# Prism, in tests/cluster.
STALLING = ("two early and late", "three", "by time", "any", "all", "in turn")
MODES = {"discarding": AccumulationMode.DISCARDING, "accumulating": AccumulationMode.ACCUMULATING}
# How a window fires again, and seconds that an element may be late.
WAYS = [*product(MODES, (0, 30))]
COMBINERS = [
    TimestampCombiner.OUTPUT_AT_EOW,
    TimestampCombiner.OUTPUT_AT_EARLIEST,
    TimestampCombiner.OUTPUT_AT_LATEST,
]


def stream_of(*events: Any) -> TestStream:
    """Lists of (text, second) that come together; seconds of the watermark; "wait" of the clock."""
    made = TestStream()
    for event in events:
        if isinstance(event, list):
            made = made.add_elements([TimestampedValue(text, time) for text, time in event])
        elif event == "wait":
            made = made.advance_processing_time(10)
        else:
            made = made.advance_watermark_to(event)
    return made.advance_watermark_to_infinity()


FIXED = FixedWindows(10)

# Texts in which no word comes twice: Beam's count of words sees as many elements as ours of texts.
EVENTS: list[Any] = [
    [("low new", 1.0), ("low", 2.0), ("low fox", 12.0)],
    [("new low", 3.0)],
    "wait",
    [("fox", 4.0), ("dog", 13.0)],
    11,
    [("low late", 5.0), ("fox", 14.0)],  # late for the first window, not beyond what is allowed
    "wait",
    [("low new late", 6.0)],
    40,
    [("lost", 7.0), ("low", 41.0)],  # too late
]


def firing(trigger: Any, mode: Any, windows: Any = FIXED, **settings: Any) -> beam.WindowInto:
    """Windows that fire by a trigger."""
    return beam.WindowInto(windows, trigger=trigger, accumulation_mode=mode, **settings)


def panes(counts: Any, name: str, label: str) -> Any:
    """(name, pre-token, count, window, time, pane) of each element that counts anything."""

    def pane(
        counted: Any,
        window: Any = beam.DoFn.WindowParam,
        time: Any = beam.DoFn.TimestampParam,
        info: Any = beam.DoFn.PaneInfoParam,
    ) -> Any:
        word, count = counted
        word = word if isinstance(word, bytes) else word.encode()
        fired = (info.timing, info.index, info.nonspeculative_index)
        return (name, word, count, float(window.start), float(time), fired)

    counted = counts | f"Not empty {name} {label}" >> beam.Filter(lambda one: one[1] > 0)
    return counted | f"Panes {name} {label}" >> beam.Map(pane)


def same_panes(found: list[Any]) -> None:
    """A matcher: what is counted as ours is what is counted as Beam's."""
    ours, theirs = (sorted(one[1:] for one in found if one[0] == name) for name in ("ours", "beam"))
    if ours != theirs or not ours:
        raise BeamAssertException(f"ours: {ours}\nBeam's: {theirs}")


def compare(texts: Any, name: str) -> None:
    """Check counts of texts against Beam's count of their words."""
    counting = CountPretokens(pretokenizer="words")
    ours = panes(texts | f"Ours {name}" >> counting, "ours", name)
    words = texts | f"Words {name}" >> beam.FlatMap(str.split)
    count = f"Theirs {name}" >> beam.combiners.Count.PerElement()
    theirs = panes(words | count, "beam", name)
    both = (ours, theirs) | f"Both {name}" >> beam.Flatten()
    assert_that(both, same_panes, f"{name} is the same")


def compare_panes(texts: Any, name: str, ways: Iterable[tuple[str, int]] = WAYS) -> None:
    """Check the counts of a stream whose windows fire by a trigger."""
    for mode, lateness in ways:
        windows = firing(TRIGGERS[name], MODES[mode], allowed_lateness=lateness)
        label = f"{name}, {mode}, {lateness} s"
        compare(texts | f"Windows {label}" >> windows, label)


@pytest.mark.parametrize(
    "trigger",
    long_but(
        [name for name in TRIGGERS if name not in STALLING],
        *("default", "two early, each late", "early by time"),
    ),
)
def test_panes_are_those_of_beams_count(trigger: str) -> None:
    with streaming_pipeline() as p:
        compare_panes(p | stream_of(*EVENTS), trigger, WAYS if LONG else WAYS[-1:])


@pytest.mark.parametrize("combiner", COMBINERS)
def test_any_windows_and_times_are_those_of_beams_count(combiner: Any) -> None:
    mode, late = AccumulationMode.ACCUMULATING, {"allowed_lateness": 30}
    with streaming_pipeline() as p:
        texts = p | stream_of(*EVENTS)
        kinds = (SlidingWindows(10, 5), Sessions(3), GlobalWindows())
        for windows in kinds if LONG else [kinds[COMBINERS.index(combiner)]]:
            for name in ("default", "two early, each late"):
                # By default Beam groups no unbounded PCollection in the global window.
                if isinstance(windows, GlobalWindows) and name == "default":
                    continue
                # The short form has one trigger for each kind of windows.
                if isinstance(windows, SlidingWindows) != (name == "default") and not LONG:
                    continue
                into = firing(TRIGGERS[name], mode, windows, timestamp_combiner=combiner, **late)
                label = f"{name} {type(windows).__name__}"
                compare(texts | f"Windows {label}" >> into, label)


@pytest.mark.parametrize("mode", long_but(MODES, "accumulating"))
def test_a_trigger_that_counts_sees_documents(mode: str) -> None:
    """However often a pre-token is in one, and however many come in one bundle."""
    texts = ["low low low new", "low", "low low", "new", "low"]  # an even number of each
    with streaming_pipeline() as p:
        into = firing(Repeatedly(AfterCount(2)), MODES[mode])
        docs = p | stream_of([(text, 1.0) for text in texts]) | into
        ours = panes(docs | CountPretokens(pretokenizer="words"), "ours", "")
        counted = docs | "Of a document" >> beam.FlatMap(lambda text: Counter(text.split()).items())
        theirs = panes(counted | beam.CombinePerKey(sum), "beam", "")
        assert_that((ours, theirs) | beam.Flatten(), same_panes)


def test_a_bounded_pcollection_has_the_counts_of_beam() -> None:
    """Early firings of a runner that knows all elements at once: some of its panes are empty."""
    with pipeline() as p:
        texts = p | at_times(("low low", 1.0), ("low", 2.0)) | EARLY
        counts = texts | CountPretokens(pretokenizer="words")
        assert_that(counts, equal_to([(b"low", 3)]))


def test_encoding_drops_nothing_that_is_late() -> None:
    """A step that groups drops what is too late; encoding groups nothing."""
    tokenizer = bpe.train(bpe.count_pretokens(["low new"]), max_merges=3)
    with streaming_pipeline() as p:
        texts = p | stream_of(*EVENTS) | beam.WindowInto(FIXED)
        encoded = texts | EncodeDocuments(tokenizer=tokenizer)
        found = windowed(encoded | beam.Map(lambda row: (row.text, row.input_ids)))
        documents = [one for event in EVENTS if isinstance(event, list) for one in event]
        expected = [
            ((text, tokenizer.encode(text)), time // 10 * 10, time) for text, time in documents
        ]
        assert_that(found, equal_to(expected))


EARLY = firing(AfterWatermark(early=AfterCount(1)), AccumulationMode.DISCARDING)
SEVERAL = ["each early and late", "late", "each", "three", "by time", "in turn", "always"]


@pytest.mark.parametrize("trigger", SEVERAL)
def test_a_tokenizer_that_fires_several_times_is_refused(trigger: str) -> None:
    p = streaming_pipeline()
    into = firing(TRIGGERS[trigger], MODES["discarding"], allowed_lateness=5)
    texts = p | stream_of(*EVENTS) | into
    counts = texts | CountPretokens()
    with pytest.raises(
        ConfigError, match=r"TrainTokenizer trains one.*may fire several times: put"
    ):
        _ = counts | TrainTokenizer(vocab_size=300)
    held = texts | beam.Map(lambda _: bpe.Tokenizer)
    for tokenizer in (held, beam.pvalue.AsSingleton(held), beam.pvalue.AsList(held)):
        with pytest.raises(ConfigError, match=r"side input holds one .*a path, .*default trigger"):
            EncodeDocuments(tokenizer=tokenizer)


@pytest.mark.parametrize(("trigger", "lateness"), [("default", 0), ("late", 0), ("watermark", 9)])
def test_a_window_that_fires_once_has_a_tokenizer(trigger: str, lateness: int) -> None:
    p = streaming_pipeline()
    into = firing(TRIGGERS[trigger], MODES["discarding"], allowed_lateness=lateness)
    texts = p | stream_of(*EVENTS) | into
    trained = texts | CountPretokens() | TrainTokenizer(vocab_size=300)
    EncodeDocuments(tokenizer=trained)


def test_the_remedy_adds_up_the_panes() -> None:
    """Counts that fire early, discarded then, are put into windows that fire once."""
    with streaming_pipeline() as p:
        into = firing(TRIGGERS["each early and late"], MODES["discarding"])
        texts = p | stream_of(*EVENTS) | into
        counts = texts | CountPretokens(pretokenizer="words") | "Once" >> beam.WindowInto(FIXED)
        trained = counts | TrainTokenizer(max_merges=3, pretokenizer="words")
        merges = trained | beam.Map(lambda tokenizer: tokenizer.training.merges)
        in_first = [t for e in EVENTS[:5] if isinstance(e, list) for t, time in e if time < 10]
        expected = bpe.train(bpe.count_pretokens(in_first, pretokenizer="words"), max_merges=3)
        assert expected.training is not None
        first = windowed(merges) | beam.Filter(lambda one: one[1] == 0)
        assert_that(first | beam.Map(lambda one: one[0]), equal_to([expected.training.merges]))
