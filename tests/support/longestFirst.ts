/** The files that take longest start first: else one of them is alone at the end, and the other worker has nothing to do. */
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * By what they took in CI; of the first ones every other computes, else all of them wait at the same time. A file that is not here comes in
 * vitest's own order, after these.
 */
const LONGEST = [
  'e2e/agentPrograms.test.ts',
  'environment/docker/dockerFaults.test.ts',
  'suites/harbor/touchedVerifier.test.ts',
  'suites/harbor/brokenVerifier.test.ts',
  'e2e/harborSteps.test.ts',
  'demo/reproduceDoc.test.ts',
  'faults/crash.test.ts',
  'environment/places/images/realEngines.test.ts',
  'viewer/page.test.ts',
  'environment/docker/conformance.test.ts',
  'faults/environment.test.ts',
  'e2e/commandAgent.test.ts',
  'e2e/addedPrograms.test.ts',
  'cli/gradeMatrix.test.ts',
  'demo/demoImages.test.ts',
  'faults/daemon.test.ts',
  'suites/smith/smith.test.ts',
  'faults/storage.test.ts',
  'environment/docker/stoppedExec.test.ts',
  'suites/harbor/services.test.ts',
  'report/night.test.ts',
  'suites/harbor/entryPoint.test.ts',
  'environment/local/conformance.test.ts',
  'suites/harbor/judge.test.ts',
  'e2e/reproduce.test.ts',
  'suites/sweBench/evaluateDocker.test.ts',
  'e2e/diskFloorRun.test.ts',
  'faults/containers.test.ts',
  'suites/ownRulesDocker.test.ts',
  'faults/ownEnd.test.ts',
  'faults/signals.test.ts',
  'demo/pagesRun.test.ts',
  'e2e/package.test.ts',
  'suites/harbor/hosts.test.ts',
  'suites/oracle.test.ts',
  'e2e/replay.test.ts',
  'cli/datasetsPublished.test.ts',
  'environment/docker/egress.test.ts',
  'e2e/publishedConfigs.test.ts',
  'environment/docker/seal.test.ts',
  'faults/model.test.ts',
  'e2e/batch.test.ts',
  'model/faults.test.ts',
  'demo/demoRun.test.ts',
  'faults/replies.test.ts',
  'e2e/dialectRuns.test.ts',
  'agent/gateway/gateway.test.ts',
  'e2e/images.test.ts',
  'suites/harbor/leftRunning.test.ts',
  'suites/harbor/unkept.test.ts',
  'results/import/sameFigures.test.ts',
  'faults/liveControl.test.ts',
  'environment/places/images/registry.test.ts',
  'viewer/large.test.ts',
  'suites/taskRepository/taskRepository.test.ts',
  'cli/evaluateVerb.test.ts',
  'e2e/run.test.ts',
  'environment/exec/forgedEnd.test.ts',
  'e2e/programRoundTrip.test.ts',
  'faults/money.test.ts',
  'environment/docker/worker.test.ts',
  'faults/continuity.test.ts',
  'agent/installed/installedAgent.test.ts',
];

const place = ({ moduleId }: TestSpecification): number => {
  const at = LONGEST.findIndex((file) => moduleId.endsWith(`/tests/${file}`));
  return at === -1 ? LONGEST.length : at;
};

/** A worker is used again for the next file where that is of the same project. */
const project = ({ project: { name } }: TestSpecification): string => name;

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).toSorted(
      (a, b) => place(a) - place(b) || project(a).localeCompare(project(b)),
    );
  }
}
