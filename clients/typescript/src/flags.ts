/** A tenant's flags in memory, read again when the service tells that they have changed. */
import { Following } from "./following.js";

/** The values of all flags by OFREP. Without the service the last ones stay. */
export class Flags extends Following {
  private values = new Map<string, unknown>();

  private constructor(
    url: string,
    token: string,
    private readonly context: object,
  ) {
    super(url, token);
  }

  /** Read the first values; throws an ApiError if they are refused. `context` may have a `tenant_id`. */
  static async open(url: string, token: string, context = {}): Promise<Flags> {
    const flags = new Flags(url, token, context);
    await flags.begin();
    return flags;
  }

  /** A flag's value; `fallback` if the plan has no such flag, or its value is null. */
  get<T>(key: string, fallback: T): T {
    return (this.values.get(key) as T | undefined) ?? fallback;
  }

  protected ask(told: string, headers: Record<string, string>): Promise<Response> {
    const url = `${this.url}/ofrep/v1/evaluate/flags?flagConfigEtag=${encodeURIComponent(told)}`;
    return fetch(url, {
      method: "POST",
      body: JSON.stringify({ context: this.context }),
      headers: { ...headers, "Content-Type": "application/json" },
      signal: AbortSignal.timeout(5000),
    });
  }

  protected load({ flags, eventStreams = [] }: any): void {
    this.values = new Map(flags.map((flag: any) => [flag.key, flag.value]));
    for (const { url, endpoint } of eventStreams) this.stream = url ?? this.url + endpoint.requestUri;
  }
}
