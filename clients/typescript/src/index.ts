/** The client of the tenant control plane: `createClient(url, token)` has a call for each path. */
import createFetchClient, { type Client as FetchClient, type Middleware } from "openapi-fetch";
import type { components, paths } from "./schema.js";

export type { components, operations, paths } from "./schema.js";
export type Schemas = components["schemas"];
export type Client = FetchClient<paths>;

const KEY = "Idempotency-Key";
const CONSISTENCY = "X-Consistency";
const SAFE = ["GET", "HEAD", "OPTIONS"];
const MAX_PAUSE = 60; // seconds; a longer Retry-After is the caller's

/** What is wrong with one value of a request. */
export interface Fault {
  type: string;
  loc: (string | number)[];
  msg: string;
}

/** An error that the service answers: `code` is for programs, `errors` are those of a 422. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string | null;
  readonly detail: string;
  readonly errors: Fault[];

  constructor(readonly response: Response, body: unknown) {
    const found = (typeof body === "object" && body !== null ? body : {}) as Record<string, unknown>;
    const detail = found.detail ?? found.errorDetails ?? response.statusText;
    const errors = Array.isArray(detail) ? (detail as Fault[]) : [];
    const sentence = errors.map(({ loc, msg }) => `${loc.join(".")}: ${msg}`).join("; ");
    const code = (found.code ?? found.errorCode ?? null) as string | null;
    super(`${response.status}${code === null ? "" : ` ${code}`}: ${sentence || detail}`);
    this.name = "ApiError";
    this.status = response.status;
    this.code = code;
    this.detail = sentence || String(detail);
    this.errors = errors;
  }

  static async of(response: Response): Promise<ApiError> {
    return new ApiError(response, await response.clone().json().catch(() => null));
  }
}

export interface Options {
  /** How often a request is sent at most. */
  attempts?: number;
  /** Milliseconds until an attempt ends. */
  timeout?: number;
  fetch?: (request: Request) => Promise<Response>;
}

/**
 * Calls of the API with a token. Each POST gets an `Idempotency-Key`. A GET, and any request with a
 * key, is sent again after a connection error, 429, 503 and 409 `idempotency_in_progress`. A read
 * sees what earlier requests have changed, also on a replica.
 */
export function createClient(url: string, token: string, options: Options = {}): Client {
  const { attempts = 4, timeout = 30_000, fetch = globalThis.fetch } = options;
  let lastChange: string | null = null;

  async function send(request: Request, number = 1): Promise<Response> {
    const isFinal =
      number >= attempts || !(SAFE.includes(request.method) || request.headers.has(KEY));
    const attempt = isFinal ? request : request.clone();
    const signal = AbortSignal.any([request.signal, AbortSignal.timeout(timeout)]);
    let pause = 2 ** number * (0.1 + 0.15 * Math.random());
    try {
      const response = await fetch(new Request(attempt, { signal }));
      if (isFinal || !(await isBusy(response))) return response;
      pause = Number(response.headers.get("Retry-After") ?? pause);
      if (!(pause <= MAX_PAUSE)) return response;
      await response.body?.cancel();
    } catch (fault) {
      if (isFinal || request.signal.aborted) throw fault;
    }
    await new Promise((resolve) => setTimeout(resolve, pause * 1000));
    return send(request, number + 1);
  }

  const middleware: Middleware = {
    onRequest({ request }) {
      request.headers.set("Authorization", `Bearer ${token}`);
      if (request.method === "POST" && !request.headers.has(KEY)) {
        request.headers.set(KEY, crypto.randomUUID());
      }
      if (lastChange !== null) request.headers.set(CONSISTENCY, lastChange);
    },
    async onResponse({ response }) {
      if (response.status >= 400) throw await ApiError.of(response);
      lastChange = response.headers.get(CONSISTENCY) ?? lastChange;
    },
  };
  const client = createFetchClient<paths>({ baseUrl: url, fetch: (request) => send(request) });
  client.use(middleware);
  return client;
}

async function isBusy(response: Response): Promise<boolean> {
  if (response.status === 429 || response.status === 503) return true;
  return response.status === 409 && (await ApiError.of(response)).code === "idempotency_in_progress";
}

/** The body of an answer. Errors are thrown, so there is one unless the status is 204 or 304. */
export async function body<T>(answer: Promise<{ data?: T }>): Promise<NonNullable<T>> {
  return (await answer).data!;
}

/** The rows of all pages: `each((cursor) => api.GET(…, { params: { query: { cursor } } }))`. */
export async function* each<Row>(
  read: (cursor?: string) => Promise<{ data?: { data: Row[]; next_cursor?: string | null } }>,
): AsyncGenerator<Row> {
  let cursor: string | undefined;
  do {
    const page = await body(read(cursor));
    yield* page.data;
    cursor = (page.data.length > 0 && page.next_cursor) || undefined;
  } while (cursor !== undefined);
}

/** The version of what a call has answered, for `If-Match`. */
export function etag({ response }: { response: Response }): string {
  return response.headers.get("ETag")!;
}
