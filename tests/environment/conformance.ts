/**
 * What every Environment must do, as one suite. Point it at another implementation by giving it a bench: see
 * docker/conformance.test.ts, local/conformance.test.ts and docs/extension.md. docs/appendix/proofs.md lists the ids in brackets.
 */
import { describe } from 'vitest';
import type { Environment } from '../../src/environment/environment.ts';
import type { Bench, Suite } from './suites/bench.ts';
import { commandSuite } from './suites/commands.ts';
import { controlSuite } from './suites/control.ts';
import { killSuite } from './suites/kills.ts';
import { outputSuite } from './suites/output.ts';
import { patchSuite } from './suites/patch.ts';

export function describeEnvironment(name: string, bench: Bench): void {
  describe(name, () => {
    let one: Promise<Environment> | undefined;
    const suite: Suite = {
      bench,
      shared: () => {
        one ??= bench.start();
        return one;
      },
    };
    commandSuite(suite);
    outputSuite(suite);
    controlSuite(suite);
    patchSuite(suite);
    killSuite(bench);
  });
}
