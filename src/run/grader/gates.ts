/** Verifications between the steps of an attempt. What they run in is made when the first is asked for: most suites have none. */
import type { EnvironmentFactory } from '../../environment/environment.ts';
import { currentOwner } from '../../environment/owner.ts';
import type { Gate } from '../../grading/kinds/gradingKind.ts';
import { planGrading } from '../../grading/kinds/gradingKinds.ts';
import type { PlannedTrial } from '../plannedTrial.ts';
import { type FactoryParts, gradingFactory } from './gradeTrial.ts';

export interface StepGates {
  /** undefined: the next step begins whatever came of this one. */
  of(
    trial: PlannedTrial,
    attempt: number,
    step: string,
    signal: AbortSignal,
  ): ((image: string) => ReturnType<Gate>) | undefined;
  close(): Promise<void>;
}

export function createGates(parts: FactoryParts, runName: string): StepGates {
  const { config } = parts;
  let made: Promise<EnvironmentFactory> | undefined;
  return {
    of({ id, instance }, attempt, step, signal) {
      const planned = planGrading(instance, { dialect: config.dialect });
      const gate = planned.ok ? planned.plan.gates?.get(step) : undefined;
      return (
        gate &&
        (async (image) => {
          made ??= gradingFactory(parts);
          const owner = currentOwner(runName, `gate-${id}.${attempt}`);
          return gate({ image, patch: null, factory: await made, config, owner, signal });
        })
      );
    },
    close: async () => (await made)?.close(),
  };
}
