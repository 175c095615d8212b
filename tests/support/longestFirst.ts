/** The files that take longest start first: else one of them is alone at the end, and the other worker has nothing to do. */
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** By what they took in CI. A file that is not here comes in vitest's own order, after these. */
const LONGEST = [
  'e2e/addedPrograms.test.ts',
  'e2e/agentPrograms.test.ts',
  'viewer/page.test.ts',
  'demo/reproduceDoc.test.ts',
  'faults/crash.test.ts',
  'environment/docker/conformance.test.ts',
  'e2e/commandAgent.test.ts',
  'environment/places/images/realEngines.test.ts',
  'e2e/reproduce.test.ts',
  'environment/docker/dockerFaults.test.ts',
  'faults/environment.test.ts',
  'faults/storage.test.ts',
  'demo/demoImages.test.ts',
  'suites/sweBench/evaluateDocker.test.ts',
  'faults/signals.test.ts',
  'faults/daemon.test.ts',
  'e2e/hosts.test.ts',
  'environment/local/conformance.test.ts',
  'suites/oracle.test.ts',
  'demo/demoRun.test.ts',
  'e2e/harborSteps.test.ts',
  'faults/ownEnd.test.ts',
  'e2e/publishedConfigs.test.ts',
  'e2e/replay.test.ts',
  'faults/containers.test.ts',
  'cli/gradeMatrix.test.ts',
  'suites/harbor/touchedVerifier.test.ts',
  'faults/continuity.test.ts',
  'e2e/hostImages.test.ts',
  'report/night.test.ts',
  'e2e/programRoundTrip.test.ts',
  'suites/ownRulesDocker.test.ts',
  'demo/pagesRun.test.ts',
  'cli/datasetsPublished.test.ts',
  'e2e/batch.test.ts',
  'faults/replies.test.ts',
  'e2e/diskFloorRun.test.ts',
  'faults/model.test.ts',
  'e2e/images.test.ts',
  'environment/exec/forgedEnd.test.ts',
  'cli/evaluateVerb.test.ts',
  'e2e/run.test.ts',
  'e2e/package.test.ts',
  'faults/liveControl.test.ts',
  'e2e/dialectRuns.test.ts',
  'viewer/large.test.ts',
];

const place = ({ moduleId }: TestSpecification): number => {
  const at = LONGEST.findIndex((file) => moduleId.endsWith(`/tests/${file}`));
  return at === -1 ? LONGEST.length : at;
};

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).toSorted((a, b) => place(a) - place(b));
  }
}
