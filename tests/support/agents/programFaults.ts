// What goes wrong around a real program, and what must come of it: each is played with a program that its makers wrote, in a container.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import type { RunningCli } from '../cli.ts';
import { docker } from '../docker.ts';
import {
  type AgentBench,
  type AgentBenchOptions,
  type AgentUnderTest,
  agentBench,
  byInstance,
  REAL_KEY,
  solve,
} from './agentBench.ts';
import { type SeenRequest, startFakeProvider, type Turn } from './playedProvider.ts';

const ID = 'swebatch__tabular-23';
const OTHER = 'swebatch__cronwheel-25';
/** The key in pieces, because the command itself would be found. */
const LOOK = `grep -rlsE "${REAL_KEY.slice(0, 6)}[-]?${REAL_KEY.slice(6)}" /proc/[0-9]*/environ /proc/[0-9]*/cmdline /opt /var /tmp /root /home /etc /run /usr/local /testbed; env | grep -i proxy; ls /sys/class/net; echo looked`;

export interface Attempt {
  readonly exit_reason: string;
  readonly exit_class: string;
  readonly patch_source: string;
  readonly model_patch: string | null;
  readonly steps: number;
  readonly error_evidence: string;
  readonly notes: string;
}

export const attemptsOf = (bench: AgentBench): Attempt[] =>
  bench.query<Attempt>(
    'SELECT exit_reason, exit_class, patch_source, model_patch, steps, error_evidence, notes FROM attempts ORDER BY id',
  );
const outcomesOf = (bench: AgentBench) =>
  bench
    .query<{ outcome: string }>('SELECT outcome FROM evaluations ORDER BY id')
    .map(({ outcome }) => outcome);
const rowsOf = (bench: AgentBench) =>
  bench.query<{ state: string; status_code: number | null; cost_nano: number | null; label: string | null }>(
    'SELECT state, status_code, cost_nano, label FROM model_calls ORDER BY id',
  );

/** Containers of the run that are there, whatever they are for. */
const containersOf = async (bench: AgentBench) =>
  (await docker.listContainers({ all: true })).filter(({ Labels }) => Labels['swebatch.run'] === bench.id);

async function relaysOf(bench: AgentBench): Promise<string[]> {
  const all = await Promise.all(
    (await containersOf(bench)).map(({ Id }) => docker.getContainer(Id).inspect()),
  );
  return all.flatMap(({ Id, HostConfig }) => (HostConfig.NetworkMode?.startsWith('container:') ? [Id] : []));
}

/** Every file of the record that holds the text. */
export const filesWith = (folder: string, text: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && readFileSync(join(entry.parentPath, entry.name)).includes(text))
    .map(({ name }) => name);

type Bench = Partial<Omit<AgentBenchOptions, 'agent'>> & {
  readonly agent?: Readonly<Record<string, unknown>>;
};

const benchFor = ({ agent, dialect }: AgentUnderTest, url: string, more: Bench = {}): AgentBench =>
  agentBench({
    ...{ ids: [ID], url, dialect, grading: true, ...more },
    agent: { agent_class: agent, wall_time_limit_seconds: 300, ...more.agent },
  });

const solving = ({ runs }: AgentUnderTest, id = ID): Turn[] => [
  runs('ls'),
  runs(solve(id)),
  { say: 'It is done.' },
];

export async function solvesTwo(one: AgentUnderTest): Promise<void> {
  const { runs, agent, version } = one;
  const turns = (id: string): Turn[] => [
    runs(LOOK),
    runs(solve(id)),
    runs('git diff --stat'),
    { say: 'Done.' },
  ];
  await using provider = await startFakeProvider(byInstance({ [ID]: turns(ID), [OTHER]: turns(OTHER) }));
  const bench = benchFor(one, provider.url, { ids: [ID, OTHER] });
  const done = await bench.run('-w', '2');
  expect(done.code, done.stderr).toBe(0);
  const ended = attemptsOf(bench);
  expect(ended).toHaveLength(2);
  for (const attempt of ended) {
    expect(attempt).toMatchObject({
      exit_reason: 'submitted',
      exit_class: 'agent',
      patch_source: 'captured_at_exit',
      steps: 4,
    });
    expect(JSON.parse(attempt.error_evidence)).toMatchObject({ exit_code: 0 });
  }
  expect(outcomesOf(bench)).toEqual(['resolved', 'resolved']);
  const rows = rowsOf(bench);
  expect(rows).toHaveLength(provider.requests.length);
  expect(rows.filter(({ cost_nano }) => cost_nano === null)).toEqual([]);
  const commands = bench.query<{ command: string; output: Buffer }>('SELECT command, output FROM commands');
  expect(commands.map(({ command }) => command).sort()).toEqual(
    [LOOK, LOOK, solve(ID), solve(OTHER), 'git diff --stat', 'git diff --stat'].sort(),
  );
  for (const { command, output } of commands) {
    if (command !== LOOK) continue;
    expect(output.toString()).toMatch(/(^|\s)lo\nlooked/);
    expect(output.toString()).not.toMatch(/proxy|environ|\/tmp\/|eth0/);
  }
  // The provider got its key; the program had another one, and neither the record nor a file of the run has it.
  expect(JSON.stringify(provider.requests[0]!.headers)).toContain(REAL_KEY);
  expect(JSON.stringify(provider.requests.map(({ body }) => body))).not.toContain(REAL_KEY);
  expect(filesWith(bench.out, REAL_KEY)).toEqual([]);
  expect(bench.query<{ config: string }>('SELECT config FROM arms')[0]!.config).toContain(
    `${agent}@${version}`,
  );
  expect(await containersOf(bench)).toEqual([]);
}

/** With a model of a protocol that the program does not speak. */
export async function solvesByTranslation(one: AgentUnderTest, dialect: string): Promise<void> {
  await using provider = await startFakeProvider(solving(one));
  const bench = benchFor(one, provider.url, { dialect, gateway: { translate: true } });
  const done = await bench.run();
  expect(done.code, done.stderr).toBe(0);
  expect(attemptsOf(bench)).toMatchObject([{ exit_reason: 'submitted', steps: 3 }]);
  expect(outcomesOf(bench)).toEqual(['resolved']);
  const notes = bench.query<{ notes: string }>('SELECT notes FROM model_calls').map((row) => row.notes);
  expect(notes).toHaveLength(provider.requests.length);
  for (const note of notes) expect(note).toContain(`translated from ${one.dialect} to ${dialect}`);
}

/** A program that goes on for as long as it is answered. */
const endless =
  ({ runs }: AgentUnderTest) =>
  (_seen: SeenRequest, results: number): Turn =>
    runs(`echo ${results} >> new.txt`);

export async function endsAtBudget(one: AgentUnderTest): Promise<void> {
  await using provider = await startFakeProvider(endless(one));
  const bench = benchFor(one, provider.url, { run: { cost_limit: 0.2 }, grading: false });
  const done = await bench.run();
  expect(done.code, done.stderr).toBe(4);
  expect(attemptsOf(bench)).toMatchObject([{ exit_reason: 'budget_stopped', exit_class: 'not_run' }]);
  const spent = rowsOf(bench).reduce((sum, { cost_nano }) => sum + (cost_nano ?? 0), 0);
  expect(spent).toBeGreaterThan(0);
  expect(spent).toBeLessThanOrEqual(200_000_000);
  expect(await containersOf(bench)).toEqual([]);
}

/** Three of four requests are refused as too many; the program hears of none. */
export async function outlastsStorm(one: AgentUnderTest): Promise<void> {
  let asked = 0;
  await using provider = await startFakeProvider(solving(one), (_seen, response) => {
    asked += 1;
    if (asked % 4 === 0) return false;
    response.writeHead(asked % 4 === 1 ? 429 : 529, {
      'content-type': 'application/json',
      'retry-after': '0',
    });
    response.end('{"error":{"message":"tempest: too many requests"}}');
    return true;
  });
  const bench = benchFor(one, provider.url, { retries: 5 });
  const done = await bench.run();
  expect(done.code, done.stderr).toBe(0);
  expect(attemptsOf(bench)).toMatchObject([{ exit_reason: 'submitted', steps: 3, notes: '[]' }]);
  expect(outcomesOf(bench)).toEqual(['resolved']);
  const rows = rowsOf(bench);
  const answered = rows.filter(({ state }) => state === 'ok');
  expect(rows.filter(({ status_code }) => (status_code ?? 0) >= 429)).toHaveLength(3 * answered.length);
  expect(attemptsOf(bench)[0]!.error_evidence).not.toContain('tempest');
  expect(provider.requests.filter(({ body }) => JSON.stringify(body).includes('tempest'))).toHaveLength(0);
}

/** Longer than the gateway lets a stream be silent. */
const LATE_MS = 11_000;

/** The first answer begins late, the second breaks off before its first word, and Codex's third one after it. */
export async function readsLateAnswers(one: AgentUnderTest): Promise<void> {
  const left = new Set([0, 1, ...(one.dialect === 'responses' ? [2] : [])]);
  const breaks = left.size - 1;
  const greets = one.dialect === 'responses' || one.dialect === 'messages';
  await using provider = await startFakeProvider(
    solving(one),
    async (_seen, response, { results, aside, begin }) => {
      if (aside || !left.delete(results)) return false;
      if (results === 0) {
        await sleep(LATE_MS);
        return false;
      }
      if (greets) begin();
      else response.writeHead(200, { 'content-type': 'text/event-stream' });
      const word = {
        ...{ type: 'response.output_text.delta', item_id: 'm', output_index: 0, content_index: 0 },
        delta: 'It',
      };
      response.write(results === 2 ? `event: ${word.type}\ndata: ${JSON.stringify(word)}\n\n` : '\n', () =>
        response.destroy(),
      );
      return true;
    },
  );
  const bench = benchFor(one, provider.url);
  const done = await bench.run();
  expect(done.code, done.stderr).toBe(0);
  expect(attemptsOf(bench)).toMatchObject([{ exit_reason: 'submitted', steps: 2 + breaks }]);
  expect(outcomesOf(bench)).toEqual(['resolved']);
  expect(rowsOf(bench).filter(({ state }) => state === 'failed')).toHaveLength(breaks);
}

/** Holds the second call of the conversation in the middle of its stream, once. */
function holdOnce() {
  const held = Promise.withResolvers<void>();
  let free = false;
  const before: Parameters<typeof startFakeProvider>[1] = (_seen, _response, { results, begin }) => {
    if (free || results !== 1) return false;
    free = true;
    begin();
    held.resolve();
    return true;
  };
  return { held: held.promise, before };
}

/** A run that ends before it comes so far is a failure that says why. */
async function begun({ done }: RunningCli, held: Promise<void>): Promise<void> {
  const ended = await Promise.race([held, done]);
  if (ended) throw new Error(`the run ended with ${ended.code}: ${ended.stderr}`);
}

export async function survivesKill(one: AgentUnderTest): Promise<void> {
  const { held, before } = holdOnce();
  await using provider = await startFakeProvider(solving(one), before);
  const bench = benchFor(one, provider.url);
  const running = bench.start();
  await begun(running, held);
  running.process.kill('SIGKILL');
  await running.done;
  const resumed = await bench.resume();
  expect(resumed.code, resumed.stderr).toBe(0);
  expect(attemptsOf(bench).map(({ exit_reason }) => exit_reason)).toEqual(['orchestrator_lost', 'submitted']);
  expect(outcomesOf(bench)).toEqual(['resolved']);
  expect(rowsOf(bench).filter(({ state }) => state === 'aborted')).toHaveLength(1);
  expect(await containersOf(bench)).toEqual([]);
}

export async function outlivesRelay(one: AgentUnderTest): Promise<void> {
  const { held, before } = holdOnce();
  await using provider = await startFakeProvider(solving(one), before);
  const bench = benchFor(one, provider.url, { run: { retry: { attempts: 2, backoff_s: 0 } } });
  const running = bench.start();
  await begun(running, held);
  const relays = await relaysOf(bench);
  expect(relays).toHaveLength(1);
  await docker.getContainer(relays[0]!).kill();
  const done = await running.done;
  expect(done.code, done.stderr).toBe(0);
  expect(attemptsOf(bench)).toMatchObject([
    { exit_reason: 'env_died', exit_class: 'infra' },
    { exit_reason: 'submitted', exit_class: 'agent' },
  ]);
  expect(outcomesOf(bench)).toEqual(['resolved']);
  expect(await containersOf(bench)).toEqual([]);
}

export async function endsAtSteps(one: AgentUnderTest): Promise<void> {
  await using provider = await startFakeProvider(endless(one));
  const bench = benchFor(one, provider.url, { agent: { step_limit: 3 }, grading: false });
  const done = await bench.run();
  expect(done.code, done.stderr).toBe(0);
  const [ended] = attemptsOf(bench);
  expect(ended).toMatchObject({
    ...{ exit_reason: 'limit_steps', exit_class: 'limit', patch_source: 'captured_at_exit', steps: 3 },
  });
  expect(ended!.model_patch).toContain('+0\n+1\n+2\n');
  expect(rowsOf(bench).filter(({ label }) => label === null)).toHaveLength(3);
  // At its limit the program was told so once and asked no more: it left by itself.
  expect(JSON.parse(ended!.error_evidence)).toHaveProperty('exit_code');
}

export async function endsAtItsTime(one: AgentUnderTest): Promise<void> {
  await using provider = await startFakeProvider(() =>
    one.runs('echo two > new.txt; (setsid sleep 1000 &) ; sleep 1000'),
  );
  const bench = benchFor(one, provider.url, { agent: { wall_time_limit_seconds: 20 }, grading: false });
  const done = await bench.run();
  expect(done.code, done.stderr).toBe(0);
  const [ended] = attemptsOf(bench);
  expect(ended).toMatchObject({ exit_reason: 'limit_wall_time', patch_source: 'captured_at_exit' });
  expect(ended!.model_patch).toContain('+two');
  expect(await containersOf(bench)).toEqual([]);
}

export async function floods(one: AgentUnderTest): Promise<void> {
  const flood = "head -c 1000000000 /dev/zero | tr '\\0' x; echo the end";
  await using provider = await startFakeProvider([
    one.runs(flood),
    one.runs(solve(ID)),
    { say: 'It is done.' },
  ]);
  if (one.readsSlowly) return await isEndedInTheFlood(one, provider.url);
  const bench = benchFor(one, provider.url);
  const done = await bench.run();
  expect(done.code, done.stderr).toBe(0);
  expect(outcomesOf(bench)).toEqual(['resolved']);
}

/** Its time ends it with the command that still writes, and nothing of either is left. */
async function isEndedInTheFlood(one: AgentUnderTest, url: string): Promise<void> {
  const bench = benchFor(one, url, { agent: { wall_time_limit_seconds: 60 }, grading: false });
  const done = await bench.run();
  expect(done.code, done.stderr).toBe(0);
  expect(attemptsOf(bench)[0]).toMatchObject({ exit_reason: 'limit_wall_time', steps: 1 });
  expect(await containersOf(bench)).toEqual([]);
}

/** What a shell in the container answers of a request with this key. */
const askWith = (key: string) =>
  `python3 -c '
import urllib.request, urllib.error
request = urllib.request.Request("http://127.0.0.1:13131/v1/chat/completions", b"{}", {"authorization": "Bearer ${key}"})
try:
    print("ANSWERED", urllib.request.urlopen(request).status)
except urllib.error.HTTPError as error:
    print("REFUSED", error.code)
'`;

/** In pieces, so that the command does not find itself. */
const OWN_KEY = `cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -ao 'swebatch[-][A-Za-z0-9_-]\\{32\\}' | head -1 | sed s/^/KEY:/`;

/** One attempt finds its key and hands it to the other, which asks with it; then with one that it made up. */
export async function forgesKeys(one: AgentUnderTest): Promise<void> {
  const known = Promise.withResolvers<string>();
  const asked = Promise.withResolvers<void>();
  let theirs = '';
  const first = byInstance({ [ID]: [one.runs(OWN_KEY), { say: 'Done.' }] });
  await using provider = await startFakeProvider(
    (seen, results) => {
      const own = first(seen, results);
      if (own) return own;
      return results === 0
        ? one.runs(askWith(`swebatch-${'A'.repeat(32)}`))
        : results === 1
          ? one.runs(askWith(theirs))
          : undefined;
    },
    async (seen, _response, { results, aside }) => {
      const text = JSON.stringify(seen.body);
      const found = /KEY:(swebatch-[A-Za-z0-9_-]{32})/.exec(text)?.[1];
      if (found) known.resolve(found);
      if (!aside && first(seen, 0) === undefined && results === 1) theirs = await known.promise;
      // Whose key is still worth something: the first attempt waits for the second one.
      if (found && !aside) await asked.promise;
      if (!aside && first(seen, 0) === undefined && results >= 2) asked.resolve();
      return false;
    },
  );
  const bench = benchFor(one, provider.url, { ids: [ID, OTHER], grading: false });
  const done = await bench.run('-w', '2');
  expect(done.code, done.stderr).toBe(0);
  const outputs = bench
    .query<{ output: Buffer }>("SELECT output FROM commands WHERE command LIKE 'python3%' ORDER BY id")
    .map(({ output }) => /REFUSED \d+|ANSWERED \d+/.exec(output.toString())?.[0]);
  expect(outputs).toEqual(['REFUSED 401', 'REFUSED 401']);
  expect(attemptsOf(bench).flatMap(({ notes }) => JSON.parse(notes) as string[])).toEqual([
    'gateway: a call with a key that is none of ours was refused',
    'gateway: a call with the key of another attempt was refused',
  ]);
}
