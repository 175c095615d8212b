// Answers of the model that are late, cut, refused, empty or odd (T-03 to T-17), through the whole program: what the record and the
// person read, and how many requests the server saw.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { cli } from '../support/cli.ts';
import { dockerAvailable } from '../support/docker.ts';
import type { Directive, Script } from '../support/fakeAnswer.ts';
import {
  type Bench,
  type BenchOptions,
  bash,
  expectOthersGood,
  expectSound,
  faultBench,
  GOOD,
} from './support.ts';

const docker = await dockerAvailable();
let bench: Bench;
afterEach(() => bench?.close());

const LOOK = bash('cat src/greet.py');
/** The first reply comes after these. */
const after = (...before: (Directive | string)[]): Script => [{ content: LOOK, before }, ...GOOD.slice(1)];

async function runWith(scripts: Record<string, Script>, options: BenchOptions = {}) {
  bench = await faultBench({ inTrees: true, ...options, scripts });
  const result = await bench.run(bench.id);
  await expectSound(bench, bench.id, 4, [result]);
  const one = (id: string) => bench.trials(bench.id).find((t) => t.instance_id === id)!;
  return { result, one, abnormal: Object.keys(scripts) };
}

const callsOf = (id: string) =>
  bench.query<{
    state: string;
    status_code: number | null;
    error_message: string | null;
    cost_nano: number | null;
    notes: string;
    output_tokens: number | null;
  }>(
    `SELECT c.* FROM model_calls c JOIN attempts a ON a.id = c.attempt_id JOIN trials t ON t.id = a.trial_id
     JOIN instances i ON i.id = t.instance_pk WHERE i.instance_id = '${id}' ORDER BY c.id`,
  );
const errorOf = (id: string) =>
  bench.query<{ error_message: string }>(
    `SELECT a.error_message FROM attempts a JOIN trials t ON t.id = a.trial_id JOIN instances i ON i.id = t.instance_pk
     WHERE i.instance_id = '${id}' ORDER BY a.id`,
  )[0]!.error_message;
const messagesTo = (id: string, n: number) =>
  JSON.stringify(
    (bench.server.requests.filter((r) => r.key === id)[n]!.body as { messages: unknown }).messages,
  );

describe.skipIf(!docker)('waiting', () => {
  test('T-03 Retry-After in the past, unreadable, and of a day', async () => {
    const limited = (value: string): Directive => ({ status: 429, headers: { 'retry-after': value } });
    const { result, one, abnormal } = await runWith({
      'a__a-1': after(limited('Fri, 20 Nov 2020 00:00:00 GMT')),
      'a__a-2': after(limited('abc')),
      'a__a-3': [limited('86400')],
    });
    expect(result.code).toBe(3);
    expect([one('a__a-1').exit_reason, one('a__a-2').exit_reason]).toEqual(['submitted', 'submitted']);
    expect(callsOf('a__a-2')[0]!.notes).toContain('not understood: usual back-off');
    expect(one('a__a-3')).toMatchObject({ exit_reason: 'model_unavailable', exit_class: 'infra' });
    expect(errorOf('a__a-3')).toContain('server asked to wait 24h');
    // Two attempts of one try each: a day is never waited for.
    expect(['a__a-1', 'a__a-2', 'a__a-3'].map((id) => bench.server.count(id))).toEqual([4, 4, 2]);
    expectOthersGood(bench, bench.id, abnormal);
  });

  test('T-04 a server that takes the connection and never answers is left at the first-byte deadline, for a new socket', async () => {
    const { result, one } = await runWith(
      { 'a__a-1': after({ hang: true }) },
      { model: { first_byte_timeout_s: 1 } },
    );
    expect(result.code).toBe(0);
    expect(one('a__a-1').exit_reason).toBe('submitted');
    expect(callsOf('a__a-1')[0]).toMatchObject({ state: 'aborted', cost_nano: null });
    expect(callsOf('a__a-1')[0]!.error_message).toContain('no response byte in 1s');
    const [hung, again] = bench.server.requests.filter((r) => r.key === 'a__a-1');
    expect(hung!.aborted).toBe(true);
    expect(again!.port).not.toBe(hung!.port);
    expect(bench.server.requests.length).toBe(4 * 3 + 1);
    expectOthersGood(bench, bench.id);
  });

  test('T-05 a stream that falls silent is left at the idle deadline; what it cost is estimated and flagged', async () => {
    const { result, one } = await runWith(
      { 'a__a-1': after({ content: 'a text of some length, in pieces', silentAfter: 5 }) },
      { model: { stream: true, idle_timeout_s: 1, first_byte_timeout_s: 10 } },
    );
    expect(result.code).toBe(0);
    expect(one('a__a-1').exit_reason).toBe('submitted');
    const [silent] = callsOf('a__a-1');
    expect(silent!.error_message).toContain('stream idle 1s after 5 chunks');
    expect(silent).toMatchObject({ state: 'aborted', status_code: 200 });
    expect(silent!.cost_nano).toBeGreaterThan(0);
    expect(silent!.output_tokens).toBeGreaterThan(0);
    expect(silent!.notes).toContain('usage and cost estimated: the answer stopped after 5 chunks');
    expect(bench.server.requests.length).toBe(4 * 3 + 1);
    expectOthersGood(bench, bench.id);
  });
});

describe.skipIf(!docker)('refusals', () => {
  test('T-09 a model that nobody serves stops the run, with the address and the id', async () => {
    const missing = [{ status: 404, body: { error: { message: 'no such model', code: 'model_not_found' } } }];
    bench = await faultBench({
      inTrees: true,
      scripts: Object.fromEntries([1, 2, 3, 4].map((n) => [`a__a-${n}`, missing])),
    });
    const result = await bench.run(bench.id);
    expect(result.code).toBe(2);
    expect(result.stderr).toContain(`${bench.server.url} does not serve "fake-1"`);
    expect(bench.trials(bench.id).map((t) => t.not_run_reason)).toEqual(Array(4).fill('model_not_found'));
    expect(bench.trials(bench.id).map((t) => t.exit_class)).toEqual(Array(4).fill(null));
    expect(bench.server.requests.length).toBeLessThanOrEqual(2);
    await expectSound(bench, bench.id, 4, [result]);
  });

  test('T-11 a refusal in each of its forms is the model’s, asked at most twice, and listed in the summary', async () => {
    const { result, one, abnormal } = await runWith({
      'a__a-1': [{ status: 400, body: { error: { message: 'no', code: 'content_policy_violation' } } }],
      'a__a-2': [{ content: 'I', finish_reason: 'content_filter' }],
      'a__a-3': [{ content: null, refusal: 'I cannot help with that.' }],
    });
    expect(result.code).toBe(0);
    for (const id of abnormal) {
      expect(one(id)).toMatchObject({ exit_reason: 'model_refusal', exit_class: 'model', state: 'sealed' });
      expect(bench.server.count(id)).toBeLessThanOrEqual(2);
    }
    const summary = readFileSync(join(bench.root, bench.id, 'summary.md'), 'utf8');
    expect(summary.replaceAll('\\', '')).toContain('**Refused by the model** (3): a__a-1, a__a-2, a__a-3');
    expectOthersGood(bench, bench.id, abnormal);
  });
});

describe.skipIf(!docker)('odd replies', () => {
  test('T-12 replies with nothing in them are never "done": three in a row end the attempt, and each is billed', async () => {
    const { result, one, abnormal } = await runWith({
      'a__a-1': [{ content: '', finish_reason: 'stop' }],
      'a__a-2': [{ content: null }],
      'a__a-3': [{ content: '' }],
    });
    expect(result.code).toBe(0);
    for (const id of abnormal) {
      expect(one(id)).toMatchObject({ exit_reason: 'empty_responses_exceeded', exit_class: 'limit' });
      expect(bench.server.count(id)).toBe(3);
      expect(callsOf(id).every((call) => call.cost_nano! > 0)).toBe(true);
      expect(
        bench.query<{ content: string }>(
          `SELECT m.content FROM messages m JOIN attempts a ON a.id = m.attempt_id JOIN trials t ON t.id = a.trial_id
           JOIN instances i ON i.id = t.instance_pk WHERE i.instance_id = '${id}' ORDER BY m.seq DESC LIMIT 1`,
        )[0]!.content,
      ).toBe('3 empty responses in a row');
    }
    expectOthersGood(bench, bench.id, abnormal);
  });

  test('T-13 a reply cut by its length limit is told so; three in a row end as format errors; the raw reply is kept [M-25]', async () => {
    const { result, one } = await runWith({
      'a__a-1': [{ content: 'I was going to', finish_reason: 'length' }],
    });
    expect(result.code).toBe(0);
    expect(one('a__a-1')).toMatchObject({ exit_reason: 'format_errors_exceeded', exit_class: 'limit' });
    expect(bench.server.count('a__a-1')).toBe(3);
    expect(messagesTo('a__a-1', 1)).toContain('cut off');
    expect(
      bench.query<{ n: number }>(
        `SELECT count(*) AS n FROM messages WHERE json_extract(data, '$.extra.response.choices[0].finish_reason') = 'length'`,
      )[0]!.n,
    ).toBe(3);
    expectOthersGood(bench, bench.id);
  });

  const tool = (id: string, args: unknown, name = 'bash') => ({
    id,
    function: { name, arguments: typeof args === 'string' ? args : JSON.stringify(args) },
  });
  const turn = (...tool_calls: ReturnType<typeof tool>[]): Directive => ({ content: null, tool_calls });
  const command = (text: string | undefined) => /```bash\n([\s\S]*)\n```/.exec(text ?? '')![1]!;
  const TOOL_GOOD = GOOD.map((text, n) => turn(tool(`good_${n}`, { command: command(text as string) })));
  const TOOLS = { agent: { protocol: 'tool-call', step_limit: 20 } };
  const ids = ['a__a-1', 'a__a-2', 'a__a-3', 'a__a-4'];
  const toolScripts = (first: Script) => ({
    ...Object.fromEntries(ids.map((id) => [id, TOOL_GOOD])),
    'a__a-1': first,
  });

  test('T-14 tool calls that cannot run are each answered precisely, under their own id, and the attempt goes on', async () => {
    const bad: [ReturnType<typeof tool>, string][] = [
      [tool('bad_json', '{"command": "ls'), 'JSON'],
      [tool('unknown', {}, 'python'), "Unknown tool 'python'"],
      [tool('missing', { cmd: 'ls' }), "Missing 'command'"],
      [tool('number', { command: 1 }), 'must be a string, not a number'],
      [tool('array', { command: ['ls'] }), 'must be a string, not an array'],
      [tool('huge', { command: 'y'.repeat(10 * 2 ** 20) }), 'command is 10 MB; limit 1 MB'],
      [tool('nul', { command: 'ls \0' }), 'NUL'],
    ];
    // A good step after every second bad one, so that three never come in a row.
    const script = bad.flatMap(([call], n) =>
      n % 2 === 1 ? [turn(call), turn(tool(`ok_${n}`, { command: 'true' }))] : [turn(call)],
    );
    const { result, one } = await runWith(toolScripts([...script, ...TOOL_GOOD]), TOOLS);
    expect(result.code).toBe(0);
    expect(one('a__a-1').exit_reason).toBe('submitted');
    expect(bench.server.count('a__a-1')).toBe(script.length + 3);
    const last = bench.server.requests.filter((r) => r.key === 'a__a-1').at(-1)!;
    const { messages } = last.body as {
      messages: { role: string; tool_call_id?: string; content: string }[];
    };
    for (const [call, words] of bad)
      expect([call.id, messages.find((m) => m.tool_call_id === call.id)?.content]).toEqual([
        call.id,
        expect.stringContaining(words),
      ]);
    expect(last.bytes).toBeLessThan(60_000);
    expectOthersGood(bench, bench.id, []);
  });

  test('T-15 of two tool calls the valid one runs, both are answered, and the server accepts the next request', async () => {
    const both = turn(tool('fine', { command: 'echo ran > proof; cat proof' }), tool('broken', { cmd: 1 }));
    const { result } = await runWith(toolScripts([both, ...TOOL_GOOD]), TOOLS);
    expect(result.code).toBe(0);
    const { messages } = bench.server.requests.filter((r) => r.key === 'a__a-1')[1]!.body as {
      messages: { role: string; tool_call_id?: string; content: string }[];
    };
    const answers = messages.filter((m) => m.role === 'tool');
    expect(answers.map((m) => m.tool_call_id)).toEqual(['fine', 'broken']);
    expect(answers[0]!.content).toContain('ran');
    expect(answers[1]!.content).toContain("Missing 'command'");
    expect(bench.trials(bench.id).map((t) => t.exit_reason)).toEqual(Array(4).fill('submitted'));
    expect(bench.server.requests.length).toBe(4 * 3 + 1);
  });

  test('T-16 surrogates, NUL, escapes and tags are kept as they came; exports are UTF-8 and count what they replaced', async () => {
    const odd = 'a\ud800b\u0000\u001b[31m</script>';
    const { result, one } = await runWith({ 'a__a-1': [`${odd}\n\n${LOOK}`, ...GOOD.slice(1)] });
    expect(result.code).toBe(0);
    expect(one('a__a-1').exit_reason).toBe('submitted');
    const [stored] = bench.query<{ data: string }>(
      `SELECT data FROM messages WHERE role = 'assistant' AND data LIKE '%ud800%'`,
    );
    expect((JSON.parse(stored!.data) as { content: string }).content.startsWith(odd)).toBe(true);
    const path = join(bench.root, bench.id, 'trajectories', 'a__a-1', 'a__a-1.traj.json');
    const text = new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path));
    const trajectory = JSON.parse(text) as { info: { swebatch: { replaced_characters: number } } };
    expect(text).toContain('a\ufffdb\\u0000\\u001b[31m</script>');
    expect(trajectory.info.swebatch.replaced_characters).toBeGreaterThanOrEqual(1);
    const shown = await cli(['show', bench.id, 'a__a-1', '-o', bench.root]);
    expect(shown.code).toBe(0);
    expect(shown.stdout).not.toContain('\u001b[31m');
    expectOthersGood(bench, bench.id, []);
  });

  test('T-17 another model than asked for, from the middle of a run on, is told and refused for a submission', async () => {
    const { result } = await runWith({
      'a__a-1': [GOOD[0]!, { content: GOOD[1] as string, model: 'fake-1-turbo' }, GOOD[2]!],
    });
    expect(result.code).toBe(0);
    expect(result.stderr).toContain(
      'warning: fake-1 was asked for and fake-1-turbo answered; before, fake-1 did',
    );
    const manifest = JSON.parse(readFileSync(join(bench.root, bench.id, 'run.json'), 'utf8')) as {
      observed: { models: { answered: string }[] };
    };
    expect(manifest.observed.models.map((m) => m.answered).sort()).toEqual(['fake-1', 'fake-1-turbo']);
    const submit = ['export', bench.id, 'submission', '-o', bench.root, '--split', 'verified'];
    const refused = await cli(submit);
    expect(refused.code).not.toBe(0);
    expect(refused.stderr).toContain('--accept-model-change');
    const meant = await cli([...submit, '--accept-model-change']);
    expect(meant.stderr).not.toContain('--accept-model-change');
    expectOthersGood(bench, bench.id, []);
  });
});
