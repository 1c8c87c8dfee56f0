// Resolves flags as an application does, with OpenFeature's JavaScript SDKs and their OFREP providers.
//
//   node openfeature.mjs server|web '{"baseUrl", "key", "contexts", "defaults"}'
//
// Prints {"resolved": [...], "requests": [...]}: for each context the details of each flag in
// `defaults`, and for each request that the web provider sent its status and its ETag.

import { OFREPProvider } from '@openfeature/ofrep-provider';
import { OFREPWebProvider } from '@openfeature/ofrep-web-provider';
import { OpenFeature as ServerSdk } from '@openfeature/server-sdk';
import { OpenFeature as WebSdk } from '@openfeature/web-sdk';

const RESOLVERS = {
  boolean: 'getBooleanDetails',
  string: 'getStringDetails',
  number: 'getNumberDetails',
  object: 'getObjectDetails',
};

const [kind, job] = process.argv.slice(2);
const { baseUrl, key, contexts, defaults } = JSON.parse(job);
const headers = [['Authorization', `Bearer ${key}`]];

async function resolveAll(client, context) {
  const found = {};
  for (const [flag, fallback] of Object.entries(defaults)) {
    const details = await client[RESOLVERS[typeof fallback]](flag, fallback, context);
    const { value, reason, variant, errorCode, flagMetadata } = details;
    found[flag] = { value, reason, variant, errorCode, plan: flagMetadata.plan };
  }
  return found;
}

async function server() {
  await ServerSdk.setProviderAndWait(new OFREPProvider({ baseUrl, headers }));
  const resolved = [];
  for (const context of contexts) {
    resolved.push(await resolveAll(ServerSdk.getClient(), context));
  }
  return { resolved };
}

async function web() {
  const requests = [];
  const fetchImplementation = async (request, options) => {
    const response = await fetch(request, options);
    requests.push({ status: response.status, etag: response.headers.get('ETag') });
    return response;
  };
  const cacheMode = 'disabled'; // there is no localStorage
  const provider = new OFREPWebProvider({ baseUrl, headers, fetchImplementation, cacheMode });
  const resolved = [];
  for (const context of contexts) {
    await WebSdk.setContext(context);
    if (resolved.length === 0) {
      await WebSdk.setProviderAndWait(provider);
    }
    resolved.push(await resolveAll(WebSdk.getClient()));
  }
  return { resolved, requests };
}

console.log(JSON.stringify(await { server, web }[kind]()));
