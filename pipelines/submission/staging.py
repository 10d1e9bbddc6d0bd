"""Seeing to it that workers of another environment have this package."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from apache_beam.options.pipeline_options import DebugOptions, SetupOptions

from pipelines.errors import ConfigError
from pipelines.submission import package

if TYPE_CHECKING:
    from collections.abc import Callable

    from apache_beam.options.pipeline_options import PipelineOptions

    from pipelines.settings import Staging
    from pipelines.submission.workers import Workers


def stage(
    made: PipelineOptions,
    workers: Workers,
    *,
    how: Staging = "auto",
    file: str = "",
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Add to Beam's options what brings this package to the workers, where they need it.

    Args:
        made: Beam's options; changed.
        workers: where the workers are.
        how: ``wheel`` or ``sdist``, ``none`` where they have it; ``auto``: a wheel where they are
            in an environment of their own and nothing in the options says that they have it.
        file: a wheel or sdist that is there already, in place of one that is built.
        say: told what is staged.

    Raises:
        ConfigError: ``file`` is none that Beam takes.
        JobError: the package cannot be built.
    """
    if workers.kind == "local" or how == "none":
        return
    setup = made.view_as(SetupOptions)
    if file:
        _add(setup, made, _checked(file))
        say(f"staging {os.path.basename(file)} for the {workers}")  # noqa: PTH119 - or a URL
        return
    if how == "auto" and not needs_package(made, workers):
        return
    if how == "sdist":
        setup.setup_file = str(package.sources(say))
        _isolate(made)
        say(f"staging the sources of beam-bpe for the {workers}, which compile them")
        return
    wheel = package.wheel(say)
    _add(setup, made, str(wheel))
    said = f"staging {wheel.name} for the {workers}: fits {package.fits()}"
    if workers.kind == "external":
        said += (
            "; a worker pool installs it if it starts workers with Beam's boot program, as its "
            "images do: another must have beam-bpe already"
        )
    say(said)


def needs_package(made: PipelineOptions, workers: Workers) -> bool:
    """Whether workers lack this package, as far as the options tell."""
    setup = made.view_as(SetupOptions)
    brought = (
        setup.setup_file,
        any(map(package.is_ours, setup.extra_packages or ())),
        setup.requirements_file and _requires_us(setup.requirements_file),
        workers.has_own_image,
    )
    return not workers.here and not any(brought)


def _requires_us(path: str) -> bool:
    try:
        lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False  # Beam says what is wrong with it
    return any(line.strip().lower().replace("_", "-").startswith("beam-bpe") for line in lines)


def _checked(file: str) -> str:
    if not package.is_ours(file) or not file.endswith((".whl", ".tar.gz", ".zip")):
        raise ConfigError(
            f"`package` {file}: name a wheel or an sdist of beam-bpe: beam_bpe-VERSION-….whl or "
            "beam_bpe-VERSION.tar.gz"
        )
    if "://" not in file and not Path(file).is_file():
        raise ConfigError(f"`package` {file}: there is no such file")
    return file


def _add(setup: SetupOptions, made: PipelineOptions, file: str) -> None:
    setup.extra_packages = [*(setup.extra_packages or ()), file]
    if not file.endswith(".whl"):
        _isolate(made)


def _isolate(made: PipelineOptions) -> None:
    """Let workers fetch what the sources are built with, which Beam's boot program leaves out."""
    made.view_as(DebugOptions).add_experiment("pip_use_build_isolation")
