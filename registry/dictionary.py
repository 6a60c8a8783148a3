"""The dictionary of codes and the platform's defaults, as plain data.

`sys_dict_*` and `reg_default` are the truth (registry.store.dictionary reads them); `registry.builtin` mirrors what the
migrations seed for places without a database. Invariant: an alias resolves to its code and never reaches a row.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue


@dataclass(frozen=True, slots=True)
class Dictionary:
    """Codes by type, and the other words they may be written as."""

    items: Mapping[str, tuple[str, ...]]
    aliases: Mapping[str, Mapping[str, str]]

    def find_code(self, kind: str, word: str) -> str | None:
        """Return the code a word stands for, itself or an alias in any case; None if it is no word of this type."""
        if word in self.items.get(kind, ()):
            return word
        aliases = self.aliases.get(kind, {})
        return aliases.get(word) or aliases.get(word.lower())

    def words(self, kind: str) -> list[str]:
        """Return the words people write for a type: aliases where a code has them, the code otherwise."""
        aliases = self.aliases.get(kind, {})
        lower = {alias for alias, code in aliases.items() if alias == code.lower()}
        return [code.lower() if code.lower() in lower else code for code in self.items.get(kind, ())]

    def all_words(self, kind: str) -> list[str]:
        """Return every word that resolves."""
        return [*self.words(kind), *(alias for alias in self.aliases.get(kind, {}) if alias not in self.words(kind))]


@dataclass(frozen=True, slots=True)
class Platform:
    """What holds for every source: the dictionary and the defaults by section and column (A3, lowest level)."""

    dictionary: Dictionary
    defaults: Mapping[str, Mapping[str, JsonValue]]
