/** Exact limits at the speed of memory: units are borrowed (leases), used and reported. */
import { ApiError, createClient, type Client, type Schemas } from "./index.js";

const USABLE = 0.9; // of a lease's time; after the whole time the service lends the units to others
const TURNS = 6; // reports in a lease's time
const PAUSE = 1000; // milliseconds until the service is asked again after a refusal or a fault

class Lease {
  id = "";
  unanswered = -1; // what was used when a report got no answer
  left = 0;
  used = 0;
  usedBefore = 0;
  size = 0;
  ends = 0;
  asksAt = 0;
  denied = 0; // the amount that did not fit
  deniedUntil = 0;
  owed = 0; // used without a lease
  readonly keys = new Map<number, string[]>(); // of lost answers, by the amount
  turn: Promise<unknown> = Promise.resolve(); // one renewal after the other

  constructor(readonly feature: string) {}

  take(n: number): boolean {
    if (n > this.left || performance.now() >= this.ends) return false;
    this.left -= n;
    this.used += n;
    return true;
  }

  /** Forget the lease, of which the service knows so many used units. */
  end(known: number): void {
    this.owed += this.used - known;
    this.id = "";
    this.unanswered = -1;
    this.left = this.used = this.usedBefore = this.size = 0;
  }

  inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.turn.then(work);
    this.turn = done.catch(() => null);
    return done;
  }
}

export interface LimitsOptions {
  /** For platform credentials. */
  tenantId?: string;
  /** Limits that allow everything while the service is away, and report it later. */
  lenient?: string[];
  /** Seconds of a lease; while the service is away, what is borrowed is allowed so long. */
  ttl?: number;
}

/** Counts what a tenant uses of its limits. */
export class Limits {
  private readonly api: Client;
  private readonly leases = new Map<string, Lease>();
  private readonly tenant: { tenant_id?: string };
  private readonly lenient: Set<string>;
  private readonly ttl: number;
  private readonly timer: NodeJS.Timeout;
  private awayUntil = 0;
  private isClosed = false;

  constructor(url: string, token: string, { tenantId, lenient, ttl = 60 }: LimitsOptions = {}) {
    this.api = createClient(url, token, { timeout: 2000, attempts: 1 });
    this.tenant = tenantId === undefined ? {} : { tenant_id: tenantId };
    this.lenient = new Set(lenient);
    this.ttl = ttl;
    const renew = () => void Promise.all([...this.leases.values()].map((one) => this.renew(one)));
    this.timer = setInterval(renew, (ttl * 1000) / TURNS).unref();
    process.once("beforeExit", () => void this.close());
  }

  /**
   * Count `n` units and resolve to true, or count none; throws an ApiError for an unknown limit.
   * It sends a request only where too little is borrowed.
   */
  async allow(feature: string, n = 1): Promise<boolean> {
    if (!(n >= 1)) throw new RangeError("n must be at least 1");
    const lease = this.leases.get(feature) ?? new Lease(feature);
    this.leases.set(feature, lease);
    if (lease.take(n) || (await lease.inTurn(() => this.borrow(lease, n)))) return true;
    return this.consume(lease, n);
  }

  /** Report what was used and return the rest; a program that ends does it by itself. */
  async close(): Promise<void> {
    if (this.isClosed) return;
    this.isClosed = true;
    clearInterval(this.timer);
    await Promise.all([...this.leases.values()].map((one) => this.renew(one)));
  }

  private async borrow(lease: Lease, n: number): Promise<boolean> {
    while (!lease.take(n)) {
      if (performance.now() < Math.max(lease.asksAt, this.awayUntil)) return false;
      await this.exchange(lease, Math.max(2 * lease.size, n));
    }
    return true;
  }

  /** Report, and keep twice what was used since the last time, or nothing at the end. */
  private renew(lease: Lease): Promise<void> {
    return lease.inTurn(async () => {
      const recent = lease.used - lease.usedBefore;
      lease.usedBefore = lease.used;
      await this.exchange(lease, this.isClosed ? 0 : 2 * recent);
      const lost = [...lease.keys].find(([n, keys]) => keys.length > 0 && n <= lease.owed);
      const n = lost?.[0] ?? lease.owed;
      if (n > 0 && (await this.count(lease, n)) === true) lease.owed -= n;
    });
  }

  /** Report, and borrow `size` units or as many as are free; 0 ends the lease. */
  private async exchange(lease: Lease, size: number): Promise<void> {
    const began = performance.now();
    const { id, used, feature } = lease;
    // An earlier report may arrive later than this one, and change the size.
    if (used === lease.unanswered) size = 0;
    lease.left = Math.min(lease.left, size); // the rest is lent to others
    const kept = id ? lease.left : 0;
    if (!id && size === 0) return;
    const wanted = { ...this.tenant, feature, amount: size, ttl_seconds: this.ttl };
    const found = await this.send<Schemas["UsageHold"]>(
      id
        ? this.api.PUT("/v1/usage/leases/{lease_id}", {
            params: { path: { lease_id: id } },
            body: { used, amount: size },
          })
        : this.api.POST("/v1/usage/leases", { body: wanted }),
    );
    if (found instanceof ApiError) {
      lease.asksAt = began + PAUSE;
      if (id && found.code === "hold_ended") {
        const ended = (await found.response.json()).data;
        lease.end(ended.counted + ended.over_by);
      } else if (id && (found.status === 404 || found.status === 409)) lease.end(used);
    } else if (found && found.state !== "open") lease.end(used);
    else if (found) {
      lease.id = found.id;
      lease.size = found.amount;
      lease.left += found.amount - kept;
      lease.ends = began + this.ttl * 1000 * USABLE;
      lease.asksAt = found.amount < size ? began + PAUSE : 0;
    } else if (id) lease.unanswered = used;
  }

  private async consume(lease: Lease, n: number): Promise<boolean> {
    const now = performance.now();
    if (n >= lease.denied && now < lease.deniedUntil) return false;
    const found = now < this.awayUntil ? undefined : await this.count(lease, n);
    if (found === true) return true;
    if (found !== undefined) {
      if (found.code !== "limit_reached") throw found;
      [lease.denied, lease.deniedUntil] = [n, now + PAUSE];
      return false;
    }
    if (!this.lenient.has(lease.feature)) return false;
    if (lease.id) {
      lease.used += n; // more than was lent, which the service records as an overrun
      lease.left -= n;
    } else lease.owed += n;
    return true;
  }

  /** Count without a lease. What a request with a lost answer has counted is counted once. */
  private async count(lease: Lease, n: number): Promise<true | ApiError | undefined> {
    const keys = lease.keys.get(n) ?? [];
    lease.keys.set(n, keys);
    const key = keys.pop() ?? crypto.randomUUID();
    const { feature } = lease;
    const wanted = { ...this.tenant, feature, amount: n, idempotency_key: key };
    const found = await this.send<unknown>(this.api.POST("/v1/usage/consume", { body: wanted }));
    if (found === undefined) keys.push(key);
    return found === undefined || found instanceof ApiError ? found : true;
  }

  /** The answer, or the error that refuses the request; undefined if the service is away. */
  private async send<T>(
    request: Promise<{ data?: { data: T } }>,
  ): Promise<T | ApiError | undefined> {
    try {
      return (await request).data?.data;
    } catch (fault) {
      if (fault instanceof ApiError && fault.status !== 429 && fault.status < 500) return fault;
      this.awayUntil = performance.now() + PAUSE;
      return undefined;
    }
  }
}
