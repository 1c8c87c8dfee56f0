/** Something in memory that is read again when the service tells that it has changed. */
import { setTimeout as sleep } from "node:timers/promises";

import { ApiError } from "./index.js";

const POLL = 30_000; // milliseconds between two reads while there is no stream
const SILENCE = 40_000; // milliseconds without a byte; a stream sends some every 15 s

/** Without the service the last state stays. */
export abstract class Following {
  protected stream = "";
  protected streamHeaders: Record<string, string> = {};
  protected readonly url: string;
  protected readonly headers: Record<string, string>;
  private etag = "";
  private readonly closing = new AbortController();

  protected constructor(url: string, token: string) {
    this.url = url.replace(/\/$/, "");
    this.headers = { Authorization: `Bearer ${token}` };
  }

  /** Learn of no more changes, so that the program can end. */
  close(): void {
    this.closing.abort();
  }

  /** Request the state; `told` is the ETag that the stream has named. */
  protected abstract ask(told: string, headers: Record<string, string>): Promise<Response>;

  /** Take a new state, and the address of its stream. */
  protected abstract load(found: any): void;

  /** Read the first state, and follow; throws an ApiError if it is refused. */
  protected async begin(): Promise<void> {
    await this.read().catch((fault) => {
      if (fault instanceof ApiError && fault.status < 500) throw fault;
    });
    void this.run();
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
    const answer = await this.ask(told, { ...this.headers, "If-None-Match": this.etag });
    if (answer.status >= 400) throw await ApiError.of(answer);
    if (answer.status === 304) return;
    this.load(await answer.json());
    this.etag = answer.headers.get("ETag")!;
  }

  /** Read again at each event until the stream ends; false if there is none. */
  private async listen(): Promise<boolean> {
    const silence = new AbortController();
    const timer = setTimeout(() => silence.abort(), SILENCE);
    try {
      const signal = AbortSignal.any([this.closing.signal, silence.signal]);
      const { status, body } = await fetch(this.stream, { signal, headers: this.streamHeaders });
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
