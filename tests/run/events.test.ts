// Events reach the record, the terminal and commands of the user: no listener ever sees a secret, and none breaks the work.
import { expect, test } from 'vitest';
import { createRedactor } from '../../src/base/text/redact.ts';
import { cleanedBy, createEvents, type RunEvent } from '../../src/run/events.ts';

const KEY = 'sk-canary/"0123"456789';

test('secrets are out of an event before anybody sees it [T-58]', () => {
  const seen: RunEvent[] = [];
  const events = createEvents(undefined, cleanedBy(createRedactor([{ name: 'KEY', value: KEY }])));
  events.on((event) => seen.push(event));
  events.emit({ type: 'breaker', reason: `5 instances in a row: cannot pull with ${KEY}` });
  events.emit({ type: 'note', text: 'nothing secret' });
  expect(seen).toEqual([
    { type: 'breaker', reason: '5 instances in a row: cannot pull with ‹redacted:KEY›' },
    { type: 'note', text: 'nothing secret' },
  ]);
});

test('a listener that throws is told of and keeps nobody from the event', () => {
  const told: unknown[] = [];
  const seen: string[] = [];
  const events = createEvents((error) => told.push(error));
  events.on(() => {
    throw new Error('display broke');
  });
  events.on((event) => seen.push(event.type));
  events.emit({ type: 'note', text: 'x' });
  expect([seen, String(told[0])]).toEqual([['note'], 'Error: display broke']);
});
