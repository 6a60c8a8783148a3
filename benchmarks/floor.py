"""F, the floor by hand: httpx + orjson + COPY to staging + guarded upsert; one thread, one commit per page.

What a good engineer writes in an afternoon for this one source, with nothing of ours: no ledger, no gate, no resume,
no retries (performance.md §1). It stores the same columns as our table, less the seven we keep on every row. Run as a
process: prepares, says `ready`, waits for a line, loads, prints how many records there were.
"""

import argparse
import sys

import httpx
import orjson
import psycopg

from benchmarks.columns import TYPED


def make_tables(conn: psycopg.Connection, typed: dict[str, str]) -> None:
    """Make the table if it is not there, and this session's staging table."""
    columns = "".join(f"{name} {kind}, " for name, kind in typed.items())
    body = f"updated_at timestamptz, {columns}payload json"
    conn.execute(
        f'CREATE TABLE IF NOT EXISTS floor_items (provider_id text COLLATE "C" NOT NULL, {body}, '
        "PRIMARY KEY (provider_id))"
    )
    conn.execute(f"CREATE TEMP TABLE stage (provider_id text, {body}) ON COMMIT DELETE ROWS")
    conn.commit()


def load(conn: psycopg.Connection, client: httpx.Client, url: str, typed: dict[str, str]) -> int:
    """Walk the source and upsert every page; return how many records came."""
    names = ["updated_at", *typed, "payload"]
    every = ", ".join(["provider_id", *names])
    copy_statement = f"COPY stage ({every}) FROM STDIN"
    upsert = f"""
        INSERT INTO floor_items AS t ({every}) SELECT {every} FROM stage
        ON CONFLICT (provider_id) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in names)}
         WHERE excluded.updated_at > t.updated_at
    """
    fields = tuple(typed)
    count = 0
    page: int | None = 1
    while page is not None:
        answer = client.get(url, params={"page": page})
        answer.raise_for_status()
        body = orjson.loads(answer.content)
        with conn.cursor() as cursor:
            with cursor.copy(copy_statement) as copy:
                for item in body["items"]:
                    payload = orjson.dumps(item).decode()
                    copy.write_row((item["id"], item["updated_at"], *[item[name] for name in fields], payload))
            cursor.execute(upsert)
        conn.commit()
        count += len(body["items"])
        page = body["next"]
    return count


def main() -> None:
    """Prepare, wait for the word, load."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--database", required=True)
    parser.add_argument("--url", required=True)
    parser.add_argument("--typed", action="store_true")
    options = parser.parse_args()
    typed = TYPED if options.typed else {}
    with psycopg.connect(options.database) as conn, httpx.Client() as client:
        make_tables(conn, typed)
        print("ready", flush=True)
        sys.stdin.readline()
        print(load(conn, client, f"{options.url}/items", typed), flush=True)
        sys.stdin.readline()  # stay until our CPU and memory were read


if __name__ == "__main__":
    main()
