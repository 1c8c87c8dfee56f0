import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { after, before, test } from "node:test";

import { Access, Snapshot } from "../dist/access.js";
import { ApiError } from "../dist/index.js";

const CASES = new URL("../../access-cases.jsonl", import.meta.url); // the service's own answers
const worlds = readFileSync(CASES, "utf8").trim().split("\n").map((line) => JSON.parse(line));
let server, url, isActive, stream;

before(async () => {
  isActive = true;
  server = createServer((request, response) => {
    if (request.headers.authorization !== "Bearer secret") return response.writeHead(401).end();
    if (request.url === "/v1/access/events?tenant_id=t") {
      stream = response.writeHead(200, { "Content-Type": "text/event-stream" });
      return stream.write("retry: 1000\n\n");
    }
    const { snapshot } = worlds.find(({ cases }) => cases.some(([, code]) => code === ""));
    const tenant = { ...snapshot.tenant, is_active: isActive };
    const data = { ...snapshot, tenant, stream: "/v1/access/events?tenant_id=t" };
    response.writeHead(200, { "Content-Type": "application/json", ETag: `"${isActive}"` });
    response.end(JSON.stringify({ data }));
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  url = `http://127.0.0.1:${server.address().port}`;
});

after(() => server.closeAllConnections() ?? server.close());

async function until(holds) {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 10));
}

test("a snapshot decides as the service", () => {
  for (const { snapshot, cases } of worlds) {
    const known = new Snapshot(snapshot);
    for (const [{ subject, action, resource, context }, code] of cases) {
      const found = known.refusal(subject, action, resource, context);
      assert.equal(found, code, JSON.stringify({ subject, action, resource, context }));
    }
  }
});

test("access is loaded at once, and again after an event", async () => {
  const { cases } = worlds.find(({ cases }) => cases.some(([, code]) => code === ""));
  const [{ subject, action, resource, context }] = cases.find(([, code]) => code === "");
  const access = await Access.open(url, "secret");
  assert.equal(access.check(subject, action, resource, context), true);

  await until(() => stream);
  isActive = false;
  stream.write('id: x\ndata: {"type": "refetchSnapshot", "etag": "\\"false\\""}\n\n');
  await until(() => !access.check(subject, action, resource, context));
  assert.equal(access.refusal(subject, action, resource, context), "tenant_suspended");
  access.close();
});

test("a refused credential is an error, an unavailable service refuses everything", async () => {
  await assert.rejects(Access.open(url, "other"), (error) => error instanceof ApiError);

  const access = await Access.open("http://127.0.0.1:1", "secret");
  access.close();

  assert.equal(access.refusal("ada", "doc:read", { type: "doc", id: "1" }), "unavailable");
});
