// The mistakes of a new user: each is answered with what is wrong, where, and what to do next, and with the exit code of a mistake.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { main } from '../../../src/cli/main.ts';
import { tempDir } from '../../support/cli.ts';
import { harborTask } from '../../support/kinds/harborTask.ts';

const before = { cwd: process.cwd(), env: process.env };
const json = (path: string, value: unknown) => writeFileSync(path, JSON.stringify(value));
const row = (id: string) => ({
  ...{ instance_id: id, repo: 'a/a', base_commit: 'a'.repeat(40), problem_statement: 'x', test_patch: '' },
  ...{ image: 'swebatch-test/none:1', patch: '', FAIL_TO_PASS: '[]', PASS_TO_PASS: '[]' },
});
const rows = (...ids: string[]) => ids.map((id) => `${JSON.stringify(row(id))}\n`).join('');
const prediction = (id: string) => ({ [id]: { instance_id: id, model_name_or_path: 'm', model_patch: 'd' } });

/** `swebatch …` in this process; what it says is put together. */
async function swebatch(args: readonly string[]): Promise<{ code: number; said: string }> {
  let said = '';
  const write = ((text: string, ...more: unknown[]) => {
    said += text;
    for (const callback of more) if (typeof callback === 'function') callback();
    return true;
  }) as typeof process.stdout.write;
  vi.spyOn(process.stdout, 'write').mockImplementation(write);
  vi.spyOn(process.stderr, 'write').mockImplementation(write);
  const code = await main(args);
  vi.restoreAllMocks();
  return { code, said };
}

beforeAll(async () => {
  process.chdir(tempDir());
  process.env = { PATH: process.env.PATH, HOME: process.cwd(), TZ: 'UTC', DOCKER_HOST: 'tcp://127.0.0.1:1' };
  for (const folder of ['folder', 'folder.jsonl', 'folder.yaml', 'repo', 'torn']) mkdirSync(folder);
  writeFileSync('data.jsonl', rows('a__a-1', 'a__a-2'));
  writeFileSync('other.jsonl', rows('z__z-1'));
  writeFileSync('empty.jsonl', '');
  writeFileSync('broken.jsonl', `${rows('a__a-1')}{"instance_id": "b", \n`);
  writeFileSync('columns.jsonl', '{"instance_id": "a__a-1", "repo": "a/a"}\n');
  writeFileSync('twice.jsonl', rows('a__a-1', 'a__a-1'));
  writeFileSync('data.tsv', 'instance_id,repo\n');
  writeFileSync('broken.yaml', 'agent:\n  step_limit: [3\nmodel: {');
  writeFileSync('list.yaml', '- a\n- b\n');
  writeFileSync('typo.yaml', 'agnet:\n  step_limit: 3\n');
  writeFileSync('torn/swebatch.db', 'this is no database, and long enough to be looked at');
  writeFileSync('file', '');
  // It has a name and a size, and cannot be read; the other one never ends.
  for (const name of ['mem.json', 'mem.jsonl', 'mem.yaml']) symlinkSync('/proc/self/mem', name);
  symlinkSync('/dev/zero', 'zero.json');
  writeFileSync('utf16.jsonl', `\ufeff${rows('a__a-1')}`, 'utf16le');
  json('object.json', { data: [] });
  mkdirSync('splits');
  for (const split of ['a', 'b']) writeFileSync(`splits/${split}.jsonl`, rows('a__a-1'));
  writeFileSync('tabs.yaml', 'agent:\n\tstep_limit: 3\n');
  writeFileSync('twice.yaml', 'agent: {step_limit: 3}\nagent: {step_limit: 4}\n');
  writeFileSync('comment.json', '{\n  // three steps\n  "agent": {"step_limit": 3}\n}');
  writeFileSync('half.yaml', 'agent:\n  step_limit:\n');
  writeFileSync('model.yaml', 'model: gpt-5.4\n');
  writeFileSync('arms.yaml', 'arms:\n  - name: a\n  - name: a\n');
  writeFileSync('two.yaml', 'run:\n  workers: "four"\n  retry: 3\n');
  json('preds.json', prediction('a__a-1'));
  json('strangers.json', prediction('z__z-1'));
  json('list.json', [1, 2]);
  for (const [task, toml] of [
    ['fine', '[environment]\ndocker_image = "swebatch-test/none:1"\n'],
    ['broken', '[environment'],
  ])
    harborTask('tasks', task!, { 'task.toml': toml! });
  writeFileSync('torn.json', '{"a__a-1": {');
  json('noReplies.json', { replies: 3 });
  json('replies.json', {
    replies: [{ content: '```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n```' }],
  });
  execFileSync('git', ['init', '-q', 'repo']);
  const local = ['-c', 'environment.environment_class=local', '-c', `environment.cwd=${process.cwd()}/repo`];
  const quiet = ['--progress', 'none', ...MODEL];
  for (const [name, data] of [
    ['night', 'data.jsonl'],
    ['elsewhere', 'other.jsonl'],
  ] as const)
    await swebatch(['run', '--subset', data, ...local, ...quiet, '--run-id', name]);
  const nowhere = ['-c', `environment.cwd=${process.cwd()}/file/x`, '-c', 'run.retry.attempts=1'];
  await swebatch(['run', ...DATA, ...local, ...nowhere, ...quiet, '--run-id', 'half']);
});
afterAll(() => {
  process.chdir(before.cwd);
  process.env = before.env;
});
afterEach(() => void vi.restoreAllMocks());

const MODEL = ['-m', 'scripted:replies.json'];
const DATA = ['--subset', 'data.jsonl'];
const KEY = 'OPENAI_API_KEY=sk-0123456789abcdef';

/** A line of a shell: variables in front, then the arguments. */
const PLAN = ['run', ...DATA, ...MODEL, '--dry-run'];

type Mistake = readonly [args: readonly string[], code: number, ...said: (string | RegExp)[]];
const VERBS_AND_OPTIONS: readonly Mistake[] = [
  [['--hlep'], 2, 'there is no option --hlep; did you mean --help?'],
  [['runs'], 2, 'there is no verb "runs"; did you mean "run"?'],
  [[], 2, 'name a verb; "swebatch run -c demo" is a first run', '"swebatch --help" shows what there is'],
  [['rnu'], 2, 'there is no verb "rnu"; did you mean "run"?'],
  [['config'], 2, 'there is no verb "config"; did you mean "config show"?'],
  [['run', '--wrokers', '3'], 2, 'there is no option --wrokers; did you mean --workers?', 'run --help'],
  [['run', '--workers'], 2, '--workers needs a value'],
  [['ls', 'night', 'extra'], 2, 'unexpected argument "extra"'],
  [['--bogus', 'ls'], 2, 'there is no option --bogus'],
  [['-o', 'nowhere', 'ls'], 2, 'no results database at'],
  [['show'], 2, '<run> is missing: swebatch show <run> [instance]'],
  [[...PLAN, '-o', 'a', '-o', 'b'], 2, '--output: given more than once'],
];
const VALUES: readonly Mistake[] = [
  [[...PLAN, '-w', '0'], 2, '--workers: must be a whole number of 1 or more'],
  [[...PLAN, '-w', '-3'], 2, '--workers: must be a whole number of 1 or more'],
  [[...PLAN, '-w', 'two'], 2, '--workers: must be a whole number of 1 or more'],
  [[...PLAN, '--epochs', '0'], 2, '--epochs: must be a whole number of 1 or more'],
  [[...PLAN, '--cost-limit', '5$'], 2, '--cost-limit: must be a number of dollars, or none'],
  [[...PLAN, '--cost-limit=-1'], 2, '--cost-limit: must be 0 or more dollars, or none'],
  [[...PLAN, '--model-latency=-1'], 2, '--model-latency: must be a number of milliseconds, 0 or more'],
  [[...PLAN, '--progress', 'bar'], 2, '--progress "bar" must be one of auto, plain, json, none'],
  [[...PLAN, '--run-id', '../x'], 2, '--run-id: must be 1 to 100 of A-Z a-z 0-9 _ . -'],
  [['view', '--port', '99999'], 2, '--port: must be 65535 or less'],
  [['view', '--port', 'abc'], 2, '--port: must be a number'],
  [['ls', 'night', '--class', 'infr'], 2, '--class "infr" must be one of agent,', 'did you mean infra?'],
  [['resume', 'night', '--retry', 'nonsense'], 2, '--retry: must be one of agent, limit'],
  [
    ['ctl', 'pause', 'night'],
    2,
    'command "night" must be one of pause,',
    'the order is: swebatch ctl [run] [command]',
  ],
  [['ls', 'torn'], 2, 'torn is a results root, not a run', 'swebatch ls -o torn'],
  [['completion', 'tcsh'], 2, 'shell "tcsh" must be one of bash, zsh, fish'],
  [['export', 'night', 'jnuit'], 2, 'did you mean junit?'],
  [[...PLAN, '--run-id', 'last'], 2, '--run-id: must not be "last", which means the newest run'],
  [
    [...PLAN, '--evaluate=yes'],
    2,
    '--evaluate takes no value (it is "yes"); say --evaluate or --no-evaluate',
  ],
  [[...PLAN, '-i', ''], 2, '--instance: must not be empty'],
  [[...PLAN, '--seed', 'abc'], 2, '--seed: must be a whole number of 0 or more'],
  [['run', ...DATA, '-m'], 2, '-m needs a value'],
  [['models', ''], 2, '<name>: must not be empty'],
  [['images', 'rm', 'data.jsonl'], 2, 'action "rm" must be one of plan, pull, build, ls, gc, check'],
  [
    ['export', 'night', 'preds', '--arm', 'nobody'],
    2,
    '--arm chooses the arm of a submission; everything else is written for all arms',
  ],
];
const DATASETS: readonly Mistake[] = [
  [['run', '--subset', 'demo.jsonl', ...MODEL], 2, 'multimodal, rebench, demo; did you mean demo?'],
  [
    ['run', '--subset', 'http://127.0.0.1:1/d.jsonl', ...MODEL],
    2,
    'is an address: download the file and name its path',
  ],
  [['run', '--subset', 'utf16.jsonl', ...MODEL], 2, 'utf16.jsonl line 1: not valid UTF-8'],
  [['run', '--subset', 'object.json', ...MODEL], 2, 'object.json line 1: the row is a list, not an object'],
  [['run', '--subset', 'splits', ...MODEL], 2, 'splits holds the splits a, b; choose one with --split'],
  [['run', '--subset', 'org/name', ...MODEL], 2, 'no local copy of the dataset "org/name" was found'],
  [[...PLAN, '--slice', '9:'], 2, '0 instances selected: 2 were there before --slice "9:", none after'],
  [
    ['datasets', 'add', 'http://127.0.0.1:1/d.jsonl'],
    2,
    /cannot be cloned: fatal: unable to access.*\n {2}it must be the address of a git repository/,
  ],
  [['run', ...MODEL], 2, 'no dataset is named', 'add --subset', 'a file (data.jsonl'],
  [['run', '--subset', 'verifed', ...MODEL], 2, 'did you mean verified?'],
  [['run', '--subset', 'missing.jsonl', ...MODEL], 2, 'there is no file or directory missing.jsonl'],
  [['run', '--subset', 'folder', ...MODEL], 2, 'folder holds no dataset: expected <split>.parquet'],
  [['run', '--subset', 'folder.jsonl', ...MODEL], 2, 'folder.jsonl holds no dataset: expected'],
  [['run', '--subset', 'empty.jsonl', ...MODEL], 2, 'empty.jsonl: the dataset holds no instances'],
  [['run', '--subset', 'broken.jsonl', ...MODEL], 2, 'broken.jsonl line 2: not valid JSON'],
  [['run', '--subset', 'columns.jsonl', ...MODEL], 2, 'line 1 (a__a-1): problem_statement is missing'],
  [['run', '--subset', 'twice.jsonl', ...MODEL], 2, 'line 2 (a__a-1): the same instance_id as line 1'],
  [['run', '--subset', 'data.tsv', ...MODEL], 2, 'expected one of .parquet .jsonl .ndjson .json .csv'],
  [[...PLAN, '--slice', 'abc'], 2, 'write start:stop or start:stop:step, for example 0:5'],
  [[...PLAN, '--filter', '('], 2, '--filter "(" is not a regular expression'],
  [[...PLAN, '--filter', 'nothing'], 2, '0 instances selected: 2 were there before --filter "nothing"'],
  [[...PLAN, '-i', 'a__a-3'], 2, 'no instance named a__a-3', '`swebatch datasets show` lists the ids'],
  [
    [...PLAN, '-c', 'grading.dialect=v4.1'],
    2,
    'grading.dialect: there is no such key; did you mean grading.harness?',
  ],
  [
    [...PLAN, '-c', 'images.attempts=2'],
    2,
    'images.attempts: there is no such key; did you mean images.tries?',
  ],
  [['evaluate', 'r1', '--dialect', 'v5'], 2, 'there is no option --dialect; did you mean --harness?'],
  [[...PLAN, '--sample', '1', '--stratify', 'colour'], 2, 'no row of the dataset has the column colour'],
  [[...PLAN, '--failed-in', 'nobody'], 2, 'there is no run "nobody"', 'list them with "swebatch ls"'],
  [['datasets', 'pull', 'verifed'], 2, '"verifed" is not a dataset of the hub', 'did you mean verified?'],
  [[...PLAN, '-w', '1000000000'], 2, '--workers: must be 10000 or less (it is 1000000000)'],
  [[...PLAN, '-w', '1.5'], 2, '--workers: must be a whole number of 1 or more'],
  [['show', 'lst'], 2, 'there is no run "lst"; did you mean "last"?'],
  [['compare', 'night', 'nihgt'], 2, 'nor a file; did you mean night?'],
  [['resume', 'r1', '--retry', 'unresolvd'], 2, 'did you mean unresolved?'],
  [['agents', 'add', 'claude-cod'], 2, 'names no agent with its version; did you mean claude-code?'],
  ...(['resume', 'delete'] as const).map(
    (verb): Mistake => [[verb, 'r1', '-o', 'nowhere'], 2, 'start a run first'],
  ),
];
const CONFIGURATION: readonly Mistake[] = [
  [[...PLAN, '-c', 'agent.agent_class=defualt'], 2, 'there is no such file; did you mean default?'],
  [[...PLAN, '-c', 'environment.environment_class=dcoker'], 2, 'is not known; did you mean docker?'],
  ...['m\u200b', 'm\b', 'm\ufe0f', 'm\u00a0', ' m', 'm '].map(
    (name): Mistake => [['run', ...DATA, '-m', name, '--dry-run'], 2, 'no character that nobody sees'],
  ),
  [[...PLAN, '-c', 'tabs.yaml'], 2, /tabs\.yaml: Tabs are not allowed as indentation at line 2, column 1/],
  [[...PLAN, '-c', 'twice.yaml'], 2, /twice\.yaml: Map keys must be unique at line 2, column 1/],
  [
    [...PLAN, '-c', 'comment.json'],
    2,
    /\/\/ three steps.*: a comment begins with #, in JSON too \(in .*comment\.json\)/,
  ],
  [[...PLAN, '-c', 'half.yaml'], 2, /agent\.step_limit: must be a number \(it is null\) \(in .*half\.yaml\)/],
  [['run', ...DATA, '-c', 'model.yaml'], 2, 'model: must be a section with keys (it is "gpt-5.4")'],
  [[...PLAN, '-c', 'arms.yaml'], 2, 'arms[1]: the name "a" is taken by another arm; give each its own name'],
  [
    [...PLAN, '-c', 'two.yaml'],
    2,
    'run.workers: must be a number (it is "four")',
    'run.retry: must be a section',
  ],
  [[...PLAN, '-c', '=3'], 2, '-c =3: expected key.path=value'],
  [
    [...PLAN, '-c', 'agent.step_limit'],
    2,
    'there is no configuration "agent.step_limit"',
    'where it is a key, it takes a value: agent.step_limit=VALUE',
  ],
  [[...PLAN, '-c', 'missing.yaml'], 2, /no configuration "missing.yaml"; looked for .* Built in are default/],
  [[...PLAN, '-c', 'folder.yaml'], 2, 'there is no configuration "folder.yaml"; looked for'],
  [[...PLAN, '-c', 'broken.yaml'], 2, /broken\.yaml: .* at line 3, column 1/],
  [[...PLAN, '-c', 'list.yaml'], 2, /list\.yaml: expected sections such as agent:/],
  [[...PLAN, '-c', 'typo.yaml'], 2, /agnet: there is no such key; did you mean agent\? \(in .*typo\.yaml\)/],
  [[...PLAN, '-c', 'agent.step_limti=3'], 2, 'did you mean agent.step_limit?'],
  [[...PLAN, '-c', 'agent.step_limit=many'], 2, 'agent.step_limit: must be a number (it is "many")'],
  [[...PLAN, '-c', 'agent.step_limit=-1'], 2, 'agent.step_limit: must be 0 or more (it is -1)'],
  [[...PLAN, '-c', 'agent=3'], 2, 'agent: must be a section with keys (it is 3)'],
  [[...PLAN, '-c', 'run.workers=0'], 2, 'run.workers: must be 1 or more (it is 0)'],
  [[...PLAN, '-c', 'agent.system_template={{ taks }}'], 2, "did you mean 'task'?"],
  [
    [...PLAN, '-c', 'environment.environment_class=dcker'],
    2,
    'use docker, kubernetes, local, or the path of a module',
  ],
  [[...PLAN, '-c', 'agent.agent_class=codx'], 2, 'leave it out for the built-in agent'],
  [['config', 'show', '-c', 'swebnech'], 2, 'did you mean "swebench"?'],
  [[...PLAN, '--env-file', 'none.env'], 2, '--env-file none.env: ENOENT'],
];
const DEAD = ['-c', 'model.base_url=http://127.0.0.1:1/v1', '-c', 'model.prices=free'];
const MODELS: readonly Mistake[] = [
  [['run', ...DATA], 2, 'no model is named; name one with -m MODEL'],
  [['run', ...DATA, '-m', 'gpt-5.4'], 2, '$OPENAI_API_KEY is not set; export OPENAI_API_KEY=...'],
  [[KEY, 'run', ...DATA, '-m', 'opnai/gpt-5.4'], 2, 'no provider is known by the prefix of "opnai/gpt-5.4"'],
  [[KEY, 'run', ...DATA, '-m', 'gpt-99'], 2, 'no price for "gpt-99"; add prices: {input: …, output: …}'],
  [
    [KEY, 'run', ...DATA, '-m', 'gpt-5.4', '-c', 'model.prices={"input": -1, "output": 2}'],
    2,
    'model.prices.input: must be 0 or more (it is -1)',
  ],
  [
    [KEY, 'run', ...DATA, '-m', 'gpt-5.4', '-c', 'model.base_url=localhost:8000'],
    2,
    'model.base_url is not an http(s) URL: "localhost:8000"',
  ],
  [
    [...['run', ...DATA, '-m', 'hosted_vllm/x'], ...DEAD],
    2,
    'nobody listens at 127.0.0.1:1 (connection refused); start the server, or correct model.base_url',
  ],
  [['run', ...DATA, '-m', 'scripted:missing'], 2, 'there are no scripted replies at'],
  [['run', ...DATA, '-m', 'scripted:noReplies.json'], 2, /noReplies\.json is not a script of replies/],
  [['run', ...DATA, '-m', 'replay:nobody'], 2, 'there is no run "nobody"'],
];
const PLACES: readonly Mistake[] = [
  [[...PLAN, '-o', 'file'], 2, 'file is a file', 'name another results root with -o'],
  [[...PLAN, '-o', '/proc/results'], 2, 'no folder can be made there', 'name another results root with -o'],
  [
    ['ls', '-o', 'nowhere'],
    2,
    'no results database at',
    'name the results root with -o, or start a run first',
  ],
  [['ls', '-o', 'torn'], 5, 'swebatch.db is damaged', '.recover'],
  [
    ['export', 'night', 'csv', '--to', 'folder'],
    2,
    'cannot write folder: a folder stands there; name a file',
  ],
  [['export', 'night', 'preds', '--to', 'file'], 2, 'a file stands where a folder is needed'],
  [
    ['report', 'night', '--to', 'x.pdf'],
    2,
    '--to x.pdf: no report is written as .pdf',
    'name a file that ends in',
  ],
  [['run', '--subset', 'mem.jsonl', ...MODEL, '--dry-run'], 2, 'mem.jsonl cannot be read: EIO'],
  [['evaluate', 'mem.json', ...DATA], 2, 'mem.json cannot be read: EIO'],
  [['evaluate', 'zero.json', ...DATA], 2, 'zero.json cannot be read: it is not a file'],
  [['import', 'mem.json'], 2, 'mem.json cannot be read: EIO'],
  [['import', '/proc/self/mem'], 2, '/proc/self/mem cannot be read: EIO'],
  [['view', 'mem.json'], 2, 'mem.json cannot be read: EIO'],
  [['compare', 'mem.json', 'preds.json'], 2, 'mem.json cannot be read: EIO'],
  [['run', ...DATA, ...MODEL, '-c', 'mem.yaml'], 2, /-c: \S+mem\.yaml cannot be read: EIO/],
  [
    ['run', ...DATA, ...MODEL, '--baseline', 'last', '--must-pass', 'mem.json'],
    2,
    '--must-pass: mem.json cannot be read: EIO',
  ],
  [['view', 'file'], 2, '/file is a file', 'the folder that holds swebatch.db'],
  [['view', 'nowhere'], 2, 'there is no such folder: nowhere', 'name a results root'],
  [
    ['evaluate', 'nofile.json'],
    2,
    'nofile.json cannot be read: there is no such file',
    'name a predictions file',
  ],
  [['report', 'night', '--format', 'latex'], 2, 'LaTeX is written with --paper alone'],
  [['report', 'night', '--to', 'folder'], 2, 'cannot write folder: a folder stands there; name a file'],
];
const RUNS: readonly Mistake[] = [
  [['report', ''], 2, 'there is no run ""', 'list them with "swebatch ls"'],
  [['report', 'a/b'], 2, 'there is no run "a/b"', 'list them with "swebatch ls"'],
  [['report', 'h', '--history', 'x'], 2, 'unexpected argument "x"'],
  [['show', 'night', 'a__a'], 2, '"a__a" names several instances: a__a-1, a__a-2'],
  [['ctl', 'night', 'pause'], 2, 'no process works on night; it is complete'],
  [['ctl', 'night', 'budget'], 2, 'budget takes dollars for the whole run, like 12.50, or "none"'],
  [
    [
      'run',
      '--run-id',
      'night',
      '--subset',
      'other.jsonl',
      ...MODEL,
      '-c',
      'environment.environment_class=local',
    ],
    2,
    'run night cannot go on',
    'z__z-1 was not planned in this run',
  ],
  [['report', 'nobody'], 2, 'there is no run "nobody"', 'list them with "swebatch ls"'],
  [['show', 'nigth'], 2, 'there is no run "nigth"; did you mean "night"?'],
  [['show', 'night', 'a__a-9'], 2, 'run night has no instance "a__a-9"', 'swebatch ls night'],
  [
    ['resume', 'night', '--retry', '--id', 'a__a-9,a__a-8'],
    2,
    'run night has no instance "a__a-9", "a__a-8"',
    'swebatch ls night',
  ],
  [['resume', 'night', '--id', 'a__a'], 2, '"a__a" names several instances: a__a-1, a__a-2'],
  [['resume', 'night', '--retry', 'unsolved'], 2, '--retry: must be one of agent,', 'unresolved'],
  [['evaluate', 'night', '-i', 'a__a'], 2, '"a__a" names several instances: a__a-1, a__a-2'],
  [['compare', 'night', 'night', '--instance', 'a__a'], 2, '"a__a" names several instances'],
  [['run', '--failed-in', 'night/nobody', ...MODEL], 2, 'run night has no arm "nobody"'],
  [['export', 'nobody'], 2, 'there is no run "nobody"'],
  [['verify', 'nobody'], 2, 'there is no run "nobody"'],
  [['ctl', 'nobody', 'stop'], 2, 'there is no run "nobody"'],
  [['delete', 'night'], 2, 'this would delete night', 'no terminal to ask at: add --yes'],
  [['resume', 'nobody'], 2, 'there is no run "nobody"'],
  [['compare', 'night'], 2, 'compare needs two sides', 'name a second run, arm or file'],
  [['compare', 'night', 'nobody'], 2, '"nobody" is neither a run in', 'list them with "swebatch ls"'],
  [['compare', 'night', 'night'], 2, /warning: night\/\S+ is compared with itself; name another run/],
  [
    ['compare', 'night', 'elsewhere'],
    2,
    'night and elsewhere are not graded: there is no verdict to compare',
    'grade it with "swebatch evaluate night"',
  ],
  [
    ['ls', 'half', '--watch'],
    0,
    'half has ended: incomplete; "swebatch resume half --retry infra" runs again the 2 that failed',
  ],
  [['evaluate', 'half'], 3, 'no trial of half has a result that could be graded; "swebatch resume half'],
  [['resume', 'night'], 0, 'run night: complete', 'not graded; grade it with "swebatch evaluate night"'],
  [['baseline', 'set', 'half'], 0, 'warning: half is incomplete; its missing trials cannot be compared'],
  [['baseline', 'set', 'nobody'], 2, 'there is no run "nobody"'],
  [['baseline', 'sett', 'night'], 2, 'did you mean set?'],
];
const NIGHTS: readonly Mistake[] = [
  [
    ['run', ...DATA, ...MODEL, '--max-infra', '5%'],
    2,
    '--max-infra judges nothing without --baseline',
    'add',
  ],
  [
    ['run', ...DATA, ...MODEL, '--max-cost', '5'],
    2,
    '--max-cost judges nothing without --baseline',
    '--cost-limit is what ends a run',
  ],
  [
    [...PLAN, '--no-evaluate', '--baseline', 'nobody'],
    2,
    'there is no baseline or other run "nobody"',
    'swebatch baseline show',
  ],
  [[...PLAN, '--baseline', 'last', '--must-pass', 'no.txt'], 2, '--must-pass: there is no file no.txt'],
  [
    [...PLAN, '--baseline', 'last', '--max-drop', '5'],
    2,
    '--max-drop: "5" must be a share such as 2% or 0.02',
  ],
];
const GRADING: readonly Mistake[] = [
  [['evaluate'], 2, 'name what to evaluate', 'a predictions file (preds.json'],
  [['evaluate', 'preds.json'], 2, '--subset is missing', 'swebatch evaluate preds.json --subset verified'],
  [['evaluate', 'gold', '--subset', 'tasks'], 2, '1 of 2 tasks cannot run here', 'Docker does not answer'],
  [['evaluate', 'missing.json', ...DATA], 2, 'missing.json cannot be read: there is no such file'],
  [['evaluate', 'folder', ...DATA], 2, 'folder is not a predictions file: its name must end in .json'],
  [['evaluate', 'torn.json', ...DATA], 2, 'torn.json: it is not JSON'],
  [['evaluate', 'list.json', ...DATA], 2, 'entry 1 is a number; each prediction must be an object'],
  [['evaluate', 'strangers.json', ...DATA], 2, 'that the dataset does not have: z__z-1', 'name the dataset'],
  [['evaluate', '--regrade', 'nowhere', ...DATA], 2, 'there is no folder nowhere'],
  [['import', 'nowhere'], 2, 'there is no file or folder nowhere', 'name a folder of mini-swe-agent'],
  [['import', 'folder'], 2, 'nothing to import in folder'],
  [['replay', 'missing.json'], 2, 'there is no file or folder missing.json', 'name *.traj.json files'],
];
const ENGINES: readonly Mistake[] = [
  [
    ['run', ...DATA, ...MODEL],
    2,
    'Docker does not answer',
    '$DOCKER_HOST is tcp://127.0.0.1:1',
    'swebatch doctor',
  ],
  [['DOCKER_HOST=nonsense', 'run', ...DATA, ...MODEL], 2, '$DOCKER_HOST is nonsense'],
  [['DOCKER_HOST=unix:///nowhere.sock', 'run', ...DATA, ...MODEL], 2, 'connect ENOENT /nowhere.sock'],
  [['clean'], 2, 'Docker does not answer', '$DOCKER_HOST is tcp://127.0.0.1:1', 'swebatch doctor'],
  [['images', 'ls'], 2, 'does not answer', 'swebatch doctor'],
  [['images', 'plan', 'data.jsonl'], 2, 'does not answer', 'swebatch doctor'],
  [['doctor'], 2, 'FAIL Docker: connect ECONNREFUSED 127.0.0.1:1', 'fix:'],
  [['agents', 'add', 'codx'], 2, 'names no agent with its version', 'for example codex@'],
];

test.each(
  [VERBS_AND_OPTIONS, VALUES, DATASETS, CONFIGURATION, MODELS, PLACES, RUNS, NIGHTS, GRADING, ENGINES]
    .flat()
    .map(([args, ...rest]) => [args.join(' '), args, ...rest] as const),
)('%s', async (_, args, code, ...expected) => {
  const variables = args
    .filter((arg) => /^[A-Z_]+=/.test(arg))
    .map((arg) => arg.split('=') as [string, string]);
  const own = { ...process.env };
  Object.assign(process.env, Object.fromEntries(variables));
  const answer = await swebatch(args.slice(variables.length)).finally(() => (process.env = own));
  for (const text of expected)
    expect(answer.said, answer.said).toEqual(
      typeof text === 'string' ? expect.stringContaining(text) : expect.stringMatching(text),
    );
  expect(answer.code).toBe(code);
  // A defect asks for a report; a mistake never does.
  expect(answer.said).not.toMatch(/please report|undefined|\n\s+at /);
});

test('a byte order mark and the line ends of Windows are no mistake, in configurations and in datasets', async () => {
  writeFileSync('windows.yaml', '\ufeffagent:\r\n  step_limit: 7\r\n');
  writeFileSync('windows.jsonl', `\ufeff${rows('a__a-1').replaceAll('\n', '\r\n')}`);
  const plan = await swebatch([
    ...['run', '--subset', 'windows.jsonl', ...MODEL, '-c', 'windows.yaml'],
    ...['-c', 'environment.environment_class=local', '--dry-run', '--json'],
  ]);
  expect(plan.code, plan.said).toBe(0);
  expect(plan.said).toContain('"trials": 1');
  expect(plan.said).toMatch(/"step_?[lL]imit": 7/);
});

test('a report is written as the name of its file says', async () => {
  for (const [name, begins] of [
    ['r.html', '<!doctype html>'],
    ['r.md', '# '],
    ['r.json', '{'],
    ['r.txt', 'Run night'],
  ] as const) {
    expect((await swebatch(['report', 'night', '--to', name])).code).toBe(0);
    expect(readFileSync(name, 'utf8').slice(0, begins.length)).toBe(begins);
  }
  await swebatch(['report', 'night', '--format', 'markdown', '--to', 'r.html']);
  expect(readFileSync('r.html', 'utf8')).toMatch(/^# /);
});
