// docs/configuration.md lists every setting as the schemas have it.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { configurationReference } from '../../scripts/configurationDocs.ts';

test('the configuration page is what the schemas say; "npm run docs:configuration" writes it', () => {
  const page = readFileSync(join(import.meta.dirname, '..', '..', 'docs', 'configuration.md'), 'utf8');
  expect(page.endsWith(`${configurationReference()}\n`)).toBe(true);
  expect(configurationReference()).toContain('| `agent.step_limit` | integer |');
});
