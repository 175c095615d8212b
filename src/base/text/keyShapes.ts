/**
 * Finds keys that we did not load by their shape; `redact.ts` finds loaded ones by value. Text from a provider loses everything that
 * looks like a key. Findings in text that is about to be published are only reported, so those shapes are exact.
 */

const LOOKS_LIKE_KEY =
  /\b(sk|pk|rk|gsk|xai|AIza)[-_][A-Za-z0-9_*.-]{6,}|\bAIza[A-Za-z0-9_-]{10,}|Bearer\s+[^\s"',]+/g;

/** Prefixes are the providers' own; lengths keep words and test fixtures out where they can. */
export const PUBLISHED_SHAPES: readonly (readonly [kind: string, shape: RegExp])[] = [
  ['OpenAI or OpenRouter key', /\bsk-(?:proj-|or-v1-|svcacct-)?[A-Za-z0-9_-]{32,}/],
  ['Anthropic key', /\bsk-ant-[A-Za-z0-9_-]{32,}/],
  ['GitHub token', /\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{40,})/],
  ['Hugging Face token', /\bhf_[A-Za-z0-9]{34,}/],
  ['AWS access key', /\b(?:AKIA|ASIA)[0-9A-Z]{16}\b/],
  ['Google API key', /\bAIza[0-9A-Za-z_-]{35}\b/],
  ['Slack token', /\bxox[abprs]-[0-9A-Za-z-]{20,}/],
  ['private key', /-----BEGIN (?:RSA |EC |OPENSSH |DSA )?PRIVATE KEY-----/],
  ['credentials in a URL', /\bhttps?:\/\/[^\s/:@'"]{1,64}:[^\s/@'"]{8,}@/],
];

const PREFIX = /^(?:sk|pk|rk|gsk|xai|AIza)[-_]/;
/** `sunday`, `Content-Type`, `POSTGRES_DB2`, `20261122`: no longer than words are, with a few digits behind. */
const WORD = /^(?:[A-Z]?[a-z]{1,16}|[A-Z]{1,16})?\d{0,8}$/;
const LONG = 20;
/** A private key has some thousand characters; what begins like one is one. */
const LONGEST_KEY = 10_000;
/** Bits a character: random hexadecimal digits of that length have about 3.4. */
const ENTROPY = 3;

/** Words, numbers, or several of them: what other texts hold by chance. */
export const isOfWords = (value: string): boolean => value.split(/[-_. ]/).every((part) => WORD.test(part));

/** A key as providers make them, or at least 20 characters with high entropy that are not words, a path or a plain address. */
export function looksLikeKey(given: string): boolean {
  const value = given.slice(0, LONGEST_KEY);
  if (PUBLISHED_SHAPES.some(([, shape]) => shape.test(value))) return true;
  if (PREFIX.test(value)) return value.length >= 16;
  if (value.length < LONG || /^(?:[.~]{0,2}\/|\w+:\/\/)/.test(value)) return false;
  return entropyOf(value) >= ENTROPY && !isOfWords(value);
}

/** Shannon's, in bits a character. */
function entropyOf(text: string): number {
  const counts = new Map<string, number>();
  for (const char of text) counts.set(char, (counts.get(char) ?? 0) + 1);
  const total = [...text].length;
  return [...counts.values()].reduce((sum, n) => sum - (n / total) * Math.log2(n / total), 0);
}

export type Redact = (text: string) => string;

/** Error bodies like to repeat the key they refused. */
export function redactor(secrets: readonly string[]): Redact {
  // Short strings would tear holes into every text; no provider's key is that short.
  const known = secrets.filter((secret) => secret.length >= 6).sort((a, b) => b.length - a.length);
  return (text) =>
    known.reduce((out, secret) => out.replaceAll(secret, '[key]'), text).replace(LOOKS_LIKE_KEY, '[key]');
}

const SNIPPET = 200;

/** One line of at most 200 characters. */
export function snippet(text: string, redact: Redact): string {
  const line = redact(text).replace(/\s+/g, ' ').trim();
  return line.length > SNIPPET ? `${line.slice(0, SNIPPET).toWellFormed()}…` : line;
}
