import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, beforeEach, test } from "node:test";

import { ApiError, body, createClient, each, etag } from "../dist/index.js";

const USERS = "/v1/users";
let server, url, requests, answers;

/** The next answers: status, JSON, headers; without a status the connection ends. */
function answer(...next) {
  answers.push(...next);
}

before(async () => {
  server = createServer((request, response) => {
    request.resume().on("end", () => {
      requests.push(request);
      const [status, json, headers] = answers.shift() ?? [200, { data: [], next_cursor: null }];
      if (status === undefined) return request.socket.destroy();
      response.writeHead(status, { "Content-Type": "application/json", ...headers });
      response.end(JSON.stringify(json));
    });
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  url = `http://127.0.0.1:${server.address().port}`;
});

after(() => server.close());

beforeEach(() => {
  requests = [];
  answers = [];
});

test("a POST is sent again with its key after a lost answer and a 409 that says so", async () => {
  answer([], [409, { detail: "Wait", code: "idempotency_in_progress" }], [201, { data: { id: "1" } }]);

  const created = await body(createClient(url, "secret").POST(USERS, { body: { email: "a@b.co" } }));

  assert.equal(created.data.id, "1");
  assert.equal(requests.length, 3);
  assert.equal(new Set(requests.map((one) => one.headers["idempotency-key"])).size, 1);
  assert.equal(requests[0].headers.authorization, "Bearer secret");
});

test("a GET waits as long as Retry-After says", async () => {
  answer([503, {}, { "Retry-After": "1" }]);
  const start = Date.now();

  await createClient(url, "secret").GET(USERS);

  assert.ok(Date.now() - start >= 990);
  assert.equal(requests.length, 2);
});

test("a PATCH without a key is sent once", async () => {
  answer([503, { detail: "Busy" }]);

  const sent = createClient(url, "secret").PATCH("/v1/users/{user_id}", {
    params: { path: { user_id: "1" } },
    body: {},
  });

  await assert.rejects(sent, (error) => error instanceof ApiError && error.detail === "Busy");
  assert.equal(requests.length, 1);
});

test("a request that is refused is not sent again", async () => {
  const detail = [{ type: "missing", loc: ["body", "email"], msg: "Field required" }];
  answer([422, { detail }]);

  const sent = createClient(url, "secret").POST(USERS, { body: {} });

  await assert.rejects(sent, { status: 422, code: null, detail: "body.email: Field required" });
  assert.equal(requests.length, 1);
});

test("all pages are read, and each request sees what the one before has seen", async () => {
  answer([200, { data: [1, 2], next_cursor: "x" }, { "X-Consistency": "0/1", ETag: '"7"' }]);
  answer([200, { data: [3], next_cursor: null }]);
  const api = createClient(url, "secret");
  const found = [];

  for await (const one of each((cursor) => api.GET(USERS, { params: { query: { cursor } } }))) {
    found.push(one);
  }

  assert.deepEqual(found, [1, 2, 3]);
  assert.equal(requests[1].url, `${USERS}?cursor=x`);
  assert.equal(requests[1].headers["x-consistency"], "0/1");
});

test("the version of an answer is its ETag", async () => {
  answer([200, { data: {} }, { ETag: '"7"' }]);

  const read = await createClient(url, "secret").GET(USERS);

  assert.equal(etag(read), '"7"');
});
