/** Takes keys out of texts that a provider wrote: error bodies like to repeat the key they refused. */

const LOOKS_LIKE_KEY =
  /\b(sk|pk|rk|gsk|xai|AIza)[-_][A-Za-z0-9_*.-]{6,}|\bAIza[A-Za-z0-9_-]{10,}|Bearer\s+[^\s"',]+/g;

export type Redact = (text: string) => string;

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
