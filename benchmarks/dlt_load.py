"""dlt on the same source: nesting off, merge by upsert, CSV through COPY, two normalize workers.

Runs under its own virtual environment (`benchmarks/.venv-dlt`), so it imports nothing of ours. Prepares, says
`ready`, waits for a line, loads, prints how many records there were.
"""

import argparse
import os
import sys
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

# Files must rotate, or one normalize worker gets everything; telemetry is off because it is a network call.
SETTINGS = {
    "NORMALIZE__WORKERS": "2",
    "SOURCES__DATA_WRITER__FILE_MAX_ITEMS": "20000",
    "NORMALIZE__DATA_WRITER__FILE_MAX_ITEMS": "20000",
    "RUNTIME__DLTHUB_TELEMETRY": "false",
    "RUNTIME__LOG_LEVEL": "ERROR",
}


received = 0


def walk(url: str) -> Iterator[list[dict[str, Any]]]:
    """Yield the source's pages, counting the records."""
    global received
    from dlt.sources.helpers import requests  # type: ignore[import-not-found]

    page: int | None = 1
    while page is not None:
        body = requests.get(url, params={"page": page}).json()
        received += len(body["items"])
        yield body["items"]
        page = body["next"]


def main() -> None:
    """Prepare, wait for the word, load."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--database", required=True)
    parser.add_argument("--url", required=True)
    parser.add_argument("--directory", required=True)
    options = parser.parse_args()
    os.environ.update(SETTINGS)
    import dlt  # type: ignore[import-not-found]

    address = urlsplit(options.database)
    query = parse_qs(address.query)
    credentials = (
        f"postgresql://{address.username}:none@localhost{address.path}?host={query['host'][0]}&port={query['port'][0]}"
    )
    resource = dlt.resource(
        walk(f"{options.url}/items"),
        name="items",
        primary_key="id",
        write_disposition={"disposition": "merge", "strategy": "upsert"},
        max_table_nesting=0,
    )
    pipeline = dlt.pipeline(
        "bench",
        pipelines_dir=options.directory,
        destination=dlt.destinations.postgres(credentials=credentials),
        dataset_name="dlt_bench",
    )
    print("ready", flush=True)
    sys.stdin.readline()
    pipeline.run(resource, loader_file_format="csv").raise_on_failed_jobs()
    print(received, flush=True)
    sys.stdin.readline()  # stay until our CPU and memory were read


if __name__ == "__main__":
    main()
