import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";

import { ApiError } from "../dist/index.js";
import { Flags } from "../dist/flags.js";

let server, url, value, stream, told;

before(async () => {
  value = false;
  server = createServer((request, response) => {
    if (request.url.startsWith("/ofrep/v1/events")) {
      stream = response.writeHead(200, { "Content-Type": "text/event-stream" });
      return stream.write("retry: 1000\n\n");
    }
    if (request.headers.authorization !== "Bearer secret") return response.writeHead(401).end();
    told = new URL(request.url, url).searchParams.get("flagConfigEtag");
    const etag = `"${value}"`;
    if (request.headers["if-none-match"] === etag) return response.writeHead(304).end();
    response.writeHead(200, { "Content-Type": "application/json", ETag: etag });
    const eventStreams = [{ type: "sse", endpoint: { requestUri: "/ofrep/v1/events?grant=x" } }];
    const flags = [{ key: "beta", value }, { key: "color", value: "red" }, { key: "nothing" }];
    response.end(JSON.stringify({ flags, eventStreams }));
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  url = `http://127.0.0.1:${server.address().port}`;
});

after(() => server.closeAllConnections() ?? server.close());

async function until(holds) {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 10));
}

test("flags are read at once, and again after an event, also on a new stream", async () => {
  const flags = await Flags.open(url, "secret");
  assert.deepEqual(
    [flags.get("beta", true), flags.get("color", ""), flags.get("nothing", 7), flags.get("no", 1)],
    [false, "red", 7, 1],
  );

  await until(() => stream);
  value = true;
  stream.write('id: x\nevent: message\ndata: {"type": "refetchEvaluation", ');
  stream.write('"etag": "\\"true\\""}\n\n');
  await until(() => flags.get("beta", false));
  assert.equal(told, '"true"');

  value = "again";
  stream.destroy();
  await until(() => flags.get("beta", false) === "again");
  flags.close();
});

test("a refused credential is an error, an unavailable service is not", async () => {
  await assert.rejects(Flags.open(url, "other"), (error) => error instanceof ApiError);

  const flags = await Flags.open("http://127.0.0.1:1", "secret");
  flags.close();

  assert.equal(flags.get("beta", 3), 3);
});
