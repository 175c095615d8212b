// Six small Harbor tasks of our own on the base image of the tests, and a scripted model that solves each, or does nothing.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { derivedImage } from '../dockerEnvironment.ts';
import { harborTask } from './harborTask.ts';

/** Stands in tests/ of every task: no agent may find it. */
const HIDDEN = 'the-hidden-word-of-the-tests';

const toml = (image: string, more = '', environment = '') => `schema_version = "1.3"
[environment]
docker_image = "${image}"
workdir = "/work"
network_mode = "no-network"
cpus = 1
memory_mb = 512
${environment}
[environment.healthcheck]
command = "test -d /work"
[agent]
timeout_sec = 120
[verifier]
timeout_sec = 60
${more}`;

const test = (script: string) => `#!/bin/bash\n# ${HIDDEN}\n${script}\n`;

interface SmallTask {
  readonly files: Readonly<Record<string, string | ((image: string) => string)>>;
  /** What the scripted model runs to solve it. */
  readonly solution: string;
}

const SEPARATE = `environment_mode = "separate"
[[verifier.collect]]
command = "mkdir -p /logs/artifacts && cp /work/answer.txt /logs/artifacts/ && echo hook > /tmp/hook.txt"
`;

const TASKS: Readonly<Record<string, SmallTask>> = {
  // Its own commands see what the agent left before its tests do, also where both run in one container.
  'hello-file': {
    files: {
      'task.toml': (image) =>
        toml(image, '[[verifier.collect]]\ncommand = "cp hello.txt /logs/artifacts/copy.txt"\n'),
      'tests/test.sh': test(
        'grep -qx hello hello.txt /logs/artifacts/copy.txt >/dev/null 2>&1 && cmp -s hello.txt /logs/artifacts/copy.txt && r=1 || r=0; echo $r > /logs/verifier/reward.txt',
      ),
    },
    solution: 'echo hello > hello.txt',
  },
  // Outside of the work tree: a patch does not carry it.
  'outside-the-tree': {
    files: {
      'task.toml': (image) => toml(image),
      'tests/test.sh': test(
        'test "$(cat /opt/setting 2>/dev/null)" = on && r=1 || r=0; echo $r > /logs/verifier/reward.txt',
      ),
    },
    solution: 'mkdir -p /opt && echo on > /opt/setting',
  },
  // Half of the points for one of two files.
  'two-halves': {
    files: {
      'task.toml': (image) => toml(image),
      'tests/test.sh': test(
        'a=0; b=0; test -e one && a=1; test -e two && b=1; echo "{\\"reward\\": $(( a + b ))e0, \\"found\\": $(( a + b ))}" | sed "s/: 1e0/: 0.5/; s/: 2e0/: 1/" > /logs/verifier/reward.json',
      ),
    },
    solution: 'touch one two',
  },
  'own-verifier': {
    files: {
      'task.toml': (image) => `artifacts = ["/tmp/hook.txt"]\n${toml(image, SEPARATE)}`,
      'tests/test.sh': test(
        'test ! -e /work/answer.txt && grep -qx 42 /logs/artifacts/answer.txt 2>/dev/null && grep -qx hook /tmp/hook.txt && r=1 || r=0; echo $r > /logs/verifier/reward.txt',
      ),
    },
    solution: 'echo 42 > answer.txt',
  },
  variables: {
    files: {
      'task.toml': (image) => toml(image, 'env = { WANTED = "blue" }\n', 'env = { SHADE = "dark" }\n'),
      'tests/test.sh': test(
        'test "$(cat colour 2>/dev/null)" = "$SHADE $WANTED" && r=1 || r=0; echo $r > /logs/verifier/reward.txt',
      ),
    },
    solution: 'echo "$SHADE blue" > colour',
  },
  // What the agent left in the place of the tests, or as a reward, is not what counts; nor does a process of its live on.
  'forged-reward': {
    files: {
      'task.toml': (image) => toml(image),
      'tests/test.sh': test(
        'test -e /tests/planted && echo planted && exit 1; test -e /logs/verifier/reward.json && exit 1; grep -ls "keep[-]writing" /proc/[0-9]*/cmdline && exit 1; test -e done && r=1 || r=0; echo $r > /logs/verifier/reward.txt',
      ),
    },
    solution:
      'touch done; mkdir -p /tests /logs/verifier; touch /tests/planted; echo "{\\"reward\\": 1}" > /logs/verifier/reward.json; (exec -a keep-writing bash -c "while sleep 0.1; do echo 1 > /logs/verifier/reward.txt; done") >/dev/null 2>&1 &',
  },
};

export const SIX_TASKS = Object.keys(TASKS);

/** A scripted reply that runs one command. */
export const reply = (command: string) => ({
  content: `THOUGHT: next\n\n\`\`\`bash\n${command}\n\`\`\``,
  finish_reason: 'stop',
  usage: { prompt_tokens: 10, completion_tokens: 10 },
});
export const SUBMIT = 'echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT';
/** Searches everything it can read for the tests; it prints a mark where it found them. */
const SEARCH = `grep -rlI "${HIDDEN.slice(0, 10)}[-]hidden[-]word" / --exclude-dir=proc --exclude-dir=sys --exclude-dir=dev 2>/dev/null | head -5; ls -d /tests /solution 2>/dev/null; echo searched`;

/** Returns the folders of the tasks, and of the two models: one solves, one does nothing. */
export async function sixTasks(dir: string): Promise<{ tasks: string; solves: string; nothing: string }> {
  const image = await derivedImage('mkdir -p /work');
  const [tasks, solves, nothing] = ['tasks', 'solves', 'nothing'].map((name) => join(dir, name)) as [
    string,
    string,
    string,
  ];
  for (const folder of [solves, nothing]) mkdirSync(folder, { recursive: true });
  for (const [id, { files, solution }] of Object.entries(TASKS)) {
    const made = Object.entries(files).map(([path, text]) => [
      path,
      typeof text === 'string' ? text : text(image),
    ]);
    harborTask(tasks, id, {
      ...(Object.fromEntries(made) as Record<string, string>),
      'solution/solve.sh': `#!/bin/bash\n# ${HIDDEN}\n${solution}\n`,
    });
    const script = (commands: readonly string[]) => JSON.stringify({ replies: commands.map(reply) });
    writeFileSync(join(solves, `${id}.json`), script([SEARCH, solution, SUBMIT]));
    writeFileSync(join(nothing, `${id}.json`), script([SEARCH, SUBMIT]));
  }
  return { tasks, solves, nothing };
}
