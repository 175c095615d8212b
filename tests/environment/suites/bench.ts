// What a suite of environment tests is given.
import type { Environment } from '../../../src/environment/environment.ts';
import type { EnvironmentConfig } from '../../../src/environment/environmentConfig.ts';

export interface StartOptions {
  readonly config?: Partial<EnvironmentConfig>;
  /** Shell commands that make the start tree, before the snapshot. */
  readonly setup?: string;
}

export interface Bench {
  /** A fresh environment whose work tree is a git repository with README.md ("hello\n"), src/a.py and a .gitignore of node_modules/, .venv/ and *.pyc. */
  start(options?: StartOptions): Promise<Environment>;
  /** Closes what `start` gave out. */
  stop(): Promise<void>;
  /** Its environments do not meet: several tests run at a time. */
  readonly sideBySide: boolean;
  /** The work tree as commands see it. */
  readonly workTree: () => string;
  readonly can: {
    /** Memory and process limits hold. */
    readonly limits: boolean;
    /** Commands run as root on a file system of their own. */
    readonly container: boolean;
    /** Output of a background process of an earlier command never appears in a later one. */
    readonly separateOutput: boolean;
  };
}

export interface Suite {
  readonly bench: Bench;
  /** One environment for tests that leave nothing behind. */
  shared(): Promise<Environment>;
}

/** Prints how many processes have `marker` in their command line: for "is it dead?". One grep, because a machine may have thousands. */
export const countProcesses = (marker: string): string =>
  `grep -la -- '${marker.slice(0, -1)}[${marker.slice(-1)}]' /proc/[0-9]*/cmdline 2>/dev/null | wc -l`;
