// Which test proves what. A test that proves a line of a list carries the line's id in its title: `… is paused [T-33, M-48]`, or `T-33 …`. From the titles this
// writes docs/appendix/proofs.md and the last column of docs/appendix/seeds.md. tests/proofs.test.ts fails when the pages are not what this would write.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');

/** How many lines each list has. */
const LISTS = { T: 67, M: 72, S: 62 } as const;

/** Lines that no test proves, because swebatch does not do it. */
export const NOT_OURS: Readonly<Record<string, string>> = {
  'M-18':
    'a configuration without templates is refused: ours is complete without them, the templates have the defaults of the seeds',
  'M-21': 'the interactive agent: a batch has nobody to ask; its keys are refused with that reason',
  'M-34': 'multimodal content: messages are text; `model.multimodal_regex` is refused with that reason',
  'M-72': 'several models in one attempt: a list of models is refused; arms compare models',
};

export interface Proof {
  readonly id: string;
  /** From `tests/`. */
  readonly file: string;
  /** Without the ids. */
  readonly title: string;
}

const LITERAL = /'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`\\]|\\.)*`/g;
const ID = /\b[TMS]-\d\d\b/g;

/** A title without its ids, up to its first clause. */
function shown(title: string): string {
  const bare = title.replace(/ ?\[[TMS]-\d\d[^\]]*\]/, '').replace(/^T-\d\d:? ?/, '');
  if (bare === '%s' || bare === '') return 'each of its cases';
  return bare.replace(/(?<=.{24}\w)[:;] .*/, '');
}

/** What the titles of one file prove. A title stands on one line. */
export function proofsIn(file: string, text: string): Proof[] {
  const code = text.split('\n').filter((line) => !/^\s*(?:\/\/|\/?\*)/.test(line));
  return code.flatMap((line) =>
    (line.match(LITERAL) ?? []).flatMap((literal) => {
      const title = shown(literal.slice(1, -1).replaceAll('\\', ''));
      return (literal.match(ID) ?? []).map((id) => ({ id, file, title }));
    }),
  );
}

export function allProofs(): Proof[] {
  const files = readdirSync(join(ROOT, 'tests'), { recursive: true, encoding: 'utf8' });
  return files
    .filter((file) => file.endsWith('.ts') && file !== 'proofs.test.ts')
    .sort()
    .flatMap((file) => proofsIn(file, readFileSync(join(ROOT, 'tests', file), 'utf8')));
}

export const allIds = (): string[] =>
  Object.entries(LISTS).flatMap(([list, lines]) =>
    Array.from({ length: lines }, (_, n) => `${list}-${String(n + 1).padStart(2, '0')}`),
  );

/** `file: title; title` of one line, file after file. */
function provedBy(id: string, proofs: readonly Proof[]): string {
  const mine = Map.groupBy(
    proofs.filter((proof) => proof.id === id),
    (proof) => proof.file,
  );
  return [...mine]
    .map(([file, of]) => `\`${file}\` ${of.map(({ title }) => title.replaceAll('|', '\\|')).join(' · ')}`)
    .join('<br>');
}

const HEAD = `# Proofs

Which test shows what, written by \`npm run docs:proofs\` from the titles of the tests: a title carries the ids of the lines that it proves. Files are below \`tests/\`.

- **T-01 to T-60** are sixty things that go wrong in a long run; T-61 to T-67 came later. The tests in \`tests/faults\` run the command line as a child process, with a real
  HTTP server for the model, real containers and real signals. Each ends with the same assertions: the other instances submitted and their patches apply; totals
  reconcile; no container, network, volume or process is left; \`verify\` and \`integrity_check\` pass; predictions are complete; a canary key is in no file and no output. A
  seed decides when the server answers and when the process is killed. The suite prints it; \`FAULT_SEED=N\` repeats it.
- **M-01 to M-61** are the lines of the tests of mini-swe-agent 1.17.5 and 2.4.6; M-62 to M-72 are what it does not test.
- **S-01 to S-62** are the lines of [the seeds](seeds.md), on that page.

| id | proved by |
|---|---|
`;

/** docs/appendix/proofs.md. */
export function proofsPage(proofs: readonly Proof[]): string {
  const lines = allIds().filter((id) => !id.startsWith('S'));
  return (
    HEAD +
    lines
      .map((id) => `| ${id} | ${NOT_OURS[id] ? `not ours: ${NOT_OURS[id]}` : provedBy(id, proofs)} |\n`)
      .join('')
  );
}

/** docs/appendix/seeds.md with its last column. */
export const seedsPage = (page: string, proofs: readonly Proof[]): string =>
  page.replace(
    /^(\| (S-\d\d) \|.*\|)[^|]*(?:\\\|[^|]*)*\|$/gm,
    (_, row: string, id: string) => `${row} ${provedBy(id, proofs)} |`,
  );

if (import.meta.main) {
  const [proofs, seeds] = [allProofs(), join(ROOT, 'docs', 'appendix', 'seeds.md')];
  writeFileSync(join(ROOT, 'docs', 'appendix', 'proofs.md'), proofsPage(proofs));
  writeFileSync(seeds, seedsPage(readFileSync(seeds, 'utf8'), proofs));
}
