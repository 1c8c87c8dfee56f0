"""The SQL statements of usage by day."""

from __future__ import annotations

from sqlalchemy import ARRAY, Text, Uuid, bindparam, text

from app.core.db.models import Moment
from app.core.db.statements import Statement

LIST_DAYS = Statement(
    "usage_days.list",
    "SELECT CAST(day AS text) AS day, used"
    " FROM usage_by_day(CAST(:tenant_id AS uuid), :feature, :days) ORDER BY day",
)
FORECAST = Statement(
    "usage_days.forecast",
    "SELECT * FROM forecast_usage(CAST(:tenant_id AS uuid), CAST(:feature AS text))",
)
STORE = Statement(
    "usage_days.store",
    "SELECT * FROM store_usage_days(CAST(:period_end AS timestamptz), CAST(:tenant_id AS uuid),"
    " :feature, CAST(:period_start AS timestamptz), :limit)",
)
TAKE_FORECASTS = Statement(
    "usage_counters.take_forecasts",
    text("SELECT * FROM take_forecasts(:tenant_ids, :features, :period_starts)").bindparams(
        bindparam("tenant_ids", type_=ARRAY(Uuid)),
        bindparam("features", type_=ARRAY(Text)),
        bindparam("period_starts", type_=ARRAY(Moment)),
    ),
)
