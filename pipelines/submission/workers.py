"""The place of a job's workers, as far as Beam's options show it."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from apache_beam.options.pipeline_options import (
    FlinkRunnerOptions,
    PortableOptions,
    SparkRunnerOptions,
    StandardOptions,
    WorkerOptions,
)

if TYPE_CHECKING:
    from apache_beam.options.pipeline_options import PipelineOptions

Kind = Literal["local", "loopback", "process", "docker", "external", "dataflow"]

# As Beam's runners read their own options.
FLINK_HERE = ("[local]", "[auto]")
_SPARK_HERE = re.compile(r"local(\[.+\])?")
_URN = re.compile(r"beam:env:(?:([a-z_]+):v1|embedded_python_(loopback):v1)")
_PORTABLE = frozenset({"PortableRunner", "FlinkRunner", "SparkRunner", "PrismRunner"})
_BEAMS_IMAGES = ("apache/beam_", "docker.io/apache/beam_")


@dataclass(frozen=True, kw_only=True)
class Workers:
    """The place of a job's workers.

    Attributes:
        runner: Beam's name of the runner.
        kind: ``local`` and ``loopback`` are this process and its children; the others are
            environments of their own.
        address: the address of the cluster or job server, HOST:PORT; empty if Beam starts one here.
        image: the container image in the options; empty for Beam's own image.
    """

    runner: str
    kind: Kind
    address: str = ""
    image: str = ""

    @property
    def here(self) -> bool:
        """True if the workers belong to this process, and so have its packages and files."""
        return self.kind in ("local", "loopback")

    @property
    def near(self) -> bool:
        """True if the address of the cluster is on this machine, or empty."""
        return not self.address or is_loopback(self.address)

    @property
    def has_own_image(self) -> bool:
        """True if the workers run in an image other than Beam's published images."""
        return bool(self.image) and not self.image.startswith(_BEAMS_IMAGES)

    def __str__(self) -> str:
        """Return a phrase such as ``PROCESS workers of PortableRunner at cluster:8099``."""
        if self.kind == "dataflow":
            return "Dataflow's workers"
        place = f" at {self.address}" if self.address else ""
        return f"{self.kind.upper()} workers of {self.runner}{place}"


def workers_of(beam_options: PipelineOptions) -> Workers:
    """Return the place of the workers, read from Beam's options."""
    runner = str(beam_options.view_as(StandardOptions).runner)
    name = runner.rpartition(".")[2]
    if name in ("DataflowRunner", "TestDataflowRunner"):
        image = beam_options.view_as(WorkerOptions).sdk_container_image or ""
        return Workers(runner=name, kind="dataflow", address="Dataflow", image=image)
    if name not in _PORTABLE:
        return Workers(runner=name, kind="local")
    portable, cluster = beam_options.view_as(PortableOptions), _cluster(name, beam_options)
    address = str(portable.job_endpoint or cluster)
    # Beam starts an engine on this machine, whose workers it keeps in this process.
    kind: Kind = "docker" if cluster or name == "PortableRunner" else "loopback"
    if portable.environment_type:
        kind = _environment(portable.environment_type)
    return Workers(
        runner=name,
        kind=kind,
        address="" if address == "embed" else address,
        image=_image(beam_options) if kind == "docker" else "",
    )


def _environment(asked: str) -> Kind:
    match = _URN.fullmatch(asked)
    asked = (match[1] or match[2]) if match else asked.lower()
    known: tuple[Kind, ...] = ("loopback", "process", "external")
    return next((kind for kind in known if kind == asked), "docker")


def _cluster(name: str, beam_options: PipelineOptions) -> str:
    """Return the address of the cluster that options name, HOST:PORT; empty without one."""
    flink = beam_options.view_as(FlinkRunnerOptions).flink_master
    spark = beam_options.view_as(SparkRunnerOptions)
    address = ""
    if name == "FlinkRunner" and flink not in FLINK_HERE:
        address = flink
    if name == "SparkRunner" and not _SPARK_HERE.fullmatch(spark.spark_master_url):
        address = spark.spark_rest_url or spark.spark_master_url
    return urlsplit(address if "://" in address else f"//{address}").netloc


def _image(beam_options: PipelineOptions) -> str:
    portable = beam_options.view_as(PortableOptions)
    config = portable.environment_config or ""
    if config.lstrip().startswith("{"):  # of a PROCESS environment, or of none
        config = ""
    named = portable.lookup_environment_option("docker_container_image")
    image = beam_options.view_as(WorkerOptions).sdk_container_image
    return str(named or config or image or "")


def is_loopback(address: str) -> bool:
    """Return whether ``HOST:PORT`` is an address of this machine alone.

    >>> is_loopback("localhost:8099"), is_loopback("[::1]:1"), is_loopback("flink:8081")
    (True, True, False)
    """
    host = urlsplit(f"//{address}").hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
