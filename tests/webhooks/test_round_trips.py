"""How many messages the worker sends to PostgreSQL for one event, BEGIN and COMMIT included.

Each message is a round trip. BEGIN travels with the claim of the event. A job looks once more when
no event is left: that is two messages for each job, not for each event.
"""

from __future__ import annotations

APPLICATION = 9
LAST_LOOK = 2
