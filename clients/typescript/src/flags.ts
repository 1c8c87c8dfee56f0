/** A tenant's flags in memory, read again when the service tells that they have changed. */
import { setTimeout as sleep } from "node:timers/promises";

import { ApiError } from "./index.js";

const POLL = 30_000; // milliseconds between two reads while there is no stream
const SILENCE = 40_000; // milliseconds without a byte; a stream sends some every 15 s

/** The values of all flags by OFREP. Without the service the last ones stay. */
export class Flags {
  private values = new Map<string, unknown>();
  private etag = "";
  private stream = "";
  private readonly closing = new AbortController();

  private constructor(
    private readonly url: string,
    private readonly token: string,
    private readonly context: object,
  ) {}

  /** Read the first values; throws an ApiError if they are refused. `context` may have a `tenant_id`. */
  static async open(url: string, token: string, context = {}): Promise<Flags> {
    const flags = new Flags(url.replace(/\/$/, ""), token, context);
    await flags.read().catch((fault) => {
      if (fault instanceof ApiError && fault.status < 500) throw fault;
    });
    void flags.run();
    return flags;
  }

  /** A flag's value; `fallback` if the plan has no such flag, or its value is null. */
  get<T>(key: string, fallback: T): T {
    return (this.values.get(key) as T | undefined) ?? fallback;
  }

  /** Learn of no more changes, so that the program can end. */
  close(): void {
    this.closing.abort();
  }

  private async run(): Promise<void> {
    while (!this.closing.signal.aborted) {
      const isStream = await this.listen().catch(() => true);
      const pause = isStream ? 1000 + 4000 * Math.random() : POLL; // clients do not return together
      await sleep(pause, null, { signal: this.closing.signal }).catch(() => null);
      await this.read().catch(() => null);
    }
  }

  private async read(told = ""): Promise<void> {
    const url = `${this.url}/ofrep/v1/evaluate/flags?flagConfigEtag=${encodeURIComponent(told)}`;
    const signal = AbortSignal.timeout(5000);
    const headers = {
      Authorization: `Bearer ${this.token}`,
      "Content-Type": "application/json",
      "If-None-Match": this.etag,
    };
    const body = JSON.stringify({ context: this.context });
    const answer = await fetch(url, { method: "POST", body, headers, signal });
    if (answer.status >= 400) throw await ApiError.of(answer);
    if (answer.status === 304) return;
    const { flags, eventStreams = [] } = await answer.json();
    this.etag = answer.headers.get("ETag")!;
    this.values = new Map(flags.map((flag: any) => [flag.key, flag.value]));
    for (const { url, endpoint } of eventStreams) this.stream = url ?? this.url + endpoint.requestUri;
  }

  /** Read the flags at each event until the stream ends; false if there is none. */
  private async listen(): Promise<boolean> {
    const silence = new AbortController();
    const timer = setTimeout(() => silence.abort(), SILENCE);
    try {
      const signal = AbortSignal.any([this.closing.signal, silence.signal]);
      const { status, body } = await fetch(this.stream, { signal });
      if (status !== 200) {
        this.etag = ""; // the next answer has a new address of the stream
        return false;
      }
      let text = "";
      for await (const part of body!.pipeThrough(new TextDecoderStream())) {
        timer.refresh();
        const lines = (text + part).split("\n");
        text = lines.pop()!;
        for (const line of lines) {
          if (line.startsWith("data:")) await this.read(JSON.parse(line.slice(5)).etag);
        }
      }
      return true;
    } finally {
      clearTimeout(timer);
    }
  }
}
