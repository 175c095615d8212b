import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { AttemptDocument, MessageChunk } from '../../src/viewer/documents/attemptDocuments.ts';
import type { RunDocument, RunList } from '../../src/viewer/documents/resources.ts';
import type { TrialPage } from '../../src/viewer/documents/trialDocuments.ts';
import { EARLY_SCRIPT, hashOf } from '../../src/viewer/pageFiles.ts';
import { startViewer, type Viewer, type ViewerOptions } from '../../src/viewer/server.ts';
import { addRun, openFixture } from './fixture.ts';
import { iso, put } from './fixtureRows.ts';
import { addHostileRun } from './hostileRun.ts';

let dir: string;
let viewer: Viewer | undefined;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'swebatch-view-'));
  mkdirSync(join(dir, 'page', 'assets'), { recursive: true });
  writeFileSync(
    join(dir, 'page', 'index.html'),
    '<meta name="swebatch-mode" content="live"><div id="app"></div>',
  );
  writeFileSync(join(dir, 'page', 'assets', 'viewer.js'), 'export {};');
});
afterEach(async () => {
  await viewer?.close();
  viewer = undefined;
  rmSync(dir, { recursive: true, force: true });
});

const start = async (options: Partial<ViewerOptions> = {}): Promise<Viewer> => {
  viewer = await startViewer({ results: dir, port: 0, pageDir: join(dir, 'page'), pollMs: 10, ...options });
  return viewer;
};
const json = async <T>(path: string): Promise<T> =>
  (await (await fetch(`${viewer!.url}api/${path}`)).json()) as T;

/** fetch() sets Host by itself; a hostile client does not. */
function raw(
  path: string,
  headers: Record<string, string>,
  method = 'GET',
): Promise<{ status: number; body: string; headers: NodeJS.Dict<string | string[]> }> {
  return new Promise((done, failed) => {
    const call = request({ host: '127.0.0.1', port: viewer!.port, path, method, headers }, (response) => {
      let body = '';
      response.on('data', (chunk: Buffer) => {
        body += chunk.toString();
      });
      response.on('end', () => done({ status: response.statusCode!, body, headers: response.headers }));
    });
    call.on('error', failed);
    call.end();
  });
}

describe('viewer server', () => {
  test('a run of more trials than a page holds is served page by page, whole and in order', async () => {
    const store = openFixture(dir);
    const run = addRun(store, { name: 'wide', instances: 2300, steps: 1 });
    // A night that is being graded: no verdict on the last page yet.
    store.exec(
      'DELETE FROM evaluations WHERE instance_id IN (SELECT instance_id FROM instances WHERE position >= 2000)',
    );
    store.close();
    await start();
    const { trialPages } = await json<RunDocument>(`runs/${run}`);
    expect(trialPages).toBe(3);
    const pages = await Promise.all([0, 1, 2].map((n) => json<TrialPage>(`runs/${run}/trials/${n}`)));
    expect(pages.map((page) => [page.total, page.rows.length])).toEqual([
      [2300, 1000],
      [2300, 1000],
      [2300, 300],
    ]);
    const ids = pages.flatMap((page) => page.rows.map((row) => row.instance_id));
    expect(new Set(ids).size).toBe(2300);
    expect(ids[0]).toBe('django__django-10000');
    expect(ids.at(-1)).toBe('psf__requests-12299');
    expect(new Set(pages[2]?.rows.map((row) => row.verdict))).not.toContain('resolved');
    expect(pages[2]?.rows.some((row) => row.verdict === 'not_graded')).toBe(true);
    expect((await json<TrialPage>(`runs/${run}/trials/3`)).rows).toEqual([]);
  });

  test('serves runs, trials page by page, attempts and messages from the database', async () => {
    const store = openFixture(dir);
    const id = addRun(store, { name: 'nightly', instances: 12, steps: 30 });
    store.close();
    await start();
    const { runs } = await json<RunList>('runs');
    expect(runs).toHaveLength(1);
    expect(runs[0]!.arms[0]!.score).toMatchObject({ planned: 12, valid: 10, resolved: { n: 10 } });
    const run = await json<RunDocument>(`runs/${id}`);
    expect(run.series.at(-1)!.costNano).toBe(run.summary.money.costNano);
    expect(run.summary.classes).toMatchObject({ infra: 2 });
    const page = await json<TrialPage>(`runs/${id}/trials/0`);
    expect(page.rows).toHaveLength(12);
    expect(page.rows.find((row) => row.attempts === 2)!.flags).toContain('retried');
    expect((await json<TrialPage>(`runs/${id}/trials/1`)).rows).toHaveLength(0);
    const attempt = await json<AttemptDocument>(`attempts/${page.rows[0]!.attempt}`);
    const answers = attempt.outline.filter((row) => row.role === 'assistant');
    expect(answers.map((row) => row.step)).toEqual(answers.map((_row, i) => i + 1));
    expect(answers.reduce((sum, row) => sum + row.call!.cost_nano!, 0)).toBe(attempt.attempt.money.costNano);
    const chunks: MessageChunk[] = [];
    for (let i = 0; i < attempt.chunks; i += 1)
      chunks.push(await json(`attempts/${attempt.attempt.id}/messages/${i}`));
    expect(chunks.flatMap((chunk) => chunk.messages.map((message) => message.seq))).toEqual(
      attempt.outline.map((row) => row.seq),
    );
  });

  test('the cost of a trial counts its earlier attempts too', async () => {
    const store = openFixture(dir);
    const id = addRun(store, { name: 'nightly', instances: 4, steps: 3 });
    const spent = store.prepare('SELECT sum(cost_nano) AS nano FROM model_calls').get() as { nano: number };
    store.close();
    await start();
    const page = await json<TrialPage>(`runs/${id}/trials/0`);
    expect(page.rows.reduce((sum, row) => sum + row.money.costNano!, 0)).toBe(spent.nano);
  });

  test('unknown cost stays unknown', async () => {
    const store = openFixture(dir);
    const id = addRun(store, { name: 'nightly', instances: 1, steps: 2 });
    store.exec('UPDATE model_calls SET cost_nano = NULL');
    store.close();
    await start();
    const { rows } = await json<TrialPage>(`runs/${id}/trials/0`);
    expect(rows[0]!.money.costNano).toBeNull();
    expect(rows[0]!.flags).toContain('cost unknown');
  });

  test('what is not there is 404, what is not a number is too', async () => {
    openFixture(dir).close();
    await start();
    for (const path of [
      'runs/1',
      'attempts/9',
      'attempts/x',
      'attempts/1e3',
      'evaluations/0',
      'history/no',
      'runs/1/trials',
      '../swebatch.db',
      '__proto__',
      'constructor',
      'runs/1/constructor/0',
    ])
      expect((await raw(`/api/${path}`, { host: `127.0.0.1:${viewer!.port}` })).status, path).toBe(404);
    for (const path of [
      '/swebatch.db',
      '/../swebatch.db',
      '/assets/../../swebatch.db',
      '/%2e%2e/swebatch.db',
      '//evil.example/',
    ])
      expect((await raw(path, { host: `127.0.0.1:${viewer!.port}` })).status, path).toBe(404);
    expect((await raw('/api/%ff', { host: `127.0.0.1:${viewer!.port}` })).status).toBe(400);
  });

  test('what the page of an address asks for first comes in one answer, the same as each by itself', async () => {
    const store = openFixture(dir);
    const run = addRun(store, { name: 'night 1', instances: 3, steps: 2 });
    store.close();
    await start();
    const first = async (at: string): Promise<[path: string, text: string][]> => {
      const lines = (
        await (await fetch(`${viewer!.url}api/first?at=${encodeURIComponent(at)}`)).text()
      ).split('\n');
      return Array.from({ length: lines.length / 2 }, (_, i) => [lines[2 * i]!, lines[2 * i + 1]!]);
    };
    const attempt = (await json<TrialPage>(`runs/${run}/trials/0`)).rows[0]!.attempt;
    const asked: [at: string, paths: string[]][] = [
      ['', ['runs']],
      ['#/run/night%201?by=repo', ['runs', `runs/${run}`, `runs/${run}/map/0`]],
      ['#/run/night%201/instances', ['runs', `runs/${run}/trials/0`]],
      [`#/attempt/${attempt}`, ['runs', `attempts/${attempt}`, `attempts/${attempt}/messages/0`]],
      ['#/run/nobody', ['runs']],
      ['#/run/%ff/../x', ['runs']],
      ['#/attempt/runs%2F1', ['runs']],
    ];
    for (const [at, paths] of asked) {
      const found = await first(at);
      expect(
        found.map(([path]) => path),
        at,
      ).toEqual(paths);
      for (const [path, text] of found) expect(JSON.parse(text), path).toEqual(await json(path));
    }
  });

  test('the list of a run has the first line of each task', async () => {
    const store = openFixture(dir);
    const run = addRun(store, { name: 'night', instances: 4, steps: 1 });
    const say = (position: number, row: string) =>
      store.exec(`UPDATE instances SET row = '${row.replaceAll("'", "''")}' WHERE position = ${position}`);
    say(0, JSON.stringify({ problem_statement: '\n---\n## Fix the <b>thing</b>\nas soon as you can' }));
    say(1, JSON.stringify({ problem_statement: 7 }));
    say(2, 'no JSON');
    say(3, JSON.stringify({ problem_statement: '修复'.repeat(500) }));
    store.close();
    await start();
    const { rows } = await json<TrialPage>(`runs/${run}/trials/0`);
    expect(rows.map(({ task }) => task)).toEqual(['Fix the <b>thing</b>', '7', undefined, '修复'.repeat(80)]);
  });

  test('checks Host and Origin exactly and sends a strict policy with every answer', async () => {
    openFixture(dir).close();
    await start();
    const host = `127.0.0.1:${viewer!.port}`;
    expect((await raw('/', { host: 'evil.example' })).status).toBe(403);
    expect((await raw('/api/runs', { host, origin: 'http://evil.example' })).status).toBe(403);
    expect((await raw('/api/runs', { host }, 'POST')).status).toBe(405);
    for (const path of ['/', '/api/runs', '/api/nothing', '/assets/viewer.js']) {
      const { headers } = await raw(path, { host });
      const policy = String(headers['content-security-policy']);
      // The page alone has one line of script inside, which the policy names by its hash.
      const scripts = path === '/' ? `'self' ${hashOf(EARLY_SCRIPT)}` : "'self'";
      expect(policy).toContain(`default-src 'none'; script-src ${scripts}; style-src 'self'`);
      expect(policy).not.toMatch(/unsafe|\*/);
      expect(headers['x-content-type-options']).toBe('nosniff');
      expect(headers['access-control-allow-origin']).toBeUndefined();
    }
  });

  test('off loopback a token is made; without it there is nothing, with it a cookie takes over', async () => {
    openFixture(dir).close();
    await start({ host: '0.0.0.0' });
    const token = new URL(viewer!.url).searchParams.get('token')!;
    expect(token.length).toBeGreaterThanOrEqual(32);
    const host = `127.0.0.1:${viewer!.port}`;
    expect((await raw('/', { host })).status).toBe(401);
    expect((await raw('/api/runs', { host })).status).toBe(401);
    const first = await raw(`/?token=${token}`, { host });
    expect(first.status).toBe(303);
    expect(first.headers.location).toBe('/');
    const [cookie] = first.headers['set-cookie'] as unknown as string[];
    expect(cookie).toMatch(/HttpOnly; SameSite=Lax; Path=\//);
    expect((await raw('/api/runs', { host, cookie: cookie!.split(';')[0]! })).status).toBe(200);
    expect((await raw('/api/runs', { host, authorization: `Bearer ${token}` })).status).toBe(200);
  });

  test('says within moments that another process wrote', async () => {
    const store = openFixture(dir);
    const run = addRun(store, { name: 'nightly', instances: 3, steps: 2, doneUntil: 1 });
    await start();
    const live = await fetch(`${viewer!.url}api/live`);
    const reader = live.body!.pipeThrough(new TextDecoderStream()).getReader();
    let heard = (await reader.read()).value!;
    expect(heard).toContain('event: hello');
    put(store, 'events', { run_id: run, at: iso(0, 1), type: 'note', data: '{}' });
    while (!heard.includes('event: change')) {
      const { value, done } = await reader.read();
      if (done) break;
      heard += value;
    }
    expect(heard).toContain('event: change');
    await reader.cancel();
    store.close();
  });

  test('a running trial shows its steps so far, its slot and its phase', async () => {
    const store = openFixture(dir);
    const id = addRun(store, { name: 'nightly', instances: 9, steps: 2, doneUntil: 3 });
    put(store, 'events', {
      run_id: id,
      at: iso(0, 5),
      type: 'breaker',
      data: '{"reason":"5 instances in a row ended as env_start_failed"}',
    });
    store.close();
    await start();
    const run = await json<RunDocument>(`runs/${id}`);
    expect(run.now!.slots.map((slot) => [slot.slot, slot.phase, slot.steps])).toEqual([
      [0, 'model', 1],
      [1, 'exec', 2],
      [2, 'pull', 3],
      [3, 'rate_wait', 4],
    ]);
    expect(run.breaker).toMatchObject({
      open: true,
      reason: expect.stringContaining('5 instances in a row'),
    });
  });

  test('a hostile database is data: no key, no text and no broken column breaks a document', async () => {
    const store = openFixture(dir);
    const { run, attempt } = addHostileRun(store);
    store.prepare("UPDATE attempts SET notes = 'not json', suspicion = '{}'").run();
    store.prepare("UPDATE messages SET data = '[' WHERE seq = 3").run();
    store.close();
    await start();
    expect((await json<TrialPage>(`runs/${run}/trials/0`)).rows.map((row) => row.arm)).toContain('__proto__');
    expect((await json<MessageChunk>(`attempts/${attempt}/messages/0`)).messages).toHaveLength(4);
    expect((await json<AttemptDocument>(`attempts/${attempt}`)).attempt.notes).toEqual([]);
    expect(await json<unknown[]>('history/constructor')).toHaveLength(1);
    const body = await (await fetch(`${viewer!.url}api/attempts/${attempt}/raw/0`)).text();
    expect(() => JSON.parse(body) as unknown).not.toThrow();
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });

  test('names the remedy when there is no page or no free port', async () => {
    openFixture(dir).close();
    await expect(start({ pageDir: join(dir, 'nowhere') })).rejects.toThrow('npm run build:viewer');
    const first = await start();
    await expect(startViewer({ results: dir, port: first.port, pageDir: join(dir, 'page') })).rejects.toThrow(
      /port \d+ on 127.0.0.1 is taken; choose another with --port/,
    );
  });

  test('ends with its signal', async () => {
    openFixture(dir).close();
    const stop = new AbortController();
    const { url } = await start({ signal: stop.signal });
    stop.abort();
    await viewer!.close();
    await expect(fetch(url)).rejects.toThrow();
  });
});
