/** Looks for secrets in what is about to be published: every value we loaded, and shapes that providers' keys have. Never shows what it found. */
import type { Redactor } from '../../base/text/redact.ts';

export interface Finding {
  readonly file: string;
  readonly line: number;
  readonly kind: string;
  /** The value of a secret of this machine: no flag lets that pass. */
  readonly exact: boolean;
}

/** Prefixes are the providers' own; lengths keep words and test fixtures out where they can. */
const SHAPES: readonly (readonly [kind: string, shape: RegExp])[] = [
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

export function scanForSecrets(
  file: string,
  content: string,
  redactor: Pick<Redactor, 'contains'>,
): Finding[] {
  const exact = redactor.contains(content);
  if (!exact && !SHAPES.some(([, shape]) => shape.test(content))) return [];
  const lines = content.split('\n');
  const found = lines.flatMap((text, i): Finding[] => [
    ...(exact && redactor.contains(text)
      ? [{ file, line: i + 1, kind: 'a secret of this machine', exact: true }]
      : []),
    ...SHAPES.filter(([, shape]) => shape.test(text)).map(([kind]) => ({
      file,
      line: i + 1,
      kind,
      exact: false,
    })),
  ]);
  // A value that spans lines is in the file and in none of its lines.
  return exact && !found.some((f) => f.exact)
    ? [{ file, line: 1, kind: 'a secret of this machine', exact: true }, ...found]
    : found;
}
