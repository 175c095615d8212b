/** Tests with what they are given: their judge has a port on the loopback of their container, and a key that is worth nothing elsewhere. */
import { randomInt } from 'node:crypto';
import type { Duplex } from 'node:stream';
import { givenOf, type WantedVariables } from '../base/hostVariables.ts';
import { type Doorway, type Environment, EnvironmentError } from '../environment/environment.ts';
import { finding } from './doubts/patchDoubts.ts';
import type { Given, JudgeEnd } from './given.ts';
import type { GradingEnd, RunLog } from './gradingFrame.ts';

/** The grading says nothing: the judge could not be asked. */
export const JUDGE_LOST = 'judge_unavailable';

/** The range of the judge's port. A process that was left running cannot have taken a port that nobody knows. */
const PORTS = [20_000, 60_000] as const;
const PORT_TRIES = 5;

/**
 * Runs tests with what they are given. An outage of their judge is the grading's, and never a reward (observed: tests/suites/harbor/judge.test.ts).
 */
export async function withGiven(
  environment: Environment,
  given: Given | undefined,
  wanted: WantedVariables | undefined,
  { id, log }: { readonly id: string; readonly log: RunLog },
  run: (env: Record<string, string>) => Promise<GradingEnd>,
): Promise<GradingEnd> {
  const values = givenOf(wanted, given?.variables);
  const judge = given?.judge;
  if (!judge || !Object.values(wanted ?? {}).some(judge.isKey)) return run(values);
  const session = judge.open();
  let door: Doorway | undefined;
  let end: GradingEnd;
  let told: JudgeEnd;
  try {
    door = await openDoor(environment, (connection) => session.handle(connection));
    end = await run({ ...values, ...session.env(`http://127.0.0.1:${door.port}`, wanted!) });
  } finally {
    told = await session.close();
    await door?.close();
  }
  const { model, calls, recorded, otherNames, lost } = told;
  log.info(
    `Its tests asked ${model} ${calls} time${calls === 1 ? '' : 's'}${recorded > 0 ? `, ${recorded} answered from the record` : ''}`,
  );
  const doubts = [
    ...(otherNames.length === 0
      ? []
      : [
          finding(
            'judge_other_model',
            `the tests asked for another model than the one that judged, ${model}`,
            otherNames.join(', '),
            false,
          ),
        ]),
    ...(calls > 0 ? [] : [finding('judge_not_asked', 'the tests want a model and asked none', model, false)]),
  ].map((doubt) => ({ ...doubt, inferred: true }));
  const suspicion = [...(end.suspicion ?? []), ...doubts];
  if (lost === null) return { ...end, suspicion };
  return {
    ...(end.log !== undefined && { log: end.log }),
    exitCode: end.exitCode ?? null,
    suspicion,
    outcome: 'infra',
    infraReason: JUDGE_LOST,
    repeatAlone: true,
    errorMessage: `${id}: the judge ${model} could not be asked, so its tests say nothing: ${lost}`,
  };
}

async function openDoor(
  { listen }: Environment,
  onConnection: (connection: Duplex) => void,
  tries = PORT_TRIES,
): Promise<Doorway> {
  if (!listen)
    throw new EnvironmentError(
      'start_failed',
      'the tests ask a model, and this environment has no way to one',
    );
  try {
    return await listen(randomInt(...PORTS), onConnection);
  } catch (error) {
    if (tries > 1 && error instanceof EnvironmentError && error.code === 'start_failed')
      return openDoor({ listen } as Environment, onConnection, tries - 1);
    throw error;
  }
}
