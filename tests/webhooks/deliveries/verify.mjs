// Verifies one delivery by both libraries; prints what each says.
import { Webhook as StandardWebhook } from "standardwebhooks";
import { Webhook as SvixWebhook } from "svix";

const { secret, body, headers } = JSON.parse(process.argv[2]);
const said = [StandardWebhook, SvixWebhook].map((Library) => {
  try {
    new Library(secret).verify(body, headers);
    return true;
  } catch {
    return false;
  }
});
process.stdout.write(JSON.stringify(said));
