/** Verifications while an attempt goes on. What they run in is made when the first is asked for: most suites have none. */
import type { EnvironmentFactory } from '../../environment/environment.ts';
import { currentOwner } from '../../environment/owner.ts';
import type { LedAttempt } from '../../suites/suite.ts';
import { rememberBuilds } from '../../suites/suites.ts';
import type { PlannedTrial } from '../plannedTrial.ts';
import { type FactoryParts, gradingFactory } from './gradeTrial.ts';

export interface StepGates {
  request(trial: PlannedTrial, attempt: number, signal: AbortSignal): ReturnType<LedAttempt['gradeRequest']>;
  close(): Promise<void>;
}

export function createGates(parts: FactoryParts, runName: string): StepGates {
  const { config } = parts;
  let made: Promise<EnvironmentFactory> | undefined;
  return {
    async request({ id, instance }, attempt, signal) {
      rememberBuilds(instance);
      made ??= gradingFactory(parts);
      const owner = currentOwner(runName, `gate-${id}.${attempt}`);
      return { factory: await made, config, owner, signal };
    },
    close: async () => (await made)?.close(),
  };
}
