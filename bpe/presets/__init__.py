"""Tokenizers that published descriptions ask for, as settings of the one engine.

Each has a file of settings (``configs/presets/NAME.yaml``, also ``--preset NAME`` of the command
line), and a class with the methods that its description names. ``docs/systems.md`` tells how they
differ, and where a description's printed output is not what its own algorithm gives.
"""

from bpe.presets.byte_level import ByteLevelTokenizer
from bpe.presets.notebook import NotebookTokenizer
from bpe.presets.preset import Preset, load, model_of, names, path
from bpe.presets.special import InterviewTokenizer, WordTutorialTokenizer
from bpe.presets.trained import LearnedMerge, PresetTokenizer
from bpe.presets.words import WordsTokenizer

__all__ = [
    "ByteLevelTokenizer",
    "InterviewTokenizer",
    "LearnedMerge",
    "NotebookTokenizer",
    "Preset",
    "PresetTokenizer",
    "WordTutorialTokenizer",
    "WordsTokenizer",
    "load",
    "model_of",
    "names",
    "path",
]
