// pip's reasons, as it writes them (23.2 and later), in one sentence each.
import { expect, test } from 'vitest';
import { pipSentence } from '../../../src/run/agents/pipSentence.ts';

const asked = { name: 'kimi-cli', version: '1.52.0', python: '3.11.7' };
const ninety = Array.from({ length: 90 }, (_, n) => `0.${n} Requires-Python >=3.13`).join('; ');
const ignored = `ERROR: Ignored the following versions that require a different python version: ${ninety}`;
const missing = (versions: string, what = 'kimi-cli==1.52.0') =>
  `ERROR: Could not find a version that satisfies the requirement ${what} (from versions: ${versions})\nERROR: No matching distribution found for ${what}\n`;
const build = (end: string) =>
  `  error: subprocess-exited-with-error\n  \n  × Preparing metadata (pyproject.toml) did not run successfully.\n  │ exit code: 1\n  ╰─> [92 lines of output]\n${'      line of a build\n'.repeat(90)}        File "<string>", line 3, in <module>\n      ModuleNotFoundError: No module named 'distutils'\n      [end of output]\n  \n  note: This error originates from a subprocess, and is likely not a problem with pip.\n${end}`;

test.each<[what: string, said: string, sentence: string]>([
  [
    'another Python',
    `WARNING: Location 'file:///x/' is ignored\n${ignored}; 1.52.0 Requires-Python >=3.13,<3.15; 1.53.0 Requires-Python >=3.14\n${missing('none')}`,
    'it wants Python >=3.13,<3.15, and this machine has 3.11.7',
  ],
  [
    'another Python for a package that it needs',
    "ERROR: Package 'kosong' requires a different Python: 3.11.7 not in '>=3.13'",
    'kosong wants Python >=3.13, and this machine has 3.11.7',
  ],
  [
    'no such version',
    missing('0.1, 0.2, 0.3, 1.51.0'),
    'the registry has no version 1.52.0; the last that it has: 0.2, 0.3, 1.51.0',
  ],
  [
    'no such version for any Python',
    `${ignored}\n${missing('none')}`,
    'the registry has no version 1.52.0; the last that it has: 0.87, 0.88, 0.89',
  ],
  ['no such package', missing('none'), 'the registry has no package kimi-cli'],
  [
    'a package that it needs',
    missing('1.0', 'kosong>=2 (from kimi-cli)'),
    'it needs kosong>=2, which the registry does not have for Python 3.11.7 on this machine',
  ],
  [
    'what cannot be together',
    'ERROR: Cannot install a==1 and b==2 because these package versions have conflicting dependencies.\n\nThe conflict is caused by:\n    a 1 depends on b<2\n\nERROR: ResolutionImpossible: for help visit https://pip.pypa.io/',
    'Cannot install a==1 and b==2 because these package versions have conflicting dependencies.',
  ],
  [
    'a build',
    build(
      'error: metadata-generation-failed\n\n× Encountered error while generating package metadata.\n╰─> See above for output.\n\nnote: This is an issue with the package mentioned above, not pip.\nhint: See above for details.\n',
    ),
    "it, or a package that it needs, cannot be built here: ModuleNotFoundError: No module named 'distutils'",
  ],
  [
    'a build of a package that is named',
    build(
      'error: metadata-generation-failed\n\n× Encountered error while generating package metadata.\n╰─> numpy\n\nnote: This is an issue\n',
    ),
    "numpy cannot be built here: ModuleNotFoundError: No module named 'distutils'",
  ],
  [
    'a wheel',
    build(
      '  ERROR: Failed building wheel for numpy\nERROR: Failed to build installable wheels for some pyproject.toml based projects (numpy)',
    ),
    "numpy cannot be built here: ModuleNotFoundError: No module named 'distutils'",
  ],
  [
    'a connection',
    "WARNING: Retrying (Retry(total=0)) after connection broken by 'SSLError(1)': /simple/x/\nERROR: No matching",
    "'SSLError(1)': /simple/x/",
  ],
  [
    'a machine that is full',
    'ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n',
    'Could not install packages due to an OSError: [Errno 28] No space left on device',
  ],
  ['no answer', 'no answer within 12 seconds. ', 'no answer within 12 seconds.'],
  ['nothing', '', 'it gave no reason'],
])('%s', (_what, said, sentence) => {
  expect(pipSentence(said, asked)).toBe(sentence);
});
