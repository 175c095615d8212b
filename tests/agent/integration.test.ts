// The agent with its real neighbours: a shipped configuration, scripted replies, and commands that really run on this machine.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createAgent } from '../../src/agent/loop/agent.ts';
import { loadConfig } from '../../src/config/loadConfig.ts';
import type { Environment } from '../../src/environment/environment.ts';
import { createLocalFactory } from '../../src/environment/local/localFactory.ts';
import { currentOwner } from '../../src/environment/owner.ts';
import { createModelFactory } from '../../src/model/modelFactory.ts';
import { readTextFile } from '../config/readTextFile.ts';

const block = (command: string): string => `I do this next.\n\n\`\`\`bash\n${command}\n\`\`\``;
const tool = (...commands: string[]) => ({
  content: 'I do this next.',
  tool_calls: commands.map((command) => ({ function: { name: 'bash', arguments: { command } } })),
});

let root: string;
let repository: string;
let environment: Environment;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'swebatch-agent-'));
  repository = join(root, 'testbed');
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@t', ...args], {
      cwd: repository,
      stdio: 'ignore',
    });
  execFileSync('mkdir', [repository]);
  writeFileSync(join(repository, 'calc.py'), 'def div(a, b):\r\n    return a / b\r\n');
  writeFileSync(join(repository, '.gitattributes'), '* -text\n');
  git('init');
  git('add', '-A');
  git('commit', '-m', 'start');
});
afterEach(async () => {
  await environment?.close();
  rmSync(root, { recursive: true, force: true });
});

async function play(configName: string, replies: readonly unknown[], ...specs: string[]) {
  const script = join(root, 'replies.json');
  writeFileSync(script, JSON.stringify(replies));
  const { config } = loadConfig({
    // The start-up file is the image's; this machine's own must not run. A finished script repeats itself, so there is a limit.
    specs: [configName, 'environment.env.BASH_ENV=', 'agent.step_limit=10', ...specs],
    overrides: {
      // The start-up file of whoever runs the tests is not part of them.
      environment: { environment_class: 'local', cwd: repository, env: { BASH_ENV: '' } },
      model: { model_name: `scripted:${script}` },
    },
    readFile: readTextFile,
    cwd: '/',
  });
  environment = await createLocalFactory(config.environment).start({
    instanceId: 'calc__calc-1',
    image: '',
    owner: currentOwner('test', '1'),
  });
  const factory = await createModelFactory(config.model);
  const model = factory.create({ instanceId: 'calc__calc-1', epoch: 0 });
  const agent = createAgent({ instanceId: 'calc__calc-1', model, environment, config: config.agent });
  const ended = await agent.run('Dividing by zero is not reported.\n{{ braces }}');
  await factory.close();
  return ended;
}

const FIX = "sed -i 's|return a / b|return a / b if b else None|' calc.py";

describe('from a shipped configuration to a patch that applies', () => {
  const applies = (bytes: Uint8Array) => {
    const patch = join(root, 'p.patch');
    writeFileSync(patch, bytes);
    execFileSync('git', ['checkout', '-q', '.'], { cwd: repository });
    execFileSync('git', ['apply', patch], { cwd: repository });
    return readFileSync(join(repository, 'calc.py'), 'utf8');
  };
  const submit = 'echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && git diff';
  test('bash blocks: look, fix, submit; the CRLF of the file survives [M-69, S-32]', async () => {
    const ended = await play('default', [block('cat calc.py'), block(FIX), block(submit)]);
    expect(ended).toMatchObject({ exitStatus: 'Submitted', steps: 3, costNano: 0 });
    expect(ended.messages[1]?.content).toContain('{{ braces }}');
    expect(ended.messages[1]?.content).toContain(repository);
    expect(applies(ended.submissionBytes!)).toBe('def div(a, b):\r\n    return a / b if b else None\r\n');
  });
  test('tool calls, several in one turn', async () => {
    const ended = await play('swebench', [tool('cat calc.py', 'ls'), tool(FIX), tool(submit)]);
    expect(ended).toMatchObject({ exitStatus: 'Submitted', steps: 3 });
    expect(ended.messages.filter((m) => m.role === 'tool')).toHaveLength(3);
    expect(applies(ended.submissionBytes!)).toContain('if b else None');
  });
});

test('state does not go from one command to the next, and a failing command is an observation [S-24]', async () => {
  const ended = await play('default', [
    block('export X=1; cd /; exit 3'),
    block('echo "X=$X in $PWD"'),
    block('echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; false'),
    block('echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT'),
  ]);
  const observed = ended.messages.filter((m) => m.role === 'user').map((m) => String(m.content));
  expect(observed[1]).toContain('<returncode>3</returncode>');
  expect(observed[2]).toContain(`X= in ${repository}`);
  expect(observed[3]).toContain('<returncode>1</returncode>');
  expect(ended).toMatchObject({ exitStatus: 'Submitted', submission: '', steps: 4 });
});

test('a command that hangs is killed, told, and the attempt goes on [S-25]', async () => {
  const ended = await play(
    'default',
    [block('echo before; sleep 100'), block('echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT')],
    'environment.timeout=3',
  );
  expect(ended.exitStatus).toBe('Submitted');
  expect(ended.messages[3]?.content).toMatch(
    /<command>echo before; sleep 100<\/command> timed out[\s\S]*before/,
  );
});

test('the wall-clock limit ends a command in flight [M-12]', async () => {
  const ended = await play(
    'default',
    [block('sleep 100')],
    'agent.wall_time_limit_seconds=3',
    'environment.timeout=60',
  );
  expect(ended).toMatchObject({ exitStatus: 'TimeExceeded', limit: 'wall_time', steps: 1 });
});

test('output that is no text reaches the model as text and the submission as bytes', async () => {
  const ended = await play('default', [
    block("printf '\\xff\\xfe ok \\360\\237\\230\\200\\r\\n'"),
    block("printf 'COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\\n\\xff\\r\\n'"),
  ]);
  expect(ended.messages[3]?.content).toContain('\ufffd\ufffd ok 😀');
  expect(Buffer.from(ended.submissionBytes!)).toEqual(Buffer.from([0xff, 0x0d, 0x0a]));
});
