// What it takes to list, check and plan many Harbor task folders. Run by hand, after `npm run build`:
//   npm run bench:tasks -- [TASKS] [--json]
// Default: 5,000 folders of ten files and 60 KB, as the tasks of deep-swe have. A first command fills the file cache and is not measured.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { atMost, barLine, command } from './bars.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { json: { type: 'boolean', default: false } },
});
const TASKS = Number(positionals[0] ?? 5000);
const MOST_SECONDS = 5;

const text = (seed: number, bytes: number): string => {
  const line = `line ${seed} of a text that no other task has, as long as lines are\n`;
  return line.repeat(Math.ceil(bytes / line.length));
};

function writeTask(folder: string, i: number): void {
  const files: Record<string, string> = {
    'instruction.md': text(i, 2000),
    'task.toml': `schema_version = "1.3"
artifacts = ["/logs/artifacts/model.patch"]
[task]
name = "made/task-${i}"
[metadata]
repository_url = "https://github.com/org/repo-${i % 50}"
[verifier]
network_mode = "no-network"
environment_mode = "separate"
timeout_sec = 1800.0
[verifier.environment]
cpus = 2
memory_mb = 8192
[agent]
network_mode = "no-network"
timeout_sec = 5400.0
[environment]
docker_image = "example.test/tasks:${i}"
cpus = 2
memory_mb = 8192
`,
    'environment/Dockerfile': `FROM example.test/base\n# ${text(i, 1500)}`
      .replaceAll('\n', '\n# ')
      .replace('\n# ', '\n'),
    'tests/Dockerfile': `FROM example.test/tasks:${i}\nCOPY . /tests/\n`,
    'tests/test.sh': `#!/bin/bash\n# ${i}\necho 1 > /logs/verifier/reward.txt\n`,
    'tests/config.json': JSON.stringify({ f2p: Array.from({ length: 100 }, (_, n) => `test_${i}_${n}`) }),
    'tests/grader.py': text(i, 13_000),
    'tests/test.patch': text(i, 12_000),
    'solution/solve.sh': '#!/bin/bash\ngit apply /solution/solution.patch\n',
    'solution/solution.patch': text(i, 25_000),
  };
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content, { mode: path.endsWith('.sh') ? 0o755 : 0o644 });
  }
}

const dir = mkdtempSync(join(tmpdir(), 'swebatch-tasks-'));
try {
  const tasks = join(dir, 'tasks');
  for (let i = 0; i < TASKS; i++) writeTask(join(tasks, `task-${String(i).padStart(6, '0')}`), i);
  mkdirSync(join(dir, 'replies'));
  const commands = {
    'datasets show': ['datasets', 'show', tasks],
    'datasets check': ['datasets', 'check', tasks],
    'run --dry-run': [
      'run',
      '--dry-run',
      '--subset',
      tasks,
      '-m',
      'scripted:reply.json',
      '-o',
      join(dir, 'results'),
    ],
  };
  writeFileSync(join(dir, 'reply.json'), JSON.stringify(['```bash\necho step\n```']));
  await command({ dir }, commands['datasets show']);
  const lines = [];
  for (const [what, args] of Object.entries(commands)) {
    const used = await command({ dir }, args);
    if (!readFileSync(join(dir, 'stdout'), 'utf8').includes(String(TASKS)))
      throw new Error(`${what} does not say how many tasks there are`);
    lines.push({ what, ...used });
  }
  const bars = lines.map(({ what, wall_s }) =>
    atMost(`${what}, seconds for ${TASKS} tasks`, wall_s, MOST_SECONDS),
  );
  if (values.json) console.log(JSON.stringify({ tasks: TASKS, load: loadavg()[0], lines, bars }));
  else {
    for (const { what, wall_s, user_s, system_s, rss_mb } of lines)
      console.log(
        `${what}: ${wall_s.toFixed(2)} s (user ${user_s.toFixed(2)}, system ${system_s.toFixed(2)}), ${rss_mb.toFixed(0)} MB`,
      );
    console.log(`load ${loadavg()[0]!.toFixed(1)}`);
    for (const bar of bars) console.log(barLine(bar));
  }
  if (bars.some(({ pass }) => !pass)) process.exitCode = 1;
} finally {
  rmSync(dir, { recursive: true, force: true });
}
