"""Does a store answer? Asked once, and soon, before a job asks it in earnest.

Beam's S3 filesystem takes a server that it cannot reach for one that is busy, and tries each
request eight times, over ten minutes, on top of what boto3 does.
"""

from __future__ import annotations

import functools
from typing import Any

from apache_beam.options.pipeline_options import PipelineOptions, S3Options

from pipelines.errors import JobError

_CONNECT_SECONDS = 5
_READ_SECONDS = 20
_TRIES = 2


def check_s3(path: str, options: Any) -> None:
    """See that the S3 server of ``path`` answers; once for each bucket.

    What it answers does not matter here: who may not ask for a bucket may be allowed to read it.

    Args:
        path: ``s3://BUCKET/...``.
        options: of Beam, as its S3 filesystem has them; a worker has others, and asks nothing: the
            process that planned the job did.

    Raises:
        JobError: nobody answers, or there is nothing to sign requests with.
    """
    if not isinstance(options, PipelineOptions):
        return
    given = options.view_as(S3Options)
    bucket = path.removeprefix("s3://").partition("/")[0]
    names = ("region_name", "api_version", "verify", "endpoint_url")
    settings = [(name, getattr(given, f"s3_{name}")) for name in names]
    settings.append(("use_ssl", not given.s3_disable_ssl))
    keys = ("access_key_id", "secret_access_key", "session_token")
    settings += [(f"aws_{name}", getattr(given, f"s3_{name}")) for name in keys]
    _check(bucket, tuple(settings))


@functools.cache  # that it answered: what raises is asked again
def _check(bucket: str, settings: tuple[tuple[str, object], ...]) -> None:
    # Packages of the extra s3.
    import boto3  # noqa: PLC0415
    from botocore import config, exceptions  # noqa: PLC0415

    patience = config.Config(
        connect_timeout=_CONNECT_SECONDS,
        read_timeout=_READ_SECONDS,
        retries={"total_max_attempts": _TRIES},
    )
    given = dict(settings)
    where = given["endpoint_url"]
    try:
        client = boto3.session.Session().client("s3", config=patience, **given)
        where = client.meta.endpoint_url
        client.head_bucket(Bucket=bucket)
    except exceptions.ClientError:
        pass
    except (exceptions.HTTPClientError, exceptions.ConnectionError) as error:
        raise JobError(
            f"s3://{bucket}: no store answers at {where} ({_one_line(error)}): correct "
            "`beam_args` --s3_endpoint_url=URL (or AWS_ENDPOINT_URL), or let it be reached from "
            "here"
        ) from error
    except (exceptions.BotoCoreError, ValueError) as error:
        raise JobError(
            f"s3://{bucket}: {where or 'the store'} cannot be asked ({_one_line(error)}): see the "
            "options `beam_args` --s3_endpoint_url=URL --s3_access_key_id=KEY "
            "--s3_secret_access_key=KEY (or those in the environment)"
        ) from error


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
