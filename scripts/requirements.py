"""The requirements of pyproject.toml, one a line: pip can install them without the package.

python scripts/requirements.py [--build] [EXTRA…]
"""

from __future__ import annotations

import sys
from pathlib import Path

try:
    import tomllib  # type: ignore[import-not-found,unused-ignore]  # Python 3.11 and newer
except ModuleNotFoundError:
    from pip._vendor import tomli as tomllib  # type: ignore[no-redef,unused-ignore]

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"


def requirements(extras: list[str], *, build: bool) -> list[str]:
    """Those of the package and of these extras; with ``build`` those that it is built with too."""
    settings = tomllib.loads(PROJECT.read_text("utf-8"))
    project = settings["project"]
    needed = [*project["dependencies"]]
    for extra in extras:
        needed += project["optional-dependencies"][extra]
    return [*needed, *(settings["build-system"]["requires"] if build else [])]


if __name__ == "__main__":
    given = sys.argv[1:]
    print(
        *requirements([one for one in given if one != "--build"], build="--build" in given),
        sep="\n",
    )
