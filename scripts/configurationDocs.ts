// Rewrites the reference part of docs/configuration.md from the schemas. A test fails when the page is not what this would write.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { configurationReference } from '../src/config/configurationReference.ts';

const path = join(import.meta.dirname, '..', 'docs', 'configuration.md');
const marker = '<!-- reference: written by "npm run docs:configuration" -->';
const [head = ''] = readFileSync(path, 'utf8').split(marker);
writeFileSync(path, `${head}${marker}\n\n${configurationReference()}\n`);
