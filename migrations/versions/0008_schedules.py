"""Schedules in full: cron, zones, missed fires, quiet hours; next runs set by a person (G1-G3)."""

from alembic import op

revision = "0008"
down_revision = "0006"
branch_labels = None
depends_on = None

_UP = (
    "ALTER TABLE reg_schedule DROP CONSTRAINT reg_schedule_kind_check",
    "ALTER TABLE reg_schedule ADD CONSTRAINT reg_schedule_kind_check CHECK (kind IN ('every', 'once', 'cron'))",
    """ALTER TABLE reg_schedule
           ADD COLUMN cron text, ADD COLUMN zone text, ADD COLUMN grace_s numeric, ADD COLUMN quiet jsonb,
           ADD COLUMN on_missed text CHECK (on_missed IN ('skip', 'one', 'all')),
           ADD CONSTRAINT cron_has_expression CHECK (kind <> 'cron' OR cron IS NOT NULL)""",
    # next_run_at: set by a person, once. delay_s: the jitter of the next fire. rhythm: what next_fire_at was made from.
    """ALTER TABLE ing_schedule_state
           ADD COLUMN next_run_at timestamptz, ADD COLUMN delay_s numeric NOT NULL DEFAULT 0, ADD COLUMN rhythm text""",
)
_DOWN = (
    "ALTER TABLE ing_schedule_state DROP COLUMN next_run_at, DROP COLUMN delay_s, DROP COLUMN rhythm",
    """DELETE FROM ing_schedule_state
        WHERE schedule_code IN (SELECT schedule_code FROM reg_schedule WHERE kind = 'cron')""",
    "DELETE FROM reg_schedule WHERE kind = 'cron'",
    """ALTER TABLE reg_schedule DROP CONSTRAINT cron_has_expression, DROP COLUMN cron, DROP COLUMN zone,
           DROP COLUMN grace_s, DROP COLUMN quiet, DROP COLUMN on_missed""",
    "ALTER TABLE reg_schedule DROP CONSTRAINT reg_schedule_kind_check",
    "ALTER TABLE reg_schedule ADD CONSTRAINT reg_schedule_kind_check CHECK (kind IN ('every', 'once'))",
)


def upgrade() -> None:
    """Widen what a schedule can say (expand)."""
    for statement in _UP:
        op.get_bind().exec_driver_sql(statement)


def downgrade() -> None:
    """Go back to every and once; cron schedules are gone."""
    for statement in _DOWN:
        op.get_bind().exec_driver_sql(statement)
