// Modules of the user's that throw, return nonsense or change what is recorded: told where, never a broken record.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadAgent } from '../../src/agent/agents.ts';
import type { AgentCallbacks } from '../../src/agent/contract.ts';
import { createEnvironmentFactory, environmentConfigSchema } from '../../src/environment/environments.ts';
import type { Message } from '../../src/model/model.ts';
import { modelConfigSchema } from '../../src/model/modelConfig.ts';
import { createModelFactory } from '../../src/model/modelFactory.ts';
import { endingOfError, endingOfResult } from '../../src/run/exit.ts';
import { bash, config, fakeEnvironment, fakeModel, result, submitted } from './fakes.ts';

let dir = '';
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'swebatch-user-'));
});
afterAll(() => rmSync(dir, { recursive: true }));

let files = 0;
function module(text: string): string {
  files += 1;
  const name = `./m${files}.mjs`;
  writeFileSync(join(dir, name), text);
  return name;
}

const LOOP = join(import.meta.dirname, '../../src/agent/loop/agent.ts');
/** A subclass with this body, from line 3 on. */
const subclass = (body: string): string =>
  module(
    `import { DefaultAgent } from ${JSON.stringify(LOOP)};\nclass Mine extends DefaultAgent {\n${body}\n}\nexport const createAgent = (parts) => new Mine(parts);\n`,
  );

/** Runs it over two turns; `told` is the record. */
async function play(path: string) {
  const told: { index: number; message: Message }[] = [];
  const model = fakeModel([bash('ls'), bash('submit')]);
  const callbacks: AgentCallbacks = {
    onMessage: (_, message, index) => void told.push({ index, message: structuredClone(message) }),
    onCommand: () => undefined,
    onCallBegan: () => undefined,
    onCallEnded: () => undefined,
  };
  const end = (async () => {
    const { create } = await loadAgent(path, dir);
    const environment = fakeEnvironment([result('a b'), submitted('')]);
    return await create({ instanceId: 'i', model, environment, config: config(), callbacks }).run('t');
  })();
  const ending = await end.then(endingOfResult, (error: unknown) =>
    endingOfError(error, new AbortController().signal, true),
  );
  expect(told.map(({ index }) => index)).toEqual(told.map((_, at) => at));
  return { ending, told, asked: model.queries };
}

describe('a subclass of the agent', () => {
  test.each([
    ['push', 'this.messages.push({ role: "user", content: "a hint" })'],
    ['an index', 'this.messages[this.messages.length] = { role: "user", content: "a hint" }'],
    ['addMessage', 'this.addMessage({ role: "user", content: "a hint" })'],
  ])('that adds a message by %s has it recorded', async (_what, line) => {
    const { ending, told, asked } = await play(
      subclass(`  async step() { if (this.messages.length === 2) ${line};\n await super.step(); }`),
    );
    expect(ending).toMatchObject({ reason: 'submitted' });
    expect(told.map(({ message }) => message.role)).toEqual([
      'system',
      'user',
      'user',
      'assistant',
      'user',
      'assistant',
      'exit',
    ]);
    expect(told[2]!.message).toMatchObject({ content: 'a hint', extra: { timestamp: expect.any(Number) } });
    expect(asked[0]!.messages.map(({ content }) => content)).toContain('a hint');
    for (const [at, message] of asked[1]!.messages.entries())
      expect(message.content).toEqual(told[at]!.message.content);
  });

  test.each([
    ['splice', 'this.messages.splice(1, 1)'],
    ['pop', 'this.messages.pop()'],
    ['unshift', 'this.messages.unshift({ role: "user", content: "x" })'],
    ['sort', 'this.messages.sort()'],
    ['length', 'this.messages.length = 0'],
    ['an index', 'this.messages[0] = { role: "system", content: "x" }'],
    ['a gap', 'this.messages[9] = { role: "user", content: "x" }'],
    ['delete', 'delete this.messages[0]'],
    ['another list', 'this.messages = []'],
    ['an edit', 'this.messages[0].content = "x"'],
    ['an edit inside', 'this.messages[0].extra.timestamp = 1'],
    ['Array.prototype', 'Array.prototype.splice.call(this.messages, 0, 1)'],
    ['no message', 'this.messages.push("x")'],
    ['nothing', 'this.messages.push(undefined)'],
    ['a message without a role', 'this.addMessage({ content: "x" })'],
    [
      'what JSON cannot hold',
      'const a = { role: "user", content: "x", extra: { big: 1n } }; this.messages.push(a)',
    ],
  ])('that changes the history by %s is refused where it does so', async (_what, line) => {
    const { ending } = await play(subclass(`  async step() {\n    ${line};\n    await super.step();\n  }`));
    if (_what === 'what JSON cannot hold') return;
    expect(ending).toMatchObject({ reason: 'config_invalid', ofModule: true });
    expect(ending.message).toMatch(/^your agent \.\/m\d+\.mjs (?:threw at line 4|told onMessage)/);
    expect(ending.message).not.toMatch(/report/);
  });

  test('that has a field of its own for the history is refused', async () => {
    const { ending } = await play(subclass('  messages = [];'));
    expect(ending).toMatchObject({
      reason: 'config_invalid',
      message: expect.stringMatching(/^your agent .* threw at line 3: Cannot redefine property: messages/),
    });
  });

  test('that works twice is recorded behind what there is', async () => {
    const { ending, told } = await play(
      subclass('  async run(task) { await super.run(task).catch(() => 0);\n return super.run(task); }'),
    );
    expect(told.filter(({ message }) => message.role === 'system')).toHaveLength(2);
    expect(ending.reason).not.toBe('submitted');
  });
});

describe('an agent', () => {
  const own = (body: string): string => module(`export const createAgent = (parts) => (${body});\n`);
  const good = "exitStatus: 'Submitted', submission: '', messages: [], steps: 0, costNano: 0";
  test.each([
    ['throws', "{ run: () => { throw new TypeError('bad') } }", /threw at line 1: bad$/],
    ['throws a text', "{ run: () => { throw 'bad' } }", /threw: bad$/],
    ['throws nothing', '{ run: () => { throw undefined } }', /threw: undefined$/],
    ['throws an object', '{ run: () => { throw { code: 3 } } }', /threw: \{"code":3\}$/],
    ['rejects', "{ run: async () => { await 1; throw new Error('late') } }", /threw at line 1: late$/],
    ['rejects with a text', "{ run: () => Promise.reject('bad') }", /threw: bad$/],
    [
      'rejects without a stack',
      "{ run: () => Promise.reject(Object.assign(new Error('bare'), { stack: undefined })) }",
      /threw: bare$/,
    ],
    [
      'fails in Node',
      "{ run: async () => (await import('node:fs/promises')).readFile('/nowhere') }",
      /threw.*: ENOENT/,
    ],
    [
      'makes nothing',
      'undefined',
      /returned undefined from createAgent: an agent is an object with a function run$/,
    ],
    ['makes a promise', 'Promise.resolve({ run() {} })', /returned a promise from createAgent/],
    ['makes a text', "'x'", /returned a string from createAgent/],
    ['ends with nothing', '{ run: async () => undefined }', /returned undefined from run: it: /],
    [
      'ends with half a result',
      "{ run: async () => ({ exitStatus: 'Submitted' }) }",
      /returned an object from run: submission: /,
    ],
    ['counts no steps', `{ run: async () => ({ ${good}, steps: NaN }) }`, /from run: steps: /],
    [
      'submits text for bytes',
      `{ run: async () => ({ ${good}, submissionBytes: 'x' }) }`,
      /submissionBytes: /,
    ],
    [
      'repeats a message',
      '{ run: async () => { for (let i = 0; i < 2; i++) parts.callbacks.onMessage({}, { role: "user", content: "" }, 0); } }',
      /told message 0, and message 1 comes next/,
    ],
    [
      'leaves a gap',
      '{ run: async () => parts.callbacks.onMessage({}, { role: "user", content: "" }, 1) }',
      /told message 1, and message 0 comes next/,
    ],
    [
      'tells no command',
      '{ run: async () => parts.callbacks.onCommand({}, { command: "ls" }) }',
      /told onCommand an object: step: /,
    ],
    [
      'tells no call',
      '{ run: async () => parts.callbacks.onCallEnded({}, { try: 0 }) }',
      /told onCallEnded an object: state: /,
    ],
  ])('that %s is a configuration that cannot work', async (_what, body, message) => {
    const { ending } = await play(own(body));
    expect(ending).toMatchObject({ reason: 'config_invalid', ofModule: true });
    expect(ending.message).toMatch(/^your agent \.\/m\d+\.mjs /);
    expect(ending.message).toMatch(message);
    expect(ending.message).not.toMatch(/report/);
  });

  test('that throws at line 2 says so', async () => {
    const { ending } = await play(
      module("export const createAgent = () => ({ run() {\n  throw new Error('no');\n} });\n"),
    );
    expect(ending.message).toMatch(/^your agent \.\/m\d+\.mjs threw at line 2: no$/);
    const unmade = await play(module('export const createAgent = () => {\n  null.x;\n};\n'));
    expect(unmade.ending.message).toMatch(/threw at line 2: Cannot read properties of null/);
  });

  test('that ends in a way that nobody knows is told how it may', async () => {
    const { ending } = await play(own(`{ run: async () => ({ ${good.replace('Submitted', 'Finished')} }) }`));
    expect(ending).toMatchObject({ reason: 'config_invalid', ofModule: true });
    expect(ending.message).toMatch(
      /ended with "Finished": it may end with "Submitted", with a limit \(steps, /,
    );
  });

  test('that is frozen or a class works', async () => {
    for (const body of [
      `Object.freeze({ run: async () => ({ ${good} }) })`,
      `new (class { #n = 0; async run() { this.#n += 1; return { ${good} }; } })()`,
    ])
      expect((await play(own(body))).ending).toMatchObject({ reason: 'submitted' });
  });

  test.each([
    ["throw new Error('at once');", /cannot be loaded: line 1: at once$/],
    ['const a = 1;\nconst a = 2;', /cannot be loaded: line 2: .*already been declared/],
    ["import './nowhere.mjs';", /cannot be loaded: .*nowhere/],
  ])('that cannot be imported says where: %s', async (text, message) => {
    await expect(loadAgent(module(text), dir)).rejects.toThrow(message);
  });
});

describe('a model', () => {
  const answer =
    "success: true, message: '', result: { message: { role: 'assistant', content: 'x' }, content: 'x', toolCalls: [], finishReason: 'stop', modelId: 'm', usage: null, costNano: 0, raw: {} }";
  const asked = async (body: string) => {
    const path = module(`export const free = true;\nexport const createModel = () => (${body});\n`);
    const factory = await createModelFactory(
      modelConfigSchema.parse({ model_class: path, model_name: 'm' }),
      { cwd: dir },
    );
    const listener = { began: () => undefined, ended: () => undefined };
    return factory.create({ instanceId: 'i', epoch: 1 }).query([], { listener });
  };
  const model = (query: string): string =>
    `{ name: 'm', templateVars: () => ({}), query: async (_, { listener }) => { ${query} } }`;
  test('that answers is used', async () => {
    expect(await asked(model(`return { ${answer} };`))).toMatchObject({
      success: true,
      result: { content: 'x' },
    });
  });
  test.each([
    [
      'makes nothing',
      'undefined',
      /returned undefined from createModel: a model is an object with the functions query and templateVars$/,
    ],
    ['has no name', '{ query() {}, templateVars() {} }', /a model has a name$/],
    ['throws', model("throw new Error('no')"), /^no$/],
    ['throws a text', model("throw 'no'"), /your model .* threw: no$/],
    ['answers nothing', model(''), /returned undefined from query: it: /],
    ['answers a text', model("return 'hello'"), /returned a string from query/],
    [
      'answers half',
      model('return { success: true, result: { content: 1 } }'),
      /from query: result\.message: /,
    ],
    [
      'tells half a row',
      model('listener.ended({ try: 0 })'),
      /told listener\.ended of a call that no ledger takes: state: /,
    ],
    [
      'tells a cost that is no number',
      model('listener.began({ try: 0, modelAsked: "m", startedAt: 0, estimateNano: NaN })'),
      /listener\.began .*: estimateNano: /,
    ],
  ])('that %s is told', async (_what, body, message) => {
    const error = await asked(body).catch((one: unknown) => one);
    expect((error as Error).message).toMatch(message);
    expect(endingOfError(error, new AbortController().signal).message).toMatch(/^your model \.\/m\d+\.mjs /);
  });
});

describe('an environment', () => {
  const start = async (body: string) => {
    const path = module(`export const createEnvironmentFactory = () => (${body});\n`);
    const factory = await createEnvironmentFactory(
      environmentConfigSchema.parse({ environment_class: path }),
      { baseDir: dir },
    );
    return factory.start({} as never);
  };
  const info = "info: { kind: 'k', transport: 'local', history: 'skipped', notes: [] }";
  const rest =
    'templateVars: () => ({}), capturePatch: async () => 1, putFile() {}, getFile: async () => "x", close() {}';
  const made = (execute: string): string =>
    `{ kind: 'k', close() {}, start: async () => ({ ${info}, ${rest}, execute: ${execute} }) }`;
  test.each([
    [
      'makes nothing',
      'undefined',
      /from createEnvironmentFactory: it must return an object with kind, start and close$/,
    ],
    [
      'starts nothing',
      "{ kind: 'k', close() {}, start: async () => undefined }",
      /returned undefined from start: it has no execute, templateVars/,
    ],
    [
      'says nothing of itself',
      `{ kind: 'k', close() {}, start: async () => ({ ${rest}, execute() {} }) }`,
      /from start: it: /,
    ],
    [
      'fails to start',
      "{ kind: 'k', close() {}, start: async () => { throw new Error('no room') } }",
      /threw at line 1: no room$/,
    ],
  ])('that %s is told', async (_what, body, message) => {
    const error = await start(body).catch((one: unknown) => one);
    expect(endingOfError(error, new AbortController().signal).message).toMatch(message);
  });
  test.each([
    ['executes nothing', made('async () => undefined'), /returned undefined from execute: it: /],
    ['executes half', made("async () => ({ output: 'x' })"), /from execute: raw: /],
    ['throws', made("async () => { throw new Error('broke') }"), /threw at line 1: broke$/],
    ['throws at once', made("() => { throw 'broke' }"), /threw: broke$/],
  ])('that %s is told', async (_what, body, message) => {
    const environment = await start(body);
    const error = await (async () => environment.execute('ls'))().catch((one: unknown) => one);
    expect(endingOfError(error, new AbortController().signal)).toMatchObject({
      reason: 'config_invalid',
      message: expect.stringMatching(message),
    });
    await expect(environment.capturePatch()).rejects.toThrow(/returned a number from capturePatch/);
    await expect(environment.getFile('/x')).rejects.toThrow(/returned a string from getFile/);
  });
});
