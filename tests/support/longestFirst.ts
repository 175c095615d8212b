/** The files that take longest start first: else one of them is alone at the end, and the other worker has nothing to do. */
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** By what they took in CI. A file that is not here comes in vitest's own order, after these. */
const LONGEST = [
  'e2e/agentPrograms.test.ts',
  'demo/reproduceDoc.test.ts',
  'viewer/page.test.ts',
  'environment/docker/conformance.test.ts',
  'faults/crash.test.ts',
  'faults/storage.test.ts',
  'faults/environment.test.ts',
  'environment/places/images/realEngines.test.ts',
  'e2e/reproduce.test.ts',
  'environment/local/conformance.test.ts',
  'environment/docker/dockerFaults.test.ts',
  'e2e/hostImages.test.ts',
  'faults/daemon.test.ts',
  'demo/demoImages.test.ts',
  'suites/sweBench/evaluateDocker.test.ts',
  'e2e/commandAgent.test.ts',
  'e2e/replay.test.ts',
  'demo/demoRun.test.ts',
  'faults/signals.test.ts',
  'faults/continuity.test.ts',
  'faults/model.test.ts',
  'report/night.test.ts',
  'e2e/programImage.test.ts',
  'e2e/hosts.test.ts',
  'e2e/diskFloorRun.test.ts',
  'suites/harbor/touchedVerifier.test.ts',
  'cli/gradeMatrix.test.ts',
  'cli/imagesVerb.test.ts',
  'e2e/harborRun.test.ts',
  'cli/datasetsPublished.test.ts',
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
