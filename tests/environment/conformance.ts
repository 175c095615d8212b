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
import { BESIDE_OTHERS, floodSuite, outputSuite } from './suites/output.ts';
import { captureSuite, patchSuite } from './suites/patch.ts';

/** `transport`: without what does not depend on how commands travel, or takes gigabytes (tests/long/floods.test.ts). */
export function describeEnvironment(name: string, bench: Bench, which: 'all' | 'transport' = 'all'): void {
  describe(name, { concurrent: bench.sideBySide }, () => {
    let one: Promise<Environment> | undefined;
    const suite: Suite = {
      bench,
      shared: () => {
        one ??= bench.start();
        return one;
      },
    };
    if (which === 'all') floodSuite(bench, BESIDE_OTHERS);
    commandSuite(suite);
    outputSuite(suite);
    controlSuite(suite);
    if (which === 'all') patchSuite(bench);
    captureSuite(bench);
    killSuite(bench);
  });
}
