/** A tenant's access decisions in memory, loaded again when the service tells that they have changed. */
import { Following } from "./following.js";
import { isOn, type Rule } from "./rules.js";

const TIMEOUT = 30_000; // milliseconds; a snapshot can have some 20 MB
const WHOLE = ""; // in place of a resource: the whole tenant

type Values = Record<string, unknown>;
export interface Subject {
  type: string;
  id: string;
  properties?: Values;
}
export type Resource = Subject;
export interface Action {
  name: string;
  properties?: Values;
}

/**
 * Decides from a snapshot what `POST /access/v1/evaluation` answers; the token's permission is
 * `access:read`. Without the service the last snapshot stays, and before the first one everything
 * is refused.
 */
export class Access extends Following {
  private snapshot?: Snapshot;

  private constructor(
    url: string,
    token: string,
    private readonly tenantId?: string,
  ) {
    super(url, token);
    this.streamHeaders = this.headers;
  }

  /** Load the first snapshot; throws an ApiError if it is refused. */
  static async open(url: string, token: string, tenantId?: string): Promise<Access> {
    const access = new Access(url, token, tenantId);
    await access.begin();
    return access;
  }

  /** Whether the subject may do it: AuthZEN's objects, or a user's id and a permission. */
  check(subject: Subject | string, action: Action | string, resource: Resource, context = {}): boolean {
    return this.refusal(subject, action, resource, context) === "";
  }

  /** The code of what refuses it first, as `context.reason` has it; empty for a yes. */
  refusal(subject: Subject | string, action: Action | string, resource: Resource, context = {}): string {
    const who = typeof subject === "string" ? { type: "user", id: subject } : subject;
    const what = typeof action === "string" ? { name: action } : action;
    return this.snapshot?.refusal(who, what, resource, context) ?? "unavailable";
  }

  protected ask(_told: string, headers: Record<string, string>): Promise<Response> {
    const query = this.tenantId === undefined ? "" : `?tenant_id=${this.tenantId}`;
    const signal = AbortSignal.timeout(TIMEOUT);
    return fetch(`${this.url}/v1/access/snapshot${query}`, { headers, signal });
  }

  protected load({ data }: any): void {
    this.snapshot = new Snapshot(data);
    this.stream = new URL(data.stream, this.url).href;
  }
}

interface Grant {
  permissions: Set<string>;
  end: number;
}

/** The document, indexed. */
export class Snapshot {
  private readonly permissions: Map<string, any>;
  private readonly flags: Map<string, { value: boolean; rules: Rule[] }>;
  private readonly limits: Map<string, boolean>;
  private readonly resources: Map<string, { parent: string; attributes: Values }>;
  private readonly subjects = new Map<string, any>();
  private readonly grants = new Map<string, Grant[]>();
  private readonly tenant: any;

  constructor(found: any) {
    this.tenant = found.tenant;
    this.permissions = new Map(Object.entries(found.permissions));
    this.flags = new Map(Object.entries(found.flags));
    this.limits = new Map(Object.entries(found.limits));
    this.resources = new Map(
      found.resources.map((one: any) => [place(one), { ...one, parent: place(one.parent) }]),
    );
    for (const key of found.api_keys) this.subjects.set(pair("api_key", key.id), key);
    for (const [way, ...kinds] of [["id", "user"], ["idp_user_id", "user", "identity"], ["email", "email"]] as const) {
      for (const user of found.users) {
        for (const key of kinds.map((kind) => pair(kind, user[way]))) {
          if (user[way] && !this.subjects.has(key)) this.subjects.set(key, user); // the first one counts
        }
      }
    }
    const roles = new Map<string, Set<string>>();
    for (const [key, each] of Object.entries(found.roles)) roles.set(key, new Set(each as string[]));
    for (const one of found.assignments) {
      const target = one.membership_id ?? one.group_id ?? one.api_key_id;
      this.grant(target, place(one.resource), roles.get(one.role)!, momentOf(one.expires_at));
    }
    for (const { membership } of found.users) {
      if (membership) this.grant(membership.id, WHOLE, roles.get(membership.role)!);
    }
    for (const key of found.api_keys) this.grant(key.id, WHOLE, new Set(key.permissions));
  }

  /** As that of `Access`. */
  refusal(subject: Subject, action: Action, resource: Resource, context: Values = {}): string {
    const now = Date.now();
    const name = action.name.toLowerCase();
    const { id, slug, idp_org_id, is_active } = this.tenant;
    const named = (resource.properties?.tenant_id || context.tenant_id) as string | undefined;
    if (named && ![id, slug, idp_org_id].includes(named)) return "tenant_not_found";
    if (!is_active) return "tenant_suspended";
    const known = this.find(subject.type, subject.id);
    if (known === undefined) return "subject_not_found";
    const isUser = "groups" in known;
    if (!known.is_active) return isUser ? "user_inactive" : "key_invalid";
    if (!isUser && momentOf(known.expires_at) <= now) return "key_invalid";
    if (isUser && !known.membership) return "membership_not_found";
    if (isUser && !known.membership.is_active) return "membership_inactive";
    const wanted = this.permissions.get(name);
    if (!wanted) return "permission_not_found";
    const targets = isUser ? [known.membership.id, ...known.groups] : [known.id];
    if (!this.isGranted(name, targets, place(resource), now)) return "permission_denied";
    if (wanted.requires_flag !== null) {
      const flag = this.flags.get(wanted.requires_flag);
      const user = isUser ? known : null;
      if (!flag || !isOn(flag, this.facts(user, subject, action, resource, context))) return "flag_off";
    }
    const hasLeft = wanted.requires_limit === null || this.limits.get(wanted.requires_limit);
    return hasLeft ? "" : "limit_reached";
  }

  private find(kind: string, name: string): any {
    const found = this.subjects.get(pair(kind, name));
    if (found || !["user", "email"].includes(kind) || !name.includes("@")) return found;
    return this.subjects.get(pair("email", name.toLowerCase().normalize("NFC")));
  }

  private grant(target: string, on: string, permissions: Set<string>, end = Infinity): void {
    const key = pair(target, on);
    const known = this.grants.get(key);
    if (known) known.push({ permissions, end });
    else this.grants.set(key, [{ permissions, end }]);
  }

  private isGranted(name: string, targets: string[], at: string, now: number): boolean {
    const places = [WHOLE];
    for (let one; (one = this.resources.get(at)); at = one.parent) places.push(at);
    const grants = places.flatMap((on) =>
      targets.flatMap((target) => this.grants.get(pair(target, on)) ?? []),
    );
    return grants.some(({ permissions, end }) => permissions.has(name) && now < end);
  }

  /** What rules compare, by attribute. */
  private facts(user: any, subject: Subject, action: Action, resource: Resource, context: Values) {
    const facts = new Map<string, unknown>();
    const add = (prefix: string, values: Values = {}) => {
      for (const [key, value] of Object.entries(values)) {
        if (["string", "number", "boolean"].includes(typeof value)) facts.set(prefix + key, value);
      }
    };
    add("context.", context);
    add("context.subject_", subject.properties);
    const registered = this.resources.get(place(resource))?.attributes;
    add("context.resource_", { ...registered, ...resource.properties });
    add("context.action_", action.properties);
    facts.set("context.targetingKey", user?.id);
    if (user) {
      facts.set("user.role", user.membership.role);
      facts.set("user.email_domain", user.email.slice(user.email.lastIndexOf("@") + 1));
      for (const key in user.meta_data) facts.set(`user.meta_data.${key}`, user.meta_data[key]);
    }
    for (const key in this.tenant.facts) facts.set(key, this.tenant.facts[key]);
    return facts;
  }
}

function pair(one: string, other: string): string {
  return `${one}\0${other}`;
}

function place(resource: { type: string; id: string } | null): string {
  return resource === null ? WHOLE : pair(resource.type, resource.id);
}

/** Milliseconds; null is never. */
function momentOf(text: string | null): number {
  return text === null ? Infinity : Date.parse(text);
}
