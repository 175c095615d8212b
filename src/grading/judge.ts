/**
 * What whoever grades gives the tests: variables of this machine, and a model that they may ask. The model is asked by way of this process: in the
 * container there is a port on the loopback and a key that is worth nothing elsewhere.
 */
import { randomInt } from 'node:crypto';
import type { Duplex } from 'node:stream';
import type { VariableValues, WantedVariables } from '../base/hostVariables.ts';
import { givenOf } from '../base/hostVariables.ts';
import { type Doorway, type Environment, EnvironmentError } from '../environment/environment.ts';
import { finding } from './doubts/patchDoubts.ts';
import type { GradingEnd, RunLog } from './gradingFrame.ts';

export interface Given {
  readonly variables: VariableValues;
  /** Takes their values out of a text. */
  clean(text: string): string;
  readonly judge?: Judge | undefined;
}

export interface Judge {
  /** The variable holds a key of a provider: whoever wants it asks a model. */
  isKey(variable: string): boolean;
  /** For one verification. */
  open(): JudgeSession;
}

export interface JudgeSession {
  /** One connection of the tests. Never throws. */
  handle(connection: Duplex): void;
  /** What the tests get: `origin` is where they find the model. */
  env(origin: string, wanted: WantedVariables): Record<string, string>;
  /** No call is made any more. Never rejects. */
  close(): Promise<JudgeEnd>;
}

interface JudgeEnd {
  /** The model's name. */
  readonly model: string;
  readonly calls: number;
  /** Of these, answered from the record. */
  readonly recorded: number;
  /** Other names that the tests asked for, which the judge answered to. */
  readonly otherNames: readonly string[];
  /** Why a request was never answered; null where each was. */
  readonly lost: string | null;
}

/** The grading says nothing: the judge could not be asked. */
export const JUDGE_LOST = 'judge_unavailable';

/** Where the tests find it. What was left running cannot have taken a port that nobody knows. */
const PORTS = [20_000, 60_000] as const;
const PORT_TRIES = 5;

/** Runs tests with what they are given. An outage of their judge is the grading's, and never a reward. */
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
