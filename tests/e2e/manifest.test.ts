// The manifest says what was sent and what answered: held against the requests that a server really got, and against the engine.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { type Bench, CANARY, faultBench, IMAGE } from '../faults/support.ts';
import { cli, REPO } from '../support/cli.ts';
import { dockerAvailable } from '../support/docker.ts';

const docker = await dockerAvailable();
let bench: Bench;
afterEach(() => bench?.close());

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const output = (...command: string[]) =>
  execFileSync(command[0]!, command.slice(1), { encoding: 'utf8', cwd: REPO }).trim();
const call = (id: string, command: string) => ({
  tool_calls: [
    { id, type: 'function' as const, function: { name: 'bash', arguments: JSON.stringify({ command }) } },
  ],
  finish_reason: 'tool_calls',
  fingerprint: 'fp_1',
});

describe.skipIf(!docker)('the manifest', () => {
  test('holds program, machine, engine, rows, images, templates, and the parameters that requests carried', async () => {
    const submit = 'echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT';
    bench = await faultBench({
      ids: ['a__a-1', 'a__a-2'],
      scripts: {
        'a__a-1': [call('a', 'ls'), call('b', submit)],
        'a__a-2': [call('c', submit)],
      },
    });
    const set = {
      'agent.protocol': 'tool-call',
      'model.model_kwargs.temperature': 0.25,
      'model.model_kwargs.reasoning_effort': 'high',
      'model.model_kwargs.custom_llm_provider': 'x',
      'model.model_kwargs.extra_headers': JSON.stringify({ 'X-Also': CANARY }),
    };
    const flags = Object.entries(set).flatMap(([key, value]) => ['-c', `${key}=${value}`]);
    const result = await bench.run(bench.id, flags);
    expect(result.code, result.stderr).toBe(0);
    const text = readFileSync(join(bench.root, bench.id, 'run.json'), 'utf8');
    const shown = await cli(['show', bench.id, '--manifest', '-o', bench.root]);
    expect(JSON.parse(shown.stdout)).toEqual(JSON.parse(text));
    expect(text).not.toContain(CANARY);
    const manifest = JSON.parse(text);

    const dirty = output('git', 'diff', 'HEAD') !== '';
    expect(manifest.program).toMatchObject({
      version: JSON.parse(readFileSync(join(REPO, 'package.json'), 'utf8')).version,
      commit: output('git', 'rev-parse', 'HEAD'),
      ...(dirty ? { dirty, diff_sha256: expect.stringMatching(/^[0-9a-f]{64}$/) } : {}),
    });
    expect(manifest.command.slice(0, 2)).toEqual(['run', '--subset']);
    expect(manifest.machine).toMatchObject({
      node: process.versions.node,
      cpus: cpus().length,
      memory_bytes: totalmem(),
    });
    const info = (field: string) => output('docker', 'info', '-f', `{{.${field}}}`);
    expect(manifest.docker).toMatchObject({
      version: info('ServerVersion'),
      storage_driver: info('Driver'),
    });
    const lines = readFileSync(bench.dataset);
    expect(manifest.dataset).toMatchObject({
      source: bench.dataset,
      file_sha256: createHash('sha256').update(lines).digest('hex'),
      rows: 2,
      count: 2,
      instance_ids: ['a__a-1', 'a__a-2'],
      row_hashes: { 'a__a-1': expect.stringMatching(/^[0-9a-f]{64}$/), 'a__a-2': expect.any(String) },
    });
    // Made here, so it has an id and no digest of a registry.
    const id = output('docker', 'image', 'inspect', '-f', '{{.Id}}', IMAGE);
    expect(manifest.images).toEqual({ [IMAGE]: id });
    expect(manifest.observed.image_digests).toMatchObject({ 'a__a-1': [id] });

    const templates = manifest.templates['fake-1'];
    expect(Object.keys(templates)).toEqual(['system', 'instance', 'observation', 'format_error', 'timeout']);
    for (const { text: template, sha256: hash } of Object.values<{ text: string; sha256: string }>(templates))
      expect(sha256(template)).toBe(hash);
    const [{ body }] = bench.server.requests as unknown as [{ body: Record<string, unknown> }];
    const { model, messages, ...parameters } = body;
    // Jinja leaves out one newline at the end.
    expect(`${(messages as { content: string }[])[0]!.content}\n`).toBe(templates.system.text);
    expect(parameters).toMatchObject({ temperature: 0.25, reasoning_effort: 'high' });
    expect(manifest.models['fake-1']).toEqual({
      asked: 'fake-1',
      sent_as: model,
      endpoint: bench.server.url,
      parameters,
      cache_control: null,
      alias: false,
      price: 'config: input 1, output 2',
    });
    // What the configuration wanted and no server is told.
    expect(manifest.config_warnings.join()).toContain('custom_llm_provider');
    expect(manifest.observed.models).toEqual([
      { asked: 'fake-1', answered: expect.any(String), fingerprint: 'fp_1', calls: 3 },
    ]);
    expect(manifest.observed.price_versions).toEqual(['config: input 1, output 2']);
    expect(manifest.grading).toMatchObject({ harness: 'v5', follows: 'SWE-bench harness 5.0' });
    expect(manifest.config.arms[0].environment).toMatchObject({ network: 'none', seal_history: true });
    expect(manifest.retry_policy).toMatchObject({ attempts: 2 });
    expect(manifest.config.arms[0].model.retry).toMatchObject({ max_retries: 2 });
  });

  test('keeps what was locked, and adds every change on the way and every trial that was tried again', async () => {
    bench = await faultBench({
      ids: ['a__a-1'],
      scripts: { 'a__a-1': [{ status: 503, body: { error: { message: 'down' } } }] },
    });
    expect((await bench.run(bench.id)).code).toBe(3);
    const read = () => JSON.parse(readFileSync(join(bench.root, bench.id, 'run.json'), 'utf8'));
    const { observed, ...locked } = read();
    expect(observed).toMatchObject({
      tried_again: [{ instance_id: 'a__a-1', ended: ['model_unavailable'] }],
      changes: [],
    });
    expect((await bench.resume(bench.id, ['--retry', 'infra', '-w', '3', '--cost-limit', '4'])).code).toBe(3);
    const { observed: later, ...still } = read();
    expect(still).toEqual(locked);
    expect(JSON.stringify(later.changes)).toContain('run.workers');
    expect(JSON.stringify(later.changes)).toContain('run.cost_limit');
  });
});
