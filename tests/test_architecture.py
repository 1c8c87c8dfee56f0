"""The house's rules, each as a test."""

import ast
import inspect
import json
import re
from collections import Counter
from functools import cache
from pathlib import Path

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine

from app import DOMAINS
from app.auth.guard import public as for_everybody
from app.core.db.models import TenantRow
from app.core.db.transactions import transaction
from app.core.http.endpoint import NOBODY
from app.core.jobs.queues import JOBS, Queue
from app.extensions import db
from tests import database
from tests.factories import create_member, create_tenant

ROOT = Path(__file__).parent.parent
APP = ROOT / "app"

# Lower imports higher never; siblings on one line never import one another. A name with a dot is a
# room inside a room. Models are a layer of their own.
LAYERS = (
    ("config_values", "config_logo"),
    ("extensions", "config"),
    ("core",),
    ("models",),
    ("auth",),
    ("audit",),
    ("search",),
    ("custom_fields",),
    ("tenants", "platform_admins"),
    ("memberships",),
    ("roles",),
    ("subscriptions.statuses",),
    ("plans",),
    ("users", "subscriptions", "flags", "emails", "api_keys", "webhooks.endpoints"),
    ("log_streams.kinds",),
    ("log_streams.schemas",),
    ("credits",),
    ("usage",),
    ("invitations", "connections", "sso_connections"),
    ("domains",),
    ("identity_sync",),
    ("scim", "setup_links", "access"),
    ("inbox", "imports", "events"),
    ("billing",),
    ("webhooks.deliveries", "log_streams", "history"),
    ("privacy", "operations", "rewinds"),
    ("streams",),
    ("surfaces",),
    ("console", "agents"),
    ("cli",),
    ("dev",),
)


def level_of(module: str) -> tuple[int, str]:
    """The layer of a dotted module name below ``app``, and its place in it."""
    parts = module.split(".")
    if len(parts) > 2 and parts[-1] == "models" and parts[1] != "core":
        return LAYERS.index(("models",)), "models"
    for place in (".".join(parts[1:3]), parts[1]):  # a sub-room, or the room
        for level, names in enumerate(LAYERS):
            if place in names:
                return level, place
    raise AssertionError(f"{module} stands in no layer")


def modules() -> list[tuple[str, Path]]:
    found = []
    for path in sorted(APP.rglob("*.py")):
        if path == APP / "__init__.py":
            continue
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        found.append((name.removesuffix(".__init__"), path))
    return found


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def imports_of(path: Path) -> set[str]:
    """Every ``app…`` module that a file imports at run time."""
    found = set()
    tree = tree_of(path)
    typing_only = {
        id(node)
        for branch in ast.walk(tree)
        if isinstance(branch, ast.If) and ast.unparse(branch.test) == "TYPE_CHECKING"
        for node in ast.walk(branch)
    }
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("app"):
            for alias in node.names:
                deeper = APP.parent / Path(*node.module.split("."), alias.name)
                is_module = deeper.with_suffix(".py").exists() or deeper.is_dir()
                found.add(f"{node.module}.{alias.name}" if is_module else node.module)
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith("app.")}
    return found


def tables_in(path: Path) -> set[str]:
    """The names that the SQL in a file's texts has where SQL names a table."""
    texts = [
        node.value
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    lists = re.findall(r"\b(?:FROM|JOIN|INTO|UPDATE|TABLE)\s+(\w+(?:,\s*\w+)*)", "\n".join(texts))
    return {name for found in lists for name in re.split(r",\s*", found)}


class TestNames:
    STANDARD = {"__init__", "routes", "schemas", "service", "models", "jobs", "health"}
    NAMED_AFTER_OTHERS = ("app.core", "app.console", "app.cli", "app.dev", "app.operations.checks")
    """Their modules have the names of what they show, run or check."""
    SHARED = {
        "apply": "writes to our rows what was received",
        "builder": "builds an index of older rows",
        "events": "what a provider's events say, as data",
        "filters": "a filter of a request as SQL",
        "includes": "what `?include=` adds",
        "person": "somebody whom rows of several tables describe",
        "presets": "plan presets; presets of signatures, as the settings call them",
        "provider": "the interface that each provider of its room implements",
        "rules": "what a field's values are checked by; what gives a flag another value",
        "statements": "the room's SQL",
        "trial": "a trial of a connection or a receiver, which leaves nothing",
        "work": "what a worker does in the database, resumable",
        "writer": "writes the rows of an index",
    }
    """Name of several modules -> what it means in each."""

    def test_a_name_of_a_module_means_one_thing(self):
        names = Counter(
            path.stem for name, path in modules() if not name.startswith(self.NAMED_AFTER_OTHERS)
        )

        shared = {name for name, count in names.items() if count > 1}
        assert shared - self.STANDARD == set(self.SHARED)


class TestLayers:
    READS_ABOVE = {
        "app.flags.evaluation: event_feed": "its key encrypts the grants of event streams",
        "app.custom_fields.health: tenants": "it names tenants by their slugs",
        "app.events.positions: log_stream_progress": "it keeps what a stream has not read",
        "app.flags.rules: users": "rules compare the user whom the context names",
        "app.plans.following: subscriptions": "the plan of a tenant follows its subscriptions",
        "app.plans.health: subscriptions": "it finds plans without a preset that they name",
        "app.plans.prices: subscriptions": "it tells which of them a price changes",
        "app.plans.preview: feature_overrides": "it tells whom an update of the preset concerns",
        "app.plans.preview: usage_counters": "it compares new limits with what tenants use",
        **{
            f"app.memberships.extra_roles: {table}": "it shows the roles of a member's groups too"
            for table in ("role_assignments", "roles", "scim_groups", "scim_members")
        },
        "app.usage.health: invitations": "pending ones take seats",
        "app.privacy.people.removal: rewinds": "an erasure waits for their slices, and they for it",
        "app.tenants.filters: plan_assignments": "a list of tenants by the end of their plans",
        "app.tenants.filters: usage_counters": "a list of tenants by what they have used",
        "app.tenants.service: setup_links": "the suspension of a tenant revokes them",
        **{
            f"app.tenants.counts: {table}": "it counts what a tenant has, by one statement"
            for table in (
                "feature_overrides",
                "memberships",
                "subscriptions",
                "users",
                "webhook_deliveries",
                "webhook_endpoints",
            )
        },
    }
    """Table in the SQL text of a module that lies below the table's room -> why."""

    def test_table_names_in_sql_go_down_only(self):
        rooms = {
            mapper.class_.__tablename__: level_of(mapper.class_.__module__.removesuffix(".models"))
            for mapper in db.Model.registry.mappers
        }

        found = {
            f"{name}: {table}"
            for name, path in modules()
            for table in tables_in(path) & rooms.keys()
            if rooms[table][1] != level_of(name)[1] and rooms[table][0] >= level_of(name)[0]
        }

        assert found == set(self.READS_ABOVE)

    def test_operations_names_no_table_of_a_domain(self):
        """It asks the ``health`` of each domain."""
        tables = {mapper.class_.__tablename__ for mapper in db.Model.registry.mappers}

        found = {
            f"{name}: {table}"
            for name, path in modules()
            for table in tables_in(path) & tables
            if name.startswith("app.operations")
        }

        assert found == set()

    def test_imports_go_down_only(self):
        wrong = []
        for name, path in modules():
            for imported in imports_of(path) - {"app"}:
                level, place = level_of(name)
                target_level, target_place = level_of(imported)
                is_sub_room = "." in place + target_place
                same_house = not is_sub_room and name.split(".")[1] == imported.split(".")[1]
                if place != target_place and not same_house and target_level >= level:
                    wrong.append(f"{name} imports {imported}")

        assert wrong == []

    def test_inside_a_domain_services_know_no_routes_schemas_or_jobs(self):
        forbidden = {
            "service": {"routes", "schemas", "jobs"},
            "models": {"routes", "schemas", "jobs", "service"},
        }
        wrong = [
            f"{name} imports {imported}"
            for name, path in modules()
            for imported in imports_of(path)
            if imported.rpartition(".")[2] in forbidden.get(name.rpartition(".")[2], ())
            and imported.rpartition(".")[0] != "app.core"
        ]

        assert [entry for entry in wrong if "audit.service" not in entry] == []

    def test_services_know_no_flask_and_no_marshmallow(self):
        wrong = [
            name
            for name, path in modules()
            if name.endswith(".service")
            and name != "app.operations.service"  # what it reports on belongs to the application
            and re.search(r"^(import|from) (flask|marshmallow)", _import_lines(path), re.MULTILINE)
        ]

        assert wrong == []

    def test_the_console_imports_no_service_and_no_model(self):
        """Its pages call the API, so they have its permissions, checks and audit rows."""
        shared = ("app.console", "app.surfaces", "app.auth", "app.core", "app.config")
        wrong = [
            f"{name} imports {imported}"
            for name, path in modules()
            for imported in imports_of(path)
            if name.startswith("app.console")
            and (not imported.startswith(shared) or imported.endswith((".models", ".service")))
        ]

        assert wrong == []


class TestTransactions:
    def test_only_the_transactions_module_commits(self):
        wrong = [
            name
            for name, path in modules()
            if name != "app.core.db.transactions"
            and not name.startswith("app.dev")
            and re.search(r"\.(commit|rollback)\(\)", path.read_text())
        ]

        assert wrong == []


REQUEST_OBJECTS = {"g", "request"}  # made to be written to


class TestLibraries:
    """Only documented API of libraries is used."""

    PRIVATE = {
        "app.core.http.blueprint: self._prepare_doc_cbks": "flask-smorest has no other way to document"
        " what every operation has",
        "app.core.openapi.api: self._app": "flask-smorest's Api keeps the application there",
    }
    """Expression -> why there is no public name for it."""

    def test_no_module_uses_the_orms_session(self):
        wrong = [
            name
            for name, path in modules()
            if re.search(r"\bdb\.session\b|sqlalchemy\.orm import .*\bSession\b", path.read_text())
        ]

        assert wrong == []

    def test_no_private_name_of_a_library_is_used(self):
        found = {
            f"{name}: {ast.unparse(node)}"
            for name, path in [*modules(), ("gunicorn.conf", ROOT / "gunicorn.conf.py")]
            for node in private_names(tree_of(path))
        }

        assert found == set(self.PRIVATE)
        assert len(self.PRIVATE) <= 5

    def test_no_address_comes_from_the_host_header(self):
        """``routing.own_address`` is the service's address; a client can send any ``Host``."""
        # The browser's own Origin, and whether it is local.
        compares_only = {"console/access.py", "console/cookies.py"}

        found = {
            str(path.relative_to(APP))
            for path in APP.rglob("*.py")
            if re.search(
                r"\brequest\.(host|host_url|url_root|base_url|root_url|url)\b", path.read_text()
            )
        }

        assert found == {"core/http/routing.py"} | compares_only

    def test_nothing_of_a_library_is_replaced(self):
        """No assignment to an attribute of an imported module or class."""
        wrong = []
        for name, path in modules():
            tree = tree_of(path)
            imported = {
                (alias.asname or alias.name).partition(".")[0]
                for node in ast.walk(tree)
                if isinstance(node, ast.Import)
                or (isinstance(node, ast.ImportFrom) and not (node.module or "").startswith("app"))
                for alias in node.names
                if alias.name not in REQUEST_OBJECTS
            }
            for node in ast.walk(tree):
                targets = node.targets if isinstance(node, ast.Assign) else []
                wrong += [
                    f"{name}: {ast.unparse(target)}"
                    for target in targets
                    if isinstance(target, ast.Attribute)
                    and isinstance(target.value, ast.Name)
                    and target.value.id in imported
                ]

        assert wrong == []


def private_names(tree: ast.AST) -> list[ast.AST]:
    """Each ``x._name`` where ``x`` is no object of ours, and each private name that is imported.

    Named tuples document ``_asdict``, ``_fields``, ``_make`` and ``_replace``, SQLAlchemy documents
    ``_mapping`` of a row, Flask ``_get_current_object`` of a proxy. A name that a module of ours
    assigns or defines is ours.
    """
    documented = {"_asdict", "_fields", "_make", "_replace", "_mapping", "_get_current_object"}
    found: list[ast.AST] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and _is_private(node.attr):
            is_known = node.attr in documented or node.attr in own_names()
            found += [] if is_known else [node]
        elif isinstance(node, ast.ImportFrom) and not (node.module or "").startswith("app"):
            names = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
            found += [node] if any(map(_is_private, names)) else []
    return found


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


@cache
def own_names() -> frozenset[str]:
    """The private names that our modules define."""
    names: set[str] = set()
    for _, path in modules():
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                names.add(node.name)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
                    names.add(node.attr)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.add(node.id)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                names.add(node.target.id)
    return frozenset(names)


class TestEndpoints:
    def test_every_endpoint_names_a_permission_or_is_public(self, app):
        open_ = [
            name
            for name, view in app.view_functions.items()
            if getattr(view, "access", NOBODY) is NOBODY
        ]

        assert open_ == []

    def test_an_endpoint_that_names_nothing_cannot_be_reached(self, app):
        probe = app.view_functions["operations.get_health"]
        view = probe.view

        app.view_functions["operations.get_health"] = lambda: view()
        try:
            answer = app.test_client().get("/healthz")
        finally:
            app.view_functions["operations.get_health"] = probe

        assert answer.status_code == 403

    def test_only_the_named_paths_are_public(self, app):
        public = {
            rule.rule
            for rule in app.url_map.iter_rules()
            if app.view_functions[rule.endpoint].access is for_everybody
        }

        assert {path for path in public if not path.startswith("/docs")} == {
            "/healthz",
            "/readyz",
            "/metrics",
            "/openapi.json",
            "/.well-known/authzen-configuration",
            "/scim/oauth/token",
            "/webhooks/idp",
            "/webhooks/billing/<provider>",
            "/v1/app-communications/webhooks/emailprovider",
            "/",
            "/console/sign-in",
            "/console/sign-in/link",
            "/console/sign-in/oidc",
            "/console/sign-in/callback",
            "/console/assets/<digest>/<name>",
            "/console/brand/<name>",
            "/console/setup/open",
        }

    def test_every_operation_of_the_interface_is_documented_with_its_exact_fields(self, app):
        document = app.test_client().get("/openapi.json").get_json()

        for method, path, fields in INTERFACE:
            operation = document["paths"][path][method]
            content = operation["responses"]["200"]["content"]["application/json"]
            answer = _resolve(document, content["schema"])
            read = _resolve(document, answer["properties"]["data"])
            assert list(answer["required"]) == ["data"]
            assert list(read["properties"]) == fields, path
            assert sorted(read["required"]) == sorted(set(fields) - {"options"}), path


class TestJobs:
    def test_every_queue_has_a_worker_in_the_procfile(self):
        worker = next(
            line
            for line in (ROOT / "Procfile").read_text().splitlines()
            if line.startswith("worker:")
        )

        named = set(re.findall(r"--queue[ =](\S+)", worker))

        assert "flask jobs worker" in worker
        assert not named or named == {queue.value for queue in Queue}

    def test_every_job_name_resolves(self, app):
        for name, registered in JOBS.items():
            module, _, attribute = name.rpartition(".")
            found = getattr(__import__(module, fromlist=[attribute]), attribute)
            assert found is registered
            assert module in {f"app.{domain}.jobs" for domain in DOMAINS}

    def test_jobs_take_ids_as_text(self, app):
        for registered in JOBS.values():
            signature = inspect.signature(registered.function, eval_str=True)
            assert all(p.annotation is str for p in signature.parameters.values()), registered.name


class TestDatabase:
    def test_models_equal_the_migrated_database(self, app):
        with app.app_context():
            engine = create_engine(app.extensions["config"].migration_database_url)
            with engine.connect() as connection:
                context = MigrationContext.configure(connection, opts={"compare_type": True})
                differences = [
                    difference
                    for difference in compare_metadata(context, db.metadata)
                    if "alembic_version" not in str(difference)
                ]

        assert differences == []

    def test_the_application_role_is_plain(self, app):
        (role,) = database.query(
            "SELECT rolsuper, rolbypassrls, "
            "EXISTS (SELECT FROM pg_tables WHERE tableowner = current_user) AS owns_tables "
            "FROM pg_roles WHERE rolname = current_user"
        )

        assert role == (False, False, False)

    def test_tenant_owned_tables_force_row_level_security(self, app):
        rows = database.query(
            "SELECT relname, relrowsecurity, relforcerowsecurity FROM pg_class c "
            "JOIN pg_namespace n ON n.oid = relnamespace AND nspname = 'public' "
            "WHERE relkind IN ('r', 'p')"
        )
        secured = {name for name, enabled, forced in rows if enabled and forced}

        assert secured == tenant_owned()

    def test_without_a_scope_nothing_is_visible(self, app):
        create_member(create_tenant())
        with app.app_context(), transaction() as opened:
            for table in sorted(tenant_owned()):
                cursor = opened.execute(f'SELECT count(*) FROM "{table}"')
                assert cursor.fetchone() == (0,), table

    def test_every_tenant_owned_table_is_known_as_such(self):
        assert tenant_owned() >= {
            mapper.class_.__tablename__
            for mapper in db.Model.registry.mappers
            if issubclass(mapper.class_, TenantRow)
        }


def tenant_owned() -> set[str]:
    """The tables that decisions call tenant-owned: all but the global ones."""
    return set(db.metadata.tables) - GLOBAL


GLOBAL = {
    "alembic_version",
    "api_keys",
    "console_sessions",
    "console_tickets",
    "deleted_organizations",
    "email_events",
    "email_messages",
    "event_feed",
    "idempotency_keys",
    "identity_objects",
    "import_faults",
    "import_pieces",
    "imports",
    "billing_comparisons",
    "plan_presets",
    "plan_prices",
    "product_permissions",
    "platform_admins",
    "search_builds",
    "suppressions",
    "tenants",
    "webhook_events",
    "webhook_feed",
}


def _import_lines(path: Path) -> str:
    lines = path.read_text().splitlines()
    return "\n".join(line for line in lines if re.match(r"\s*(from|import)\b", line)) + "\n"


def _resolve(document: dict, schema: dict) -> dict:
    while "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


INTERFACE = json.loads((Path(__file__).parent / "interface.json").read_text())
