"""Dimensions: the part of a snapshot that says which series an endpoint has (D9)."""

from pydantic import BaseModel, ConfigDict, JsonValue


class Dimension(BaseModel):
    """One dimension of a partition: values listed in the file, or a field of another dataset's rows."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    values: tuple[str, ...] = ()
    dataset: str = ""
    field: str = ""
    where: dict[str, JsonValue] = {}


class Partition(BaseModel):
    """What makes each series of an endpoint (D9); which series there are is no part of any one's selection."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    dimensions: tuple[Dimension, ...] = ()
    changed: bool = False  # plan a parent's series only when its row changed since the series was covered

    @property
    def names(self) -> list[str]:
        """The dimensions in the order of the key."""
        return [dimension.name for dimension in self.dimensions]
