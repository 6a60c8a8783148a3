"""Partitions as people write them: lists of values and fields of another dataset's rows (D9).

`from` names a stream (`github.repos`), or a dataset by its own name where that is not `source_endpoint`.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, JsonValue, model_validator

from registry.sections import Written, show


class Parent(Written):
    """A dimension whose values are a field of another dataset's rows."""

    dataset: str = Field(alias="from", description="the stream (source.endpoint) or dataset whose rows are the parents")
    field: str = Field(description="the column of the parent that gives the value")
    where: dict[str, JsonValue] = Field(default_factory=dict, description="columns and the value, or values, they have")


Listed = Annotated[list[str | int | float], Field(min_length=1)]


class Partition(Written):
    """Every combination is a series of its own: `symbol: [A, B]`, or `repo: {from: github.repos, field: full_name}`."""

    changed: bool = Field(default=False, description="plan only parents whose row changed since they were walked")
    dimensions: dict[str, Listed | Parent] = Field(min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        """Read `{symbol: [...], changed: true}`: everything but `changed` is a dimension."""
        if not isinstance(value, dict):
            raise ValueError(f"expected dimensions such as 'symbol: [A, B]', got {show(value)}")
        if set(value) <= {"changed", "dimensions"} and isinstance(value.get("dimensions"), dict):
            return value
        dimensions = {name: each for name, each in value.items() if name != "changed"}
        return {"dimensions": dimensions} | {name: each for name, each in value.items() if name == "changed"}


def partition_row(partition: Partition, tables: Mapping[str, str | None]) -> dict[str, JsonValue]:
    """Return what the registry keeps: dimensions as a list, because their order is the key's; `tables` by stream."""
    dimensions: list[JsonValue] = []
    for name, each in partition.dimensions.items():
        if isinstance(each, Parent):
            dataset = tables.get(each.dataset) or each.dataset.replace(".", "_")
            dimensions.append({"name": name, "dataset": dataset, "field": each.field, "where": dict(each.where)})
        else:
            dimensions.append({"name": name, "values": [str(value) for value in each]})
    return {"dimensions": dimensions} | ({"changed": True} if partition.changed else {})
