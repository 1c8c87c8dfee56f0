"""The pages, one module for each subject; importing them registers them."""

from app.console.pages import (  # noqa: F401
    api_keys,
    audit,
    billing,
    bulk,
    custom_fields,
    endpoints,
    flags,
    imports,
    members,
    operations,
    plans,
    scim,
    search,
    setup,
    setup_tasks,
    subscriptions,
    suppressions,
    tenants,
    users,
    webhooks,
)
