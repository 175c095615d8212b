/** Looks for secrets in what is about to be published: every value we loaded, and shapes that providers' keys have. Never shows what it found. */

import { PUBLISHED_SHAPES, type Redactor } from '../../base/text/redact.ts';

export interface Finding {
  readonly file: string;
  readonly line: number;
  readonly kind: string;
  /** The value of a secret of this machine: no flag lets that pass. */
  readonly exact: boolean;
}

export function scanForSecrets(
  file: string,
  content: string,
  redactor: Pick<Redactor, 'contains'>,
): Finding[] {
  const exact = redactor.contains(content);
  if (!exact && !PUBLISHED_SHAPES.some(([, shape]) => shape.test(content))) return [];
  const lines = content.split('\n');
  const found = lines.flatMap((text, i): Finding[] => [
    ...(exact && redactor.contains(text)
      ? [{ file, line: i + 1, kind: 'a secret of this machine', exact: true }]
      : []),
    ...PUBLISHED_SHAPES.filter(([, shape]) => shape.test(text)).map(([kind]) => ({
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
