// Prints "N passed, N failed, N skipped" from vitest's summary, the plain line that CI reads.
import { readFileSync } from 'node:fs';

const text = readFileSync(process.argv[2], 'utf8').replace(/\u001b\[[0-9;]*m/g, '');
const line = text.split('\n').findLast((l) => /^\s*Tests\s+\d/.test(l)) ?? '';
const count = (word) => Number(new RegExp(`(\\d+) ${word}`).exec(line)?.[1] ?? 0);
console.log(
  `${count('passed')} passed, ${count('failed')} failed, ${count('skipped') + count('todo')} skipped`,
);
