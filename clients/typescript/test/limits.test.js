import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, beforeEach, test } from "node:test";

import { ApiError } from "../dist/index.js";
import { Limits } from "../dist/limits.js";

let server, url, prefix, requests, lease, free, used, isAway, made;

/** What the service answers: a status and JSON. */
function answer(method, path, body) {
  if (isAway) return [503, { detail: "Busy" }];
  if (body.feature === "unknown") return [422, { detail: [] }];
  if (path.endsWith("consume")) {
    if (body.feature !== "soft" && free < body.amount) return [409, { code: "limit_reached" }];
    if (body.feature !== "soft") free -= body.amount;
    used += body.amount;
    return [200, { data: { allowed: true } }];
  }
  if (method === "POST") {
    if (body.feature === "soft") return [422, { detail: [] }];
    if (free === 0) return [409, { code: "limit_reached" }];
    lease = { id: "1", state: "open", counted: 0, over_by: 0, amount: Math.min(body.amount, free) };
    free -= lease.amount;
    return [201, { data: lease }];
  }
  if (lease.state !== "open") return [409, { code: "hold_ended", data: lease }];
  const added = body.used - lease.counted;
  used += added;
  lease.counted = body.used;
  free += lease.amount - added;
  lease.amount = Math.min(body.amount, free);
  free -= lease.amount;
  if (body.amount === 0) lease.state = "settled";
  return [200, { data: lease }];
}

before(async () => {
  server = createServer(async (request, response) => {
    let text = "";
    for await (const part of request) text += part;
    // One that an earlier test has sent, and no longer waits for.
    if (!request.url.startsWith(prefix)) return response.writeHead(503).end();
    requests.push(`${request.method} ${request.url}`);
    const [status, json] = answer(request.method, request.url, JSON.parse(text));
    response.writeHead(status, { "Content-Type": "application/json" });
    response.end(JSON.stringify(json));
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
});

after(() => server.close());

beforeEach((current) => {
  prefix = `/${encodeURIComponent(current.name)}/`;
  url = `http://127.0.0.1:${server.address().port}${prefix.slice(0, -1)}`;
  [requests, free, used, isAway] = [[], 1000, 0, false];
});

/** How many of `times` calls are allowed. */
async function allowed(limits, feature, times) {
  let number = 0;
  for (let call = 0; call < times; call += 1) number += await limits.allow(feature);
  return number;
}

test("units are borrowed, reported and returned with few requests", async () => {
  const limits = new Limits(url, "secret");

  assert.equal(await allowed(limits, "calls", 500), 500);
  await limits.close();

  assert.deepEqual([used, free], [500, 500]);
  assert.ok(requests.length < 15);
});

test("calls at the same time get exactly what is free", async () => {
  const limits = new Limits(url, "secret");

  const answers = await Promise.all(Array.from({ length: 1500 }, () => limits.allow("calls")));
  await limits.close();

  assert.equal(answers.filter((one) => one).length, 1000);
  assert.equal(used, 1000);
});

test("in the background use is reported, and what is not used returned", async () => {
  const limits = new Limits(url, "secret", { ttl: 5 });
  await allowed(limits, "calls", 300);

  while (used < 300 || free < 700) await new Promise((resolve) => setTimeout(resolve, 20));

  await limits.close();
});

test("a limit without leases is counted call by call, an unknown one is an error", async () => {
  const limits = new Limits(url, "secret");

  assert.equal(await allowed(limits, "soft", 10), 10);
  await assert.rejects(limits.allow("unknown"), (error) => error instanceof ApiError);
  await assert.rejects(limits.allow("calls", 0), RangeError);

  assert.equal(used, 10);
});

test("without the service what is borrowed is allowed, and lenient limits report later", async () => {
  const limits = new Limits(url, "secret", { lenient: ["soft"], ttl: 5 });
  await limits.allow("calls", 10);
  await limits.allow("calls", 1); // of 20 that it borrows

  isAway = true;
  assert.equal(await allowed(limits, "calls", 50), 19);
  assert.equal(await allowed(limits, "soft", 50), 50);
  isAway = false;
  while (used < 80) await new Promise((resolve) => setTimeout(resolve, 20));

  await limits.close();
  assert.deepEqual([used, free], [80, 970]);
});

test("what was used of a lease that somebody has ended is counted without it", async () => {
  const limits = new Limits(url, "secret");
  await limits.allow("calls", 10);
  free += lease.amount;
  lease = { ...lease, amount: 0, state: "released" };

  await limits.close();

  assert.deepEqual([used, free], [10, 990]);
});
