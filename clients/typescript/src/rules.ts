/** The rules of flags, evaluated as the service does. */
type Facts = Map<string, unknown>;
type Condition = Record<string, any>;
type Compare = (value: any, wanted: any) => boolean;

const PART = "(?:0|[1-9]\\d*|\\d*[a-zA-Z-][0-9a-zA-Z-]*)";
const VERSION = new RegExp(
  "^[vV]?(0|[1-9]\\d*)(?:\\.(0|[1-9]\\d*)(?:\\.(0|[1-9]\\d*))?)?" +
    `(?:-(${PART}(?:\\.${PART})*))?(?:\\+[0-9a-zA-Z-]+(?:\\.[0-9a-zA-Z-]+)*)?$`,
);
const MAX_VERSION = 256; // characters
const MOMENT = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?)(Z|[+-]\d\d:\d\d)?)?$/;
const BUCKETS = 100_000n;

export interface Rule {
  when?: Condition;
  rollout?: { attribute: string; salt: string; weight: number };
  value: boolean;
}

/** A boolean flag's value: that of the first rule that matches, else the plan's. */
export function isOn(flag: { value: boolean; rules: Rule[] }, facts: Facts): boolean {
  const matches = ({ when, rollout }: Rule) => {
    if (when && !holds(when, facts)) return false;
    const name = rollout && facts.get(rollout.attribute);
    return !rollout || (!!name && bucket(rollout.salt + name) < rollout.weight);
  };
  return (flag.rules.find(matches) ?? flag).value;
}

/** Whether a condition holds; an absent attribute is null. */
export function holds(condition: Condition, facts: Facts): boolean {
  if (condition.all) return condition.all.every((one: Condition) => holds(one, facts));
  if (condition.any) return condition.any.some((one: Condition) => holds(one, facts));
  if (condition.not) return !holds(condition.not, facts);
  const { attribute, op, value } = condition;
  const lower = (one: any) => (attribute === "user.email_domain" ? one.toLowerCase() : one);
  const wanted = typeof value === "string" ? lower(value) : value;
  const compare = COMPARE[op];
  if (!compare) throw new RangeError(`unknown op ${op}`);
  return compare(facts.get(attribute) ?? null, Array.isArray(value) ? value.map(lower) : wanted);
}

/** flagd's bucket: MurmurHash3 (x86, 32 bits) of the text as CBOR. */
export function bucket(text: string): number {
  const encoded = new TextEncoder().encode(text);
  const size = encoded.length;
  const long = size < 256 ? [0x78, size] : [0x79, size >> 8, size & 255];
  const data = new Uint8Array([...(size < 24 ? [0x60 + size] : long), ...encoded]);
  let h = 0;
  for (let at = 0; at < data.length; at += 4) {
    const part = data.subarray(at, at + 4);
    let k = part.reduce((sum, byte, place) => sum | (byte << (8 * place)), 0);
    k = Math.imul(k, 0xcc9e2d51);
    h ^= Math.imul((k << 15) | (k >>> 17), 0x1b873593);
    if (part.length === 4) h = (Math.imul((h << 13) | (h >>> 19), 5) + 0xe6546b64) | 0;
  }
  h ^= data.length;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return Number((BigInt((h ^ (h >>> 16)) >>> 0) * BUCKETS) >> 32n);
}

/** Compare two semantic versions; NaN if the first is none. `v1.2` is 1.2.0. */
function compareVersions(left: string, right: string): number {
  const [one, other] = [versionOf(left), versionOf(right)];
  if (!one || !other) return NaN;
  for (const place of [0, 1, 2]) {
    const [a, b] = [BigInt(one[place] ?? 0), BigInt(other[place] ?? 0)];
    if (a !== b) return a < b ? -1 : 1;
  }
  if (!one[3] || !other[3]) return one[3] ? -1 : other[3] ? 1 : 0;
  const [early, late] = [one[3].split("."), other[3].split(".")];
  for (let place = 0; place < Math.max(early.length, late.length); place++) {
    const [a, b] = [early[place], late[place]];
    if (a === undefined || b === undefined) return a === undefined ? -1 : 1;
    const isNumber = [a, b].map((part) => /^\d+$/.test(part));
    if (isNumber[0] !== isNumber[1]) return isNumber[0] ? -1 : 1;
    const [x, y] = isNumber[0] ? [BigInt(a), BigInt(b)] : [a, b];
    if (x !== y) return x < y ? -1 : 1;
  }
  return 0;
}

function versionOf(text: string): (string | undefined)[] | undefined {
  return text.length <= MAX_VERSION ? VERSION.exec(text)?.slice(1) : undefined;
}

/** Milliseconds of a time of RFC 3339, or of a date, in UTC; NaN if it is none. */
function momentOf(text: string): number {
  const [, day, time = "00:00", zone = "Z"] = MOMENT.exec(text) ?? [];
  if (day === undefined) return NaN;
  const isReal = new Date(`${day}T00:00Z`).toJSON()?.startsWith(day) && !time.startsWith("24");
  return isReal ? Date.parse(`${day}T${time}${zone}`) : NaN;
}

const isEqual: Compare = (value, wanted) => value === wanted;
const number =
  (compare: Compare): Compare =>
  (value, wanted) =>
    typeof value === "number" && compare(value, wanted);
const text =
  (compare: Compare): Compare =>
  (value, wanted) =>
    typeof value === "string" && compare(value, wanted);

const COMPARE: Record<string, Compare> = {
  eq: isEqual,
  ne: (value, wanted) => !isEqual(value, wanted),
  in: (value, wanted) => wanted.includes(value),
  not_in: (value, wanted) => !wanted.includes(value),
  lt: number((value, wanted) => value < wanted),
  le: number((value, wanted) => value <= wanted),
  gt: number((value, wanted) => value > wanted),
  ge: number((value, wanted) => value >= wanted),
  prefix: text((value, wanted) => value.startsWith(wanted)),
  suffix: text((value, wanted) => value.endsWith(wanted)),
  semver_gt: text((value, wanted) => compareVersions(value, wanted) > 0),
  semver_lt: text((value, wanted) => compareVersions(value, wanted) < 0),
  before: text((value, wanted) => momentOf(value) < momentOf(wanted)),
  after: text((value, wanted) => momentOf(value) > momentOf(wanted)),
  exists: (value, wanted) => (value !== null) === wanted,
};
