"""``flask custom-fields``."""

from __future__ import annotations

import click

from app.cli.base import AppGroup, ask, json_option, operator, print_json, print_rows, yes_option
from app.cli.custom_field_indexes import reindex
from app.cli.lookup import find_tenant
from app.cli.records import load, paging_options, print_one, tell_of_more
from app.core.actors import SYSTEM_CLI
from app.core.db.pages import Paging
from app.custom_fields import service
from app.custom_fields.models import FieldType
from app.custom_fields.schemas import (
    CustomFieldCreateSchema,
    CustomFieldSchema,
    CustomFieldUpdateSchema,
)
from app.custom_fields.search_index.index_state import get_index

COLUMNS = (
    "id",
    "idp_org_id",
    "entity_type",
    "field_key",
    "field_type",
    "is_required",
    "is_searchable",
    "is_active",
    "index",
)

custom_fields = AppGroup(
    "custom-fields", help="Define and archive custom fields. Rebuild their indexes."
)
custom_fields.add_command(reindex)
SHAPE = CustomFieldSchema()


@custom_fields.command("list")
@click.option("--tenant", help="Only of this tenant (slug or id).")
@click.option("--entity-type", help="Only of this entity type, such as user.")
@click.option("--active/--archived", "is_active", default=None, help="Only these.")
@paging_options()
@json_option
@operator
def list_fields(
    tenant: str | None,
    entity_type: str | None,
    is_active: bool | None,
    paging: Paging,
    as_json: bool,
) -> None:
    """List custom fields with the state of their indexes."""
    filters = {"entity_type": entity_type, "is_active": is_active}
    page = service.list_fields(
        paging,
        tenant_id=find_tenant(tenant).id if tenant else None,
        filters={name: value for name, value in filters.items() if value is not None},
    )
    shown = [{**SHAPE.dump(field), "index": get_index(field.id).state} for field in page.items]
    if as_json:
        print_json(shown)
    else:
        print_rows(shown, COLUMNS, as_json=False)
    tell_of_more(page)


@custom_fields.command("show")
@click.argument("field_id")
@json_option
@operator
def show(field_id: str, as_json: bool) -> None:
    """Show a custom field."""
    print_one(service.get_field(field_id), SHAPE, as_json=as_json)


@custom_fields.command("create")
@click.option("--tenant", required=True, help="The tenant (slug or id).")
@click.option("--entity-type", default="user", show_default=True, help="What has the field.")
@click.option("--field-key", required=True, help="The field's key in the JSON object.")
@click.option("--label", required=True, help="The field's name in forms.")
@click.option(
    "--field-type",
    required=True,
    type=click.Choice([type_.value for type_ in FieldType]),
    metavar="TYPE",
    help=f"One of {', '.join(FieldType)}.",
)
@click.option("--option", "options", multiple=True, help="One option of a select; may be repeated.")
@click.option("--required", "is_required", is_flag=True, help="Every entity must have a value.")
@click.option(
    "--searchable", "is_searchable", is_flag=True, help="Lists can be filtered by the field."
)
@click.option("--sort-order", type=int, help="Its place in forms, lowest first.")
@json_option
@operator
def create(
    tenant: str, options: tuple[str, ...], as_json: bool, **given: str | bool | int | None
) -> None:
    """Define a custom field. If it is searchable, a worker builds its index."""
    values = load(CustomFieldCreateSchema, {**given, "options": list(options) or None})
    row = service.create(find_tenant(tenant).id, values, actor=SYSTEM_CLI)
    print_one(row, SHAPE, as_json=as_json)


@custom_fields.command("update")
@click.argument("field_id")
@click.option("--label", help="The field's name in forms.")
@click.option(
    "--option", "options", multiple=True, help="One of the new options; repeat it for each."
)
@click.option(
    "--required/--optional", "is_required", default=None, help="Whether each must have a value."
)
@click.option(
    "--searchable/--unsearchable",
    "is_searchable",
    default=None,
    help="Whether lists can be filtered by the field.",
)
@click.option("--sort-order", type=int, help="Its place in forms, lowest first.")
@json_option
@operator
def update(
    field_id: str, options: tuple[str, ...], as_json: bool, **given: str | bool | int | None
) -> None:
    """Change a custom field."""
    values = load(CustomFieldUpdateSchema, {**given, "options": list(options) or None})
    print_one(service.update(field_id, values, actor=SYSTEM_CLI), SHAPE, as_json=as_json)


@custom_fields.command("archive")
@click.argument("field_id")
@json_option
@operator
def archive(field_id: str, as_json: bool) -> None:
    """Archive a custom field.

    Its values are not checked or searched, but remain stored.
    """
    print_one(service.archive(field_id, actor=SYSTEM_CLI), SHAPE, as_json=as_json)


@custom_fields.command("delete")
@click.argument("field_id")
@yes_option
@json_option
def delete(field_id: str, yes: bool, as_json: bool) -> None:
    """Delete an archived custom field and its index.

    Stored values remain in the metadata.
    """
    field = operator(service.get_field)(field_id)
    ask(f"Delete the custom field {field.field_key} of {field.idp_org_id}?", yes=yes)
    operator(service.delete)(field_id, actor=SYSTEM_CLI)
    print_rows([{"deleted": field_id}], ["deleted"], as_json=as_json)


@custom_fields.command("restore")
@click.argument("field_id")
@json_option
@operator
def restore(field_id: str, as_json: bool) -> None:
    """Restore an archived custom field. If it is searchable, a worker builds its index."""
    print_one(service.restore(field_id, actor=SYSTEM_CLI), SHAPE, as_json=as_json)
