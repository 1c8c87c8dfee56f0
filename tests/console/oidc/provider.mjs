// A certified OpenID provider for tests: everybody who signs in by a name is who they say.
// The ID token of a name such as `ada@org_1` names the organization `org_1`, and that of a name such
// as `ada!example.com` the verified address `ada@example.com`.
import { createServer } from "node:http";
import { generateKeyPairSync } from "node:crypto";
import { Provider } from "oidc-provider";

const [clientId, clientSecret, redirectUri] = process.argv.slice(2);
const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const server = createServer();

server.listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [{ client_id: clientId, client_secret: clientSecret, redirect_uris: [redirectUri] }],
    claims: { openid: ["sub", "org_id"], email: ["email", "email_verified"] },
    conformIdTokenClaims: false,
    findAccount: (_, id) => {
      const orgId = id.split("@")[1];
      const email = id.includes("!") ? { email: id.replace("!", "@"), email_verified: true } : {};
      const claims = { sub: id, ...email, ...(orgId ? { org_id: orgId } : {}) };
      return { accountId: id, claims: () => claims };
    },
    cookies: { keys: ["only for tests"] },
    jwks: { keys: [{ ...privateKey.export({ format: "jwk" }), use: "sig", alg: "RS256", kid: "1" }] },
    pkce: { required: () => true },
  });
  server.on("request", provider.callback());
  console.log(JSON.stringify({ issuer }));
});
