// The listing of sentences is current. Read its diff: a message that changed is one line there.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { LISTING, messages } from '../scripts/messages.ts';

test('tests/messages.txt has every sentence of the source: npm run docs:messages', () => {
  const sentences = messages();
  expect(sentences.split('\n').length).toBeGreaterThan(1000);
  expect(sentences === readFileSync(LISTING, 'utf8') || 'npm run docs:messages writes it again').toBe(true);
});
