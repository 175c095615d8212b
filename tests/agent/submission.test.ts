// When output submits and what is submitted, to the byte: every edge case of mini-swe-agent 1.17.5 and 2.4.6.
import { describe, expect, test } from 'vitest';
import { createAgent } from '../../src/agent/loop/agent.ts';
import { submissionOf } from '../../src/agent/loop/submission.ts';
import { bash, config, fakeEnvironment, fakeModel, result, SUBMIT } from './fakes.ts';

const of = (output: string | Uint8Array, more = {}) => submissionOf(result(output, more))?.text ?? null;

describe('submits', () => {
  test.each([
    [
      'blank lines and spaces before the marker, spaces after it [S-17]',
      `\n \t\n  ${SUBMIT}  \npatch\n`,
      'patch\n',
    ],
    ['the marker alone', `${SUBMIT}\n`, ''],
    ['the marker without a newline', SUBMIT, ''],
    ['the older marker', 'MINI_SWE_AGENT_FINAL_OUTPUT\nx', 'x'],
    ['form feed as the end of the line', `${SUBMIT}\fpatch`, 'patch'],
    ['vertical tab', `${SUBMIT}\vpatch`, 'patch'],
    ['FS, GS, RS', `${SUBMIT}\x1cpatch`, 'patch'],
    ['GS', `${SUBMIT}\x1dpatch`, 'patch'],
    ['RS', `${SUBMIT}\x1epatch`, 'patch'],
    ['NEL', `${SUBMIT}\u0085patch`, 'patch'],
    ['line and paragraph separators', `${SUBMIT}\u2028patch\u2029`, 'patch\u2029'],
    ['CRLF after the marker', `${SUBMIT}\r\npatch\r\n`, 'patch\r\n'],
    ['a lone CR', `${SUBMIT}\rpatch`, 'patch'],
    ['no-break space and US before it', `\u00a0\x1f\u3000${SUBMIT}\nx`, 'x'],
    ['the marker again inside the patch', `${SUBMIT}\n+${SUBMIT}\n`, `+${SUBMIT}\n`],
  ])('%s', (_name, output, wanted) => {
    expect(of(output)).toBe(wanted);
  });
});

describe('does not submit', () => {
  test.each([
    ['other text on the line', `${SUBMIT} now\npatch`],
    ['a line before it', `warning: x\n${SUBMIT}\npatch`],
    ['another word', 'COMPLETE_TASK\npatch'],
    ['nothing', ''],
    ['white space only', ' \n\n'],
    ['a BOM before it, which Python does not strip', `\ufeff${SUBMIT}\nx`],
    ['lower case', `${SUBMIT.toLowerCase()}\nx`],
  ])('%s', (_name, output) => {
    expect(of(output)).toBeNull();
  });
  test('a failing command [M-38, T-46]', () => expect(of(`${SUBMIT}\nx`, { exitCode: 1 })).toBeNull());
  test('a command that timed out [M-38, T-46]', () =>
    expect(of(`${SUBMIT}\nx`, { timedOut: true })).toBeNull());
});

describe('byte-exact', () => {
  const patches: [string, Buffer][] = [
    ['CRLF', Buffer.from('-a\r\n+b\r\n')],
    ['no final newline', Buffer.from('+b\n\\ No newline at end of file')],
    ['invalid UTF-8', Buffer.from([0x2b, 0xff, 0xfe, 0x80, 0x0a])],
    ['NUL and control characters', Buffer.from('+a\0b\x1b[0m\n')],
    ['a cut surrogate', Buffer.from([0x2b, 0xed, 0xa0, 0x80, 0x0a])],
    ['trailing blank context', Buffer.from(' \n \n')],
    ['4-byte characters', Buffer.from('+😀é\n')],
  ];
  test.each(patches)('%s', (_name, patch) => {
    const output = Buffer.concat([Buffer.from(`\u3000\n ${SUBMIT} \u2003\n`), patch]);
    const found = submissionOf(result(output));
    expect(Buffer.from(found!.bytes).equals(patch)).toBe(true);
  });
  test.each(patches)('through the agent: %s [M-62]', async (_name, patch) => {
    const output = Buffer.concat([Buffer.from(`${SUBMIT}\n`), patch]);
    const agent = createAgent({
      instanceId: 'i',
      model: fakeModel([bash('s')]),
      environment: fakeEnvironment([result(output)]),
      config: config(),
    });
    const ended = await agent.run('t');
    expect(Buffer.from(ended.submissionBytes!).equals(patch)).toBe(true);
    expect(ended.submission).toBe(patch.toString('utf8'));
  });
});

test('an output that lost its middle is not a submission: a patch with a hole would only look like one [M-62]', async () => {
  const agent = createAgent({
    instanceId: 'i',
    model: fakeModel([bash('s'), bash('s2')]),
    environment: fakeEnvironment([
      result(`${SUBMIT}\nhead tail`, { omittedBytes: 10 }),
      result(`${SUBMIT}\nwhole`),
    ]),
    config: config(),
  });
  const ended = await agent.run('t');
  expect(ended.submission).toBe('whole');
  expect(ended.messages[3]?.content).toContain('too large to submit');
});

describe('the published agents', () => {
  const run = (compat: 'mini-swe-agent-1' | 'mini-swe-agent-2', output: string) =>
    createAgent({
      instanceId: 'i',
      model: fakeModel([bash('s')]),
      environment: fakeEnvironment([result(output)]),
      config: config({ compat, step_limit: 1, observation_template: '{{ output.output }}' }),
    }).run('t');
  test('both read line ends as \\n, in what is submitted too', async () => {
    for (const compat of ['mini-swe-agent-1', 'mini-swe-agent-2'] as const)
      expect((await run(compat, `${SUBMIT}\r\n-a\r\n+b\r`)).submission).toBe('-a\n+b\n');
  });
  test('only 1 knows the older marker', async () => {
    expect((await run('mini-swe-agent-1', 'MINI_SWE_AGENT_FINAL_OUTPUT\nx')).exitStatus).toBe('Submitted');
    expect((await run('mini-swe-agent-2', 'MINI_SWE_AGENT_FINAL_OUTPUT\nx')).exitStatus).toBe(
      'LimitsExceeded',
    );
  });
});
