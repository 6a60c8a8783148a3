"""Response rules on the retry settings: what answers mean, in order (B13); expand."""

from alembic import op

revision = "0006"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; NULL means that none are declared."""
    op.get_bind().exec_driver_sql("ALTER TABLE reg_prov_retry_cfg ADD COLUMN response_rules jsonb")


def downgrade() -> None:
    """Drop the column and what was declared in it."""
    op.get_bind().exec_driver_sql("ALTER TABLE reg_prov_retry_cfg DROP COLUMN response_rules")
