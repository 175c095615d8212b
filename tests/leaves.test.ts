// The core names no leaf: environments, suites, agents, dialects and foreign formats register in one table each, and only the table and the leaf know the name.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';

const SRC = join(import.meta.dirname, '..', 'src');
const read = (file: string) => readFileSync(join(SRC, file), 'utf8');

const TABLES = [
  'agent/agents.ts',
  'environment/environments.ts',
  'formats/formats.ts',
  'model/dialects/dialects.ts',
  'suites/suites.ts',
].filter((file) => existsSync(join(SRC, file)));

/** What is the core: everything but the leaves, what the leaves share, and their tables. */
const CORE =
  /^(?:run|report|store|results|viewer|config|cli|dataset|grading)\/|^agent\/(?:loop\/|[^/]+$)|^model\/(?!dialects\/|clouds\/)|^environment\/(?:exec\/|patch\/|start\/|[^/]+$)/;

/** Names that are words of their own as well: they are searched as a quoted name and as a folder, not inside other words. */
const WORDS = new Set([
  'docker',
  'local',
  'chat',
  'live',
  'inspect',
  'leaderboard',
  'pro',
  'command',
  'sweBench',
]);
/** Names that mean something else in quotes too: fields of a conversation, what everybody has, what mini-swe-agent and the harness are to us: the agent that
 * ours follows, and the files that we write as they do. */
const FIELDS = new Set(['messages', 'responses', 'default', 'loop', 'miniSweAgent', 'harness']);

/** The names that a table fills in: of the folders that it loads, and as configurations and records have them. */
function leavesOf(table: string): string[] {
  const loaded = [...table.matchAll(/(?:import\(|^import [^;]*from )'\.\/([\w/]+)\/(\w+)\.ts'/gm)].map((m) =>
    m[1] === 'installed' ? m[2]! : m[1]!.split('/')[0]!,
  );
  const named = [...table.matchAll(/^ {2,4}(?:name: )?'([a-z][\w-]+)'(?=[,:])/gm)].map((m) => m[1]!);
  return [...new Set([...loaded, ...named])].filter((name) => !FIELDS.has(name)).sort();
}

/** Matches a leaf's name however it is written: `multiSwe`, `multi-swe`, `readMultiSwe`, `MULTI_SWE`. */
function pattern(name: string): RegExp {
  if (WORDS.has(name)) return new RegExp(`'${name}'|(?:agent|dialects|environment|formats|suites)/${name}/`);
  const parts = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`).split('-');
  const title = parts.map((part) => `${part[0]!.toUpperCase()}${part.slice(1)}`);
  const [camel, pascal] = [parts[0] + title.slice(1).join(''), title.join('')];
  return new RegExp(
    `(?<![a-z])(?:${camel}|${parts.join('[-_ ]')})(?![a-z])|${pascal}(?![a-z])|${parts.join('[-_ ]').toUpperCase()}`,
  );
}

/** Hooks of a suite that only its leaf and the contract know. */
const HOOKS = /\b(?:stepsOf|mcpServersOf|keepsWork)\b/;

const code = (text: string) => text.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/(?<![:'"])\/\/.*$/gm, '');

/** `file: name` for each leaf that a file of the core names in code. */
const namedIn = (file: string, text: string, leaves: readonly string[]): string[] => [
  ...leaves.filter((leaf) => pattern(leaf).test(code(text))).map((leaf) => `${file}: ${leaf}`),
  ...(HOOKS.test(code(text)) ? [`${file}: hooks of a suite`] : []),
];

/** Lines of the core that may name a leaf, each with its reason. */
const MAY_NAME: Readonly<Record<string, string>> = {
  'agent/loop/protocol.ts: local':
    'the transport of a command that never left this process, as the record has it',
  'environment/environment.ts: local': 'the contract lists the transports that the record has',
  'environment/environmentConfig.ts: kubernetes': 'the answer to several engines says what takes their place',
  'report/render/summaryDocument.ts: harbor': 'a report says whose convention a second number follows',
  'config/miniSweAgent.ts: docker': 'a value of the keys of mini-swe-agent, which this file reads',
  'model/names.ts: chat': 'a row of the table of providers says which dialect it is asked in',
  'model/names.ts: codex': 'names of models by OpenAI begin with it',
  'model/names.ts: gemini': 'a row of the table of providers, and names of models by Google begin with it',
};

describe('leaves', () => {
  const leaves = [...new Set(TABLES.flatMap((file) => leavesOf(read(file))))];

  test('each table fills in some', () => {
    for (const file of TABLES) expect(leavesOf(read(file)).length, file).toBeGreaterThan(1);
  });

  test('the core names none of them', () => {
    const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter(
      (file) => file.endsWith('.ts') && CORE.test(file) && !TABLES.includes(file),
    );
    expect(files.length).toBeGreaterThan(100);
    const named = files.sort().flatMap((file) => namedIn(file, read(file), leaves));
    expect(named.filter((line) => !(line in MAY_NAME))).toEqual([]);
    expect(Object.keys(MAY_NAME).filter((line) => !named.includes(line))).toEqual([]);
  });

  test('a planted name is found, one in a comment is not', () => {
    const planted = `// as kubernetes does\nif (name === 'docker') readMultiSwe();\nstepsOf(task);`;
    expect(namedIn('run/run.ts', planted, ['docker', 'kubernetes', 'multiSwe'])).toEqual([
      'run/run.ts: docker',
      'run/run.ts: multiSwe',
      'run/run.ts: hooks of a suite',
    ]);
  });
});
