"""Builds the C++ core, and is what Beam's ``--setup_file`` ships to workers.

Everything else about the package stands in pyproject.toml.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pybind11.setup_helpers import ParallelCompile, Pybind11Extension, build_ext
from setuptools import setup
from setuptools.errors import CCompilerError, ExecError, PlatformError

NATIVE = Path("bpe/native")
SOURCES = sorted(str(path) for path in NATIVE.rglob("*.cpp"))

# Portable by default: no -march=native, so a wheel runs on every worker of its architecture.
# A switch over an enumeration has a case for each value.
WARN = ["-Wall", "-Wextra", "-Werror=switch"]
COMPILE = ["-O3", "-g0", "-fno-math-errno", *WARN, "-fvisibility=hidden"]
LINK: list[str] = []

if os.environ.get("BPE_SANITIZE"):  # `make sanitize`
    SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
    COVERAGE = ["-fsanitize-coverage=trace-pc"]
    COMPILE = ["-O1", "-g1", "-fno-omit-frame-pointer", *WARN, *SANITIZE, *COVERAGE]
    LINK = SANITIZE
    # As one: pybind11 costs 28 s a file under sanitizers, and no function needs to be fast here.
    COMPILE += [flag for source in SOURCES[1:] for flag in ("-include", source)]
    SOURCES = SOURCES[:1]


class BuildCore(build_ext):  # type: ignore[misc]  # pybind11 ships no types for it
    """``build_ext`` that says in one sentence what is missing when it cannot compile."""

    def build_extensions(self) -> None:
        """Compile ``bpe._native``; exit with the remedy where there is no C++20 compiler."""
        try:
            if LINK:  # what counts the branches must not be counted itself
                objects = self.compiler.compile(
                    ["tests/bpe/sanitized.cpp"],
                    output_dir=self.build_temp,
                    extra_preargs=["-O2", "-fvisibility=hidden"],
                )
                self.extensions[0].extra_objects = objects
            super().build_extensions()
        except (CCompilerError, ExecError, PlatformError) as error:
            sys.exit(
                "beam-bpe: the C++ core did not compile: install a C++20 compiler "
                "(g++ 11 or clang 14, or newer; Debian and Ubuntu: apt-get install g++) "
                f"and the headers of this Python (python3-dev), then install again. ({error})"
            )


ParallelCompile("BPE_BUILD_JOBS", default=2).install()

setup(
    ext_modules=[
        Pybind11Extension(
            "bpe._native",
            SOURCES,
            depends=sorted(str(path) for path in NATIVE.rglob("*.h")),
            include_dirs=[str(NATIVE)],
            cxx_std=20,
            extra_compile_args=COMPILE,
            extra_link_args=LINK,
        )
    ],
    cmdclass={"build_ext": BuildCore},
)
