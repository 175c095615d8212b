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
  /^(?:run|report|store|results|config|cli|dataset|grading)\/|^agent\/(?:loop\/|[^/]+$)|^model\/(?!dialects\/|clouds\/)|^environment\/(?:exec\/|patch\/|start\/|[^/]+$)|^calls\.ts$/;

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
const FIELDS = new Set(['messages', 'responses', 'default', 'loop', 'miniSweAgent', 'harness', 'published']);

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

const ATIF = 'the export of that name is written by us';
const HELP = 'texts of help and of reports name what can be read, as people know it';
const TRANSPORT = 'the way of a command, as the record has it';
const PROVIDERS =
  'the table of providers and of what their models take: each names the dialect that it speaks';
/** Lines of the core that may name a leaf, and why. */
const MAY_NAME: Readonly<Record<string, string>> = {
  'agent/loop/protocol.ts: local': TRANSPORT,
  'environment/environment.ts: local': TRANSPORT,
  'environment/environmentKind.ts: hooks of a suite':
    'the contract of environments says whether one keeps work',
  'run/plan/unsupported.ts: hooks of a suite': 'it asks that contract',
  'run/places/engines.ts: docker': 'an option of that name, not the leaf',
  'cli/verbs/export.ts: atif': ATIF,
  'run/record/exportRun.ts: atif': ATIF,
  'cli/verbs/export.ts: harbor': HELP,
  'cli/verbs/import.ts: atif': HELP,
  'cli/verbs/import.ts: harbor': HELP,
  'cli/verbs/view.ts: harbor': HELP,
  'report/render/summaryDocument.ts: harbor': HELP,
  'config/miniSweAgent.ts: docker': 'values of the keys of mini-swe-agent',
  'model/names.ts: chat': PROVIDERS,
  'model/names.ts: codex': PROVIDERS,
  'model/names.ts: gemini': PROVIDERS,
  'model/parameters/checkParameters.ts: gemini': PROVIDERS,
  'model/parameters/rulesForGemini.ts: gemini': PROVIDERS,
  'model/parameters/rulesForOpenai.ts: chat': PROVIDERS,
  'model/prices.ts: gemini': PROVIDERS,
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
