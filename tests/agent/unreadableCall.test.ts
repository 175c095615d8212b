// A tool call that the server of the model could not read is the model's doing: it hears of it as of any malformed reply.
import { describe, expect, test } from 'vitest';
import { createAgent } from '../../src/agent/loop/agent.ts';
import type { ModelErrorResponse } from '../../src/model/model.ts';
import { call, calls, config, fakeEnvironment, fakeModel, submitted } from './fakes.ts';

describe('a call that its server could not read', () => {
  const unreadable: ModelErrorResponse = {
    success: false,
    error: 'INVALID_RESPONSE',
    message: 'unreadable tool call (400): Failed to call a function.',
    metadata: { kind: 'bad_call' },
  };
  const submit = calls(call('c1', { command: 'submit' }));
  const run = (answers: Parameters<typeof fakeModel>[0], limit: object = {}) =>
    createAgent({
      instanceId: 'i',
      model: fakeModel(answers),
      environment: fakeEnvironment([submitted('p')]),
      config: config({ protocol: 'tool-call', ...limit }),
    }).run('t');

  test('is told to the model, and the attempt goes on', async () => {
    const ended = await run([unreadable, submit]);
    expect(ended).toMatchObject({ exitStatus: 'Submitted', steps: 2 });
    const told = ended.messages.find(({ extra }) => extra?.interrupt_type === 'FormatError');
    expect(told).toMatchObject({
      role: 'user',
      content: expect.stringContaining('Failed to call a function.'),
    });
  });

  test('too often in a row is a limit that counts', async () => {
    const ended = await run([unreadable, unreadable], { max_consecutive_format_errors: 2 });
    expect(ended).toMatchObject({ exitStatus: 'RepeatedFormatError', limit: 'format_errors' });
  });
});
