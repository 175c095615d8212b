/**
 * Draws docs/images: the pages of the viewer that the docs show, over synthetic runs. `npm run build:viewer` first is not
 * needed: the page is built from its sources here.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startViewer } from '../src/viewer/server.ts';
import { buildPage, launch } from '../tests/viewer/browser.ts';
import { addRun, openFixture } from '../tests/viewer/fixture.ts';
import { put } from '../tests/viewer/fixtureRows.ts';

const OUT = join(import.meta.dirname, '..', 'docs', 'images');

interface Shot {
  name: string;
  hash: string;
  ready: string;
  height?: number;
  dark?: boolean;
}

const SHOTS: readonly Shot[] = [
  { name: 'run', hash: 'run/nightly-4', ready: 'Where the time went', height: 1150 },
  { name: 'attempt', hash: 'attempt/1?step=3', ready: 'THOUGHT: step 3', dark: true },
  { name: 'compare', hash: 'compare?s=nightly-3|nightly-2', ready: 'exact McNemar', height: 1300 },
  {
    name: 'aligned',
    hash: 'compare/nightly-1/nightly-3/django__django-10000',
    ready: 'they part here',
    height: 1100,
  },
];

const root = mkdtempSync(join(tmpdir(), 'swebatch-shots-'));
const dir = join(root, 'results');
mkdirSync(dir);
const built = await buildPage();
const store = openFixture(dir);
for (const n of [1, 2, 3])
  addRun(store, {
    name: `nightly-${n}`,
    instances: 60,
    steps: 24,
    seed: n,
    day: n,
    budgetNano: 5_000_000_000,
  });
const live = addRun(store, {
  name: 'nightly-4',
  instances: 60,
  steps: 24,
  seed: 4,
  day: 4,
  doneUntil: 34,
  budgetNano: 5_000_000_000,
});
// A run under way is drawn as of now, so that its slots have been busy for seconds and not for weeks.
const { at } = store
  .prepare(
    "SELECT min(a.started_at) AS at FROM attempts a JOIN trials t ON t.id = a.trial_id WHERE t.run_id = ? AND a.state = 'running'",
  )
  .get(live) as { at: string };
const shift = `+${Math.round((Date.now() - Date.parse(at)) / 1000) - 90} seconds`;
const moved = (column: string) => `${column} = strftime('%Y-%m-%dT%H:%M:%fZ', ${column}, '${shift}')`;
store.exec(`UPDATE runs SET ${moved('created_at')} WHERE id = ${live};
  UPDATE attempts SET ${moved('started_at')}, ${moved('ended_at')} WHERE trial_id IN (SELECT id FROM trials WHERE run_id = ${live})`);
put(store, 'events', { run_id: live, at, type: 'budget', data: '{"percent":50}' });
const finalOf = (run: string, instance: string): number =>
  (
    store
      .prepare(
        'SELECT t.final_attempt_id AS id FROM trials t JOIN runs r ON r.id = t.run_id JOIN instances i ON i.id = t.instance_pk WHERE r.name = ? AND i.instance_id = ?',
      )
      .get(run, instance) as { id: number }
  ).id;
const sides = {
  LEFT: finalOf('nightly-1', 'django__django-10000'),
  RIGHT: finalOf('nightly-3', 'django__django-10000'),
};
/** What the two did otherwise, by step: they read the same and then edit different files. */
const OTHER_STEPS = {
  LEFT: {
    3: `sed -i '245s/= 1/= right/' astropy/modeling/separable.py`,
    4: 'python -m pytest astropy/modeling/tests/test_separable.py -q',
    5: 'git diff',
  },
  RIGHT: {
    3: `grep -rn "_operators" astropy/modeling`,
    4: "sed -n '60,120p' astropy/modeling/core.py",
    5: `sed -i '88s/left/right/' astropy/modeling/core.py`,
    6: 'python -m pytest astropy/modeling/tests/test_separable.py -q',
  },
} as const;
for (const [side, steps] of Object.entries(OTHER_STEPS)) {
  const attempt = sides[side as keyof typeof sides];
  for (const [step, command] of Object.entries(steps)) {
    const content = `THOUGHT: step ${step}, I follow what I have found.\n\n\`\`\`bash\n${command}\n\`\`\``;
    store
      .prepare('UPDATE commands SET command = ? WHERE attempt_id = ? AND step = ?')
      .run(command, attempt, Number(step));
    store
      .prepare(
        `UPDATE messages SET content = @content, data = @data WHERE attempt_id = @attempt
         AND seq = (SELECT message_seq - 1 FROM commands WHERE attempt_id = @attempt AND step = @step)`,
      )
      .run({ content, data: JSON.stringify({ role: 'assistant', content }), attempt, step: Number(step) });
  }
}
store.close();

const viewer = await startViewer({ results: dir, port: 0, pageDir: built.dir });
const browser = await launch();
mkdirSync(OUT, { recursive: true });
try {
  for (const shot of SHOTS) {
    const context = await browser.newContext({
      viewport: { width: 1280, height: shot.height ?? 800 },
      colorScheme: shot.dark ? 'dark' : 'light',
      reducedMotion: 'reduce',
    });
    const page = await context.newPage();
    await page.goto(`${viewer.url}#/${shot.hash}`);
    await page.getByText(shot.ready).first().waitFor();
    await page.waitForFunction("!document.querySelector('#app').textContent.includes('loading …')");
    await page.screenshot({ path: join(OUT, `viewer-${shot.name}.png`) });
    await context.close();
    process.stdout.write(`docs/images/viewer-${shot.name}.png\n`);
  }
} finally {
  await browser.close();
  await viewer.close();
  await built.remove();
  rmSync(root, { recursive: true, force: true });
}
