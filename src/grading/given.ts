/** Gifts of the grader to the tests: variables of this machine, and a model that they may ask, by way of this process. */
import type { Duplex } from 'node:stream';
import type { VariableValues, WantedVariables } from '../base/hostVariables.ts';

export interface Given {
  readonly variables: VariableValues;
  /** Takes their values out of a text. */
  clean(text: string): string;
  readonly judge?: Judge | undefined;
}

export interface Judge {
  /** The variable holds a key of a provider: a task that wants it asks a model. */
  isKey(variable: string): boolean;
  /** The tests get it of their judge. */
  serves(variable: string): boolean;
  /** Opens a session for one verification. */
  open(): JudgeSession;
}

export interface JudgeSession {
  /** One connection of the tests. Never throws. */
  handle(connection: Duplex): void;
  /** The variables of the tests: `origin` is where they find the model. */
  env(origin: string, wanted: WantedVariables): Record<string, string>;
  /** No call is made any more. Never rejects. */
  close(): Promise<JudgeEnd>;
}

export interface JudgeEnd {
  /** The model's name. */
  readonly model: string;
  readonly calls: number;
  /** The number of these that the record answered. */
  readonly recorded: number;
  /** Other names that the tests asked for, which the judge answered to. */
  readonly otherNames: readonly string[];
  /** The reason why a request was never answered; null where each was. */
  readonly lost: string | null;
}
