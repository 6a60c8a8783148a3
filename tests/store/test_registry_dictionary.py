"""The dictionary and the defaults: what the migrations seed, read in one statement."""

from sqlalchemy import event, text

from ingest.db import Database
from registry.builtin import BUILTIN
from registry.store.dictionary import load_platform


def test_the_builtin_platform_equals_a_fresh_database(database: Database) -> None:
    with database.transaction() as conn:
        platform = load_platform(conn, ttl_s=0)
    assert platform.dictionary.items == BUILTIN.dictionary.items
    assert platform.dictionary.aliases == BUILTIN.dictionary.aliases
    assert platform.defaults == BUILTIN.defaults


def test_an_alias_resolves_to_its_code_in_any_case(database: Database) -> None:
    with database.transaction() as conn:
        dictionary = load_platform(conn, ttl_s=0).dictionary
    assert dictionary.find_code("pagination_type", "cursor") == "TOKEN"
    assert dictionary.find_code("pagination_type", "Cursor") == "TOKEN"
    assert dictionary.find_code("pagination_type", "TOKEN") == "TOKEN"
    assert dictionary.find_code("pagination_type", "curser") is None
    assert dictionary.find_code("no_such_type", "x") is None


def test_a_disabled_code_is_no_word_any_more_nor_are_its_aliases(database: Database) -> None:
    with database.transaction() as conn:
        conn.execute(text("UPDATE sys_dict_item SET enabled = false WHERE item_code = 'TOKEN'"))
        dictionary = load_platform(conn, ttl_s=0).dictionary
    assert dictionary.find_code("pagination_type", "TOKEN") is None
    assert dictionary.find_code("pagination_type", "cursor") is None


def test_the_platform_is_read_once_within_its_time(database: Database) -> None:
    statements: list[str] = []
    event.listen(database.engine, "before_cursor_execute", lambda *args: statements.append(args[2]))
    with database.transaction() as conn:
        first = load_platform(conn)
        assert load_platform(conn) is first
    assert len(statements) == 1
