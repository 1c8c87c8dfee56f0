"""Filters of SCIM (RFC 7644 §3.4.2.2) as SQL conditions.

A comparison is true or false, never NULL, as in the RFC: what is absent equals nothing. Text is
compared without case unless the attribute is case-exact. A filter of an attribute that is not in
the columns of its resource type raises InvalidFilterException.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy
from scim2_models import InvalidFilterException
from scim2_models.path import (
    AttributeBinding,
    AttrPath,
    CompareOperator,
    Comparison,
    FilterVisitor,
    LogicalExpr,
    LogicalOperator,
    Not,
    Present,
    ScimFilter,
    ValuePath,
    coerce_value,
)
from sqlalchemy import (
    ColumnElement,
    Text,
    and_,
    cast,
    exists,
    false,
    func,
    literal,
    not_,
    or_,
    select,
    true,
)

from app.core.db.queries import id_or_none
from app.core.validation.scalars import is_storable
from app.scim.models import ScimEmail, ScimGroup, ScimMember, ScimUser
from app.scim.people import CHANGED_AT, IS_ACTIVE
from app.users.emails import email_key

Op = CompareOperator
OPERATORS = {Op.eq, Op.gt, Op.ge, Op.lt, Op.le}


@dataclass(frozen=True, eq=False)
class Column:
    """An attribute of one value, as a column."""

    expression: ColumnElement[Any]

    @property
    def is_never_null(self) -> bool:
        """Whether comparisons are never NULL; COALESCE would keep PostgreSQL from using an index."""
        return isinstance(self.expression, sqlalchemy.Column) and not self.expression.nullable

    def comparable(self, value: Any) -> object:
        """The filter's value as the column has it."""
        return value

    def present(self) -> ColumnElement[bool]:
        return self.expression.is_not(None)

    def compare(self, op: CompareOperator, value: Any) -> ColumnElement[bool]:
        """The comparison with a value that is not null."""
        column, operand = self.expression, literal(self.comparable(value), self.expression.type)
        if op is Op.ne:
            return column.is_distinct_from(operand)
        if op not in OPERATORS:
            raise InvalidFilterException(detail=f"{op.value} does not compare this attribute")
        compared: ColumnElement[bool] = getattr(operator, op.value)(column, operand)
        return compared


class Exact(Column):
    """Text that is compared exactly; ``""`` is absent."""

    def present(self) -> ColumnElement[bool]:
        return func.coalesce(self.expression, "") != ""

    def compare(self, op: CompareOperator, value: Any) -> ColumnElement[bool]:
        column = self.expression
        operand = cast(literal(self.comparable(value)), Text)
        match op:
            case Op.co:
                return func.strpos(column, operand) > 0
            case Op.sw:
                return func.starts_with(column, operand)
            case Op.ew:
                return func.right(column, func.length(operand)) == operand
            case Op.eq | Op.ne:
                return super().compare(op, value)
        return Column(column.collate("C")).compare(op, self.comparable(value))


class Id(Exact):
    """An id, compared as text; its equality has an index."""

    def __init__(self, expression: ColumnElement[Any]) -> None:
        super().__init__(cast(expression, Text))
        self._id = expression

    @property
    def is_never_null(self) -> bool:
        return True

    def compare(self, op: CompareOperator, value: Any) -> ColumnElement[bool]:
        if op is not Op.eq:
            return super().compare(op, value)
        row_id = id_or_none(value)
        return false() if row_id is None else self._id == literal(row_id)


class Folded(Exact):
    """Text that is compared without case."""

    def comparable(self, value: Any) -> Any:
        return value.lower()


class KeyText(Exact):
    """Text whose column has it as :func:`email_key` makes it, and whose equality has an index."""

    def comparable(self, value: Any) -> Any:
        return email_key(value)


class Flag(Column):
    """A boolean."""


class Moments(Column):
    """A date and time."""

    def comparable(self, value: datetime) -> datetime:
        try:
            return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
        except OverflowError:
            detail = "The filter has a moment beyond the calendar."
            raise InvalidFilterException(detail=detail) from None


@dataclass(frozen=True, eq=False)
class Entries:
    """A multi-valued attribute: ``where`` makes "an entry satisfies the condition"."""

    columns: Mapping[str, Column]
    where: Callable[[ColumnElement[bool]], ColumnElement[bool]]


Columns = Mapping[str, Column | Entries]
"""The attributes that filters may name; of a sub-attribute ``name.sub``, in lower case."""


def _has_email(condition: ColumnElement[bool]) -> ColumnElement[bool]:
    of_user = (ScimEmail.tenant_id == ScimUser.tenant_id, ScimEmail.user_id == ScimUser.id)
    return exists(select(1).where(*of_user, condition))


def _has_member(condition: ColumnElement[bool]) -> ColumnElement[bool]:
    of_group = (ScimMember.tenant_id == ScimGroup.tenant_id, ScimMember.group_id == ScimGroup.id)
    return exists(select(1).where(*of_group, condition))


USER_COLUMNS: Columns = {
    "id": Id(ScimUser.id.expression),
    "user_name": KeyText(ScimUser.user_name_key.expression),
    "external_id": Exact(ScimUser.external_id.expression),
    "active": Flag(IS_ACTIVE),
    "display_name": Folded(func.lower(ScimUser.attributes["displayName"].as_string())),
    "meta.created": Moments(ScimUser.created_at.expression),
    "meta.last_modified": Moments(CHANGED_AT),
    "emails": Entries(
        {
            "value": Folded(ScimEmail.value.expression),
            "type": Folded(ScimEmail.type.expression),
            "display": Folded(ScimEmail.display.expression),
            "primary": Flag(ScimEmail.is_primary.expression),
        },
        _has_email,
    ),
}
GROUP_COLUMNS: Columns = {
    "id": Id(ScimGroup.id.expression),
    "display_name": KeyText(ScimGroup.display_name_key.expression),
    "external_id": Exact(ScimGroup.external_id.expression),
    "meta.created": Moments(ScimGroup.created_at.expression),
    "meta.last_modified": Moments(ScimGroup.updated_at.expression),
    "members": Entries({"value": Id(ScimMember.member_id.expression)}, _has_member),
}


def as_condition(scim_filter: ScimFilter, columns: Columns) -> ColumnElement[bool]:
    """The filter as a condition; raises InvalidFilterException."""
    return _Translator(scim_filter, columns).visit(scim_filter.ast)


class _Joiner(FilterVisitor[ColumnElement[bool]]):
    """Translates ``not``, ``and`` and ``or``."""

    def visit_not(self, node: Not) -> ColumnElement[bool]:
        return not_(self.visit(node.expr))

    def visit_logical_expr(self, node: LogicalExpr) -> ColumnElement[bool]:
        join = and_ if node.op is LogicalOperator.and_ else or_
        return join(*(self.visit(term) for term in node.terms))


class _Translator(_Joiner):
    """Translates the nodes of a filter of one resource type."""

    def __init__(self, scim_filter: ScimFilter, columns: Columns) -> None:
        self._filter = scim_filter
        self._columns = columns

    def visit_comparison(self, node: Comparison) -> ColumnElement[bool]:
        binding = _known(self._filter.resolve_comparison(node.attr_path), node.attr_path)
        column = self._columns.get(name_of(binding))
        if isinstance(column, Column):
            return _compare(column, node, binding)
        entries = self._entries(binding, node.attr_path)
        column = _sub_column(entries, binding.sub_field_name or "", node.attr_path)
        if node.op is Op.ne:  # no entry equals the value
            equal = Comparison(node.attr_path, Op.eq, node.value)
            return not_(entries.where(_compare(column, equal, binding)))
        return entries.where(_compare(column, node, binding))

    def visit_present(self, node: Present) -> ColumnElement[bool]:
        binding = _known(self._filter.resolve(node.attr_path), node.attr_path)
        column = self._columns.get(name_of(binding))
        if isinstance(column, Column):
            return column.present()
        entries = self._entries(binding, node.attr_path)
        if binding.sub_field_name is None:
            return entries.where(true())
        column = _sub_column(entries, binding.sub_field_name, node.attr_path)
        return entries.where(column.present())

    def visit_value_path(self, node: ValuePath) -> ColumnElement[bool]:
        binding = _known(self._filter.resolve(node.attr_path), node.attr_path)
        entries = self._entries(binding, node.attr_path)
        return entries.where(_EntryTranslator(entries, node.attr_path).visit(node.val_filter))

    def _entries(self, binding: AttributeBinding, path: AttrPath) -> Entries:
        entries = self._columns.get(binding.field_name)
        if not isinstance(entries, Entries):
            raise unsupported(path)
        return entries


class _EntryTranslator(_Joiner):
    """Translates the filter in the brackets of ``emails[…]``."""

    def __init__(self, entries: Entries, path: AttrPath) -> None:
        self._entries = entries
        self._path = path

    def visit_comparison(self, node: Comparison) -> ColumnElement[bool]:
        return _compare(self._column(node.attr_path), node, None)

    def visit_present(self, node: Present) -> ColumnElement[bool]:
        return self._column(node.attr_path).present()

    def _column(self, path: AttrPath) -> Column:
        return _sub_column(self._entries, path.attr.lower(), self._path)


def unsupported(path: AttrPath) -> InvalidFilterException:
    """The error of a filter by an attribute without a column."""
    return InvalidFilterException(detail=f"Resources cannot be filtered by {path}.")


def _known(binding: AttributeBinding | None, path: AttrPath) -> AttributeBinding:
    if binding is None or ":extension:" in binding.urn.lower():
        raise unsupported(path)
    return binding


def name_of(binding: AttributeBinding) -> str:
    """The attribute's name in :data:`Columns`."""
    sub = binding.sub_field_name
    return f"{binding.field_name}.{sub}" if sub else binding.field_name


def _sub_column(entries: Entries, name: str, path: AttrPath) -> Column:
    if name not in entries.columns:
        raise unsupported(path)
    return entries.columns[name]


def _compare(
    column: Column, node: Comparison, binding: AttributeBinding | None
) -> ColumnElement[bool]:
    if node.value is None:
        present = column.present()
        if node.op not in (Op.eq, Op.ne):
            return false()
        return not_(present) if node.op is Op.eq else present
    value = node.value
    if isinstance(value, str) and not is_storable(value):
        raise InvalidFilterException(detail="The filter has text that cannot be stored.")
    if binding is not None:
        value = coerce_value(binding, value, node.op)
    expected = {Flag: bool, Moments: datetime}.get(type(column), str)
    if not isinstance(value, expected):
        raise InvalidFilterException(detail=f"{node.attr_path} is compared with another type.")
    compared = column.compare(node.op, value)
    return compared if column.is_never_null else func.coalesce(compared, false())
