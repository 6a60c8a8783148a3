"""Settings of the installation: `INGEST_*` in the environment > `.env` > `ingest.toml` > defaults.

Read once in `main` and passed down; nothing else reads the environment. Source files cannot change these:
what is closed here (hosts, plain HTTP) stays closed whatever a source file says (DESIGN rule 9).
"""

from pathlib import Path

from pydantic import Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from ingest.errors import SettingsInvalid


class Settings(BaseSettings):
    """Everything an installation can choose."""

    model_config = SettingsConfigDict(
        env_prefix="INGEST_", env_file=".env", toml_file="ingest.toml", extra="ignore", frozen=True
    )

    database_url: str | None = Field(
        default=None, description="PostgreSQL 15 or newer; unset: an embedded PostgreSQL under `home`"
    )
    home: Path = Field(default=Path(".ingest"), description="where the embedded PostgreSQL and its lock live")
    sources: Path = Field(default=Path("sources"), description="folder of source files")
    open_origins: tuple[str, ...] = Field(
        default=(),
        description="origins that may be plain HTTP or private, e.g. http://127.0.0.1:8099; `*` as the port opens all",
    )
    actor: str = Field(default="", description="who is named in the audit trail; default: the login name")
    lease_seconds: float = Field(default=30.0, gt=1.0, description="how long a task is a worker's without renewal")
    poll_seconds: float = Field(default=0.5, gt=0.0, description="how often an idle executor looks for work")
    tick_seconds: float = Field(default=1.0, gt=0.0, description="how often a planner makes a pass")
    stall_seconds: float = Field(default=600.0, gt=0.0, description="G6: a run without a commit this long is dead")
    poison_expiries: int = Field(default=3, ge=1, description="E1: expiries in a row without a page that park a task")
    log_level: str = Field(default="INFO", description="DEBUG, INFO, WARNING or ERROR")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Put ingest.toml below the environment."""
        return init_settings, env_settings, dotenv_settings, TomlConfigSettingsSource(settings_cls)


def load_settings() -> Settings:
    """Read the settings or raise `SettingsInvalid` naming every wrong one."""
    try:
        return Settings()
    except ValidationError as error:
        texts = [f"{'.'.join(str(part) for part in e['loc'])}: {e['msg']}" for e in error.errors()]
        raise SettingsInvalid("bad settings (INGEST_* or ingest.toml): " + "; ".join(texts)) from error
