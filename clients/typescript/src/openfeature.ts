/** Flags by OpenFeature; needs @openfeature/server-sdk and @openfeature/ofrep-provider. */
import { OFREPProvider } from "@openfeature/ofrep-provider";
import { OpenFeature } from "@openfeature/server-sdk";

/** Let OpenFeature's clients evaluate the flags of the service; resolves when they can. */
export async function setProvider(url: string, token: string, domain?: string): Promise<void> {
  const headers: [string, string][] = [["Authorization", `Bearer ${token}`]];
  const provider = new OFREPProvider({ baseUrl: url, headers });
  await (domain === undefined
    ? OpenFeature.setProviderAndWait(provider)
    : OpenFeature.setProviderAndWait(domain, provider));
}
