// docs/interop.md is followed as a person follows it: its offline blocks over published trajectories, its Docker block over the bundled
// dataset, and what needs a key or a network is held against the help of the verbs.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { cli, REPO } from '../support/cli.ts';
import { dockerAvailable } from '../support/docker.ts';
import { pageOf, saidBy } from '../support/program/followPage.ts';

const docker = await dockerAvailable();
const shared = join(REPO, '..', 'shared', 'data');
const { text: page, home, linesOf, shell, follow } = pageOf('interop.md');

/** A leaderboard row of the published trajectories; its logs are those of another row, which is all that is at hand. */
function layOutRow(): void {
  const from = join(shared, 'trajectories');
  const row = join(home, 'row');
  mkdirSync(join(row, 'trajs'), { recursive: true });
  mkdirSync(join(row, 'results'));
  const archive = join(from, 'mini-swe-agent-1.15.0-verified-100.tar.gz');
  expect(spawnSync('tar', ['xzf', archive, '-C', join(row, 'trajs')]).status).toBe(0);
  cpSync(join(from, 'preds.json'), join(row, 'preds.json'));
  const summary = JSON.parse(readFileSync(join(from, 'summary.json'), 'utf8')) as Record<
    string,
    { resolved: boolean }
  >;
  const resolved = Object.keys(summary).filter((id) => summary[id]!.resolved);
  writeFileSync(
    join(row, 'results', 'results.json'),
    JSON.stringify({ no_generation: [], no_logs: [], resolved }),
  );
  cpSync(join(shared, 'grading-logs', 'verified-98'), join(row, 'logs'), { recursive: true });
  spawnSync('chmod', ['-R', 'u+w', row]);
  symlinkSync(join(shared, 'datasets'), join(home, 'data'));
}

describe.skipIf(!existsSync(shared))('offline (skipped without ../shared)', () => {
  test('replay, import, regrade, compare and configuration come to what the page says', () => {
    layOutRow();
    const said = follow('sh offline');
    expect(said.size).toBeGreaterThanOrEqual(11);
    expect(saidBy(said, '--check').text).toContain('100 of 100 trajectories replay equal');
    const replayed = JSON.parse(readFileSync(join(home, 'replayed.json'), 'utf8')) as unknown[];
    expect(replayed).toHaveLength(100);
    expect(replayed[0]).toMatchObject({
      file: 'row/trajs/astropy__astropy-12907/astropy__astropy-12907.traj.json',
      instance_id: 'astropy__astropy-12907',
      messages: { equal: 42, total: 42 },
      exit_status_equal: true,
      submission_equal: true,
      cost_equal: true,
    });
    expect(saidBy(said, 'report published').stdout).toMatch(/resolved +76\/100 = 76\.0 %/);
    expect(saidBy(said, '--regrade').text).toContain('/98');
    expect(saidBy(said, 'compare as-published').stdout).toContain('0 fixed, 0 broken');
    const plan = saidBy(said, '--dry-run').stdout;
    expect(plan).toContain('100 instances x 1 arm');
    expect(plan).toContain('gemini/gemini-3-pro-preview, 250');
    expect(readFileSync(join(home, 'row.yaml'), 'utf8')).toContain('compat: mini-swe-agent-1');
  });

  test('an entry with all_preds.jsonl instead is the same row; a run report and instance reports give verdicts too', () => {
    const preds = JSON.parse(readFileSync(join(home, 'row', 'preds.json'), 'utf8')) as object;
    writeFileSync(
      join(home, 'row', 'all_preds.jsonl'),
      Object.values(preds)
        .map((p) => `${JSON.stringify(p)}\n`)
        .join(''),
    );
    renameSync(join(home, 'row', 'preds.json'), join(home, 'preds.json'));
    const again = shell(
      'swebatch import row --subset verified --data-dir data --report row/logs --run-id lines --json',
    );
    renameSync(join(home, 'preds.json'), join(home, 'row', 'preds.json'));
    expect(JSON.parse(again.stdout)).toMatchObject({ instances: 100, verdicts: 22 });
    const read = (run: string) => readFileSync(join(home, 'results', run, 'preds.json'), 'utf8');
    expect(read('lines')).toBe(read('published'));
  });

  test('a template that was changed by one byte is not the published agent', () => {
    const file = join('row', 'trajs', 'astropy__astropy-12907', 'astropy__astropy-12907.traj.json');
    const text = readFileSync(join(home, file), 'utf8');
    const changed = join(home, 'changed.traj.json');
    writeFileSync(changed, text.replace('"system_template": "You are', '"system_template": "you are'));
    const result = shell('swebatch replay changed.traj.json --check');
    expect(result.code).toBe(1);
    expect(result.stdout).toContain('DIFFERS  astropy__astropy-12907 41/42 messages');
  });
});

describe.skipIf(!docker)('with Docker', () => {
  test('the same run again, from its configuration, from its recording, and its trajectories in a container', () => {
    const said = follow('sh docker');
    expect(saidBy(said, 'compare first second --config').stdout).toContain('with the same configuration');
    for (const line of linesOf('sh docker').filter((l) => /compare first \w+$/.test(l)))
      expect(said.get(line)!.stdout).toMatch(/matched +1/);
    const read = (run: string) => readFileSync(join(home, 'results', run, 'preds.json'), 'utf8');
    expect(read('second')).toBe(read('first'));
    expect(read('third')).toBe(read('first'));
    expect(saidBy(said, 'trajectories --check').text).toContain('1 of 1 trajectories replay equal');
    expect(saidBy(said, '--environment docker').text).toContain('1 of 1 trajectories replay equal');
  });
});

describe('what needs a key or a network', () => {
  const commands = linesOf('sh').map((line) => line.split(/\s+/).slice(1));
  test('names verbs and options that exist', async () => {
    expect(commands.length).toBeGreaterThan(8);
    for (const verb of new Set(commands.map(([name]) => name!))) {
      const help = (await cli([verb, '--help'])).stdout;
      expect(help, verb).toContain('Options:');
      for (const words of commands.filter(([name]) => name === verb))
        for (const option of words.filter((w) => /^--?[a-z]/.test(w)))
          expect(help, `${words.join(' ')}: ${option}`).toMatch(new RegExp(`(^|[ ,])${option}\\b`, 'm'));
    }
  });
  test('and points to pages that are there', () => {
    const links = [...page.matchAll(/\]\(([a-z]+\.md)\)/g)].map((m) => m[1]!);
    expect(links.length).toBeGreaterThan(1);
    for (const link of links) expect(existsSync(join(REPO, 'docs', link)), link).toBe(true);
  });
});
