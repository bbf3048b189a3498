"""What is known of vendors: `gateway/providers/presets.yaml`, one row each."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, TypeAdapter

from gateway.config.fields import BaseUrl
from gateway.config.hosts import split_url
from gateway.core.types import Quirks

# How sure a fact is: seen recorded, read in an SDK, documented, reported by users, background knowledge.
Sure = Literal["R", "S", "D", "I", "K"]


class Rename(BaseModel):
    """A parameter that is sent under another name."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    to: str
    sure: Sure


class Preset(BaseModel):
    """One vendor. `include_usage`: `sent`, or why it is not. `refuses`: removed parameter and how sure that is."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    base_url: BaseUrl
    key: str
    auth: Literal["bearer"]
    dialect: Literal["openai"]
    include_usage: Literal["sent", "refused", "no effect"]
    refuses: Mapping[str, Sure] = {}
    renames: Mapping[str, Rename] = {}
    developer_role: bool
    sure: Mapping[Literal["base_url", "include_usage", "developer_role"], Sure]
    docs: Annotated[str, AfterValidator(lambda url: split_url(url).geturl())] | None = None
    notes: str = ""

    @property
    def quirks(self) -> Quirks:
        """The row as the dialect takes it."""
        return Quirks(
            include_usage=self.include_usage == "sent",
            refuses=frozenset(self.refuses),
            renames=MappingProxyType({name: rename.to for name, rename in self.renames.items()}),
            developer_role=self.developer_role,
        )


@cache
def presets() -> Mapping[str, Preset]:
    """Every preset by its name, in the order of the file."""
    # Read as a resource of the top package: presets are data about providers, not code of theirs.
    text = files("gateway").joinpath("providers", "presets.yaml").read_text(encoding="utf-8")
    rows: Any = yaml.safe_load(text)
    return MappingProxyType(TypeAdapter(dict[str, Preset]).validate_python(rows))
