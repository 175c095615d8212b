// Tests open doors. A door is a file that another folder of the source imports, or that a table loads; what only its own folder imports is an inside,
// and a test that imports one breaks with each move of that folder. The insides below are tested by themselves, each for its reason.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import { describe, expect, test } from 'vitest';
import { importsOf } from './support/importsOf.ts';

const ROOT = join(import.meta.dirname, '..');

/** Arithmetic, parsers and classifications: text or data in, data out. */
const PURE = [
  'agent/gateway/conversation.ts',
  'agent/gateway/policy.ts',
  'agent/gateway/translator.ts',
  'agent/loop/degrade.ts',
  'agent/loop/meter.ts',
  'cli/terminal/progressState.ts',
  'environment/docker/engineRefusals.ts',
  'environment/docker/gpus.ts',
  'environment/docker/systemChanges.ts',
  'environment/egress/clientHello.ts',
  'environment/exec/endReport.ts',
  'environment/kubernetes/podFaults.ts',
  'environment/kubernetes/podManifest.ts',
  'environment/patch/besideWork.ts',
  'environment/patch/gitPatch.ts',
  'environment/places/diskRoom.ts',
  'environment/places/imageBook.ts',
  'formats/inspect/samples.ts',
  'formats/openHandsOutput/history.ts',
  'model/clouds/bedrock.ts',
  'report/statistics/special.ts',
  'run/agents/pipSentence.ts',
  'run/control/breaker.ts',
  'run/plan/engineChecks.ts',
  'run/record/programRecord.ts',
  'suites/harbor/compose.ts',
  'suites/harbor/composeText.ts',
  'suites/harbor/harborIgnore.ts',
  'suites/harbor/taskToml.ts',
  'suites/multiSwe/shapes.ts',
  'template/filters.ts',
  'template/methods.ts',
  'template/parse.ts',
  'viewer/page/charts/labelPlaces.ts',
  'viewer/page/text/jsonTokens.ts',
];

/** Tables whose rows are compared with their source. */
const TABLES = ['report/measure/publishedDoubts.json', 'suites/smith/profiles.json'];

/** One part of a driver against a real engine, a scripted cluster or a socket, where the whole would hide which part answers. */
const PARTS = [
  'agent/gateway/answer.ts',
  'agent/gateway/session.ts',
  'agent/installed/installedAgent.ts',
  'agent/installed/launch.ts',
  'cli/terminal/smallHeap.ts',
  'environment/docker/container.ts',
  'environment/docker/diskWatch.ts',
  'environment/docker/noNetwork.ts',
  'environment/docker/seal.ts',
  'environment/docker/startProcess.ts',
  'environment/egress/egressProxy.ts',
  'environment/kubernetes/cluster.ts',
  'environment/kubernetes/clusterConfig.ts',
  'environment/kubernetes/kubernetesFactory.ts',
  'environment/kubernetes/podFiles.ts',
  'environment/kubernetes/podProcess.ts',
  'environment/kubernetes/podReaper.ts',
  'environment/kubernetes/podRelay.ts',
  'environment/kubernetes/podServices.ts',
  'environment/kubernetes/podShared.ts',
  'environment/kubernetes/runServices.ts',
  'environment/places/buildImage.ts',
  'environment/places/registry.ts',
  'formats/inspect/evalFile.ts',
  'model/http/httpCall.ts',
  'model/http/httpTry.ts',
  'run/agents/pypiProgram.ts',
  'run/attempt/suiteAttempt.ts',
  'suites/harbor/builds.ts',
  'suites/harbor/readTask.ts',
  'suites/harbor/steps.ts',
  'suites/harbor/verification.ts',
];

/** Where the package, the program and the page begin: nobody in the source imports them. */
const ENTRIES = ['cli/main.ts', 'cli/verbs.ts', 'index.ts', 'viewer/pageFiles.ts'];

const filesOf = (folder: string) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.tsx?$/.test(file))
    .map((file) => `${folder}/${file.split(sep).join('/')}`);

/** The files of the source that a file imports, also late or only for a type. */
function imported(file: string): string[] {
  return importsOf(file, readFileSync(join(ROOT, file), 'utf8'))
    .filter(({ target }) => target.startsWith('.'))
    .map(({ target }) => join(dirname(file), target).split(sep).join('/'))
    .filter((target) => /^src\/.*\.\w+$/.test(target) && existsSync(join(ROOT, target)));
}

const DOORS = new Set(
  filesOf('src').flatMap((file) => imported(file).filter((target) => dirname(target) !== dirname(file))),
);

/** What files of `tests` import that no other folder of the source does, sorted, without `src/`. */
function insides(tests: readonly string[]): string[] {
  const asked = new Set(tests.flatMap(imported));
  return [...asked]
    .filter((file) => !DOORS.has(file))
    .map((file) => file.slice('src/'.length))
    .sort();
}

describe('tests import doors', () => {
  test('and of insides only those that are listed with a reason, at most 120', () => {
    const listed = [...PURE, ...TABLES, ...PARTS, ...ENTRIES];
    expect(insides(filesOf('tests'))).toEqual(listed.toSorted());
    expect(listed.length).toBeLessThanOrEqual(120);
  });

  test('an inside is told from a door', () => {
    const here = 'tests/run/control/breaker.test.ts';
    expect(imported(here)).toContain('src/run/control/breaker.ts');
    expect(insides([here])).toContain('run/control/breaker.ts');
    expect(insides(['tests/store/open.test.ts'])).not.toContain('store/open.ts');
  });
});
