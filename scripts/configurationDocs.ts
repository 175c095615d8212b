// Rewrites the reference part of docs/configuration.md from the schemas. A test fails when the page is not what this would write.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { allPaths, FIELD_CLASSES, SECTIONS, schemaAt } from '../src/config/configSchema.ts';

interface Described {
  readonly type: string;
  readonly fallback: string;
  readonly says: string;
}

function describe(path: string): Described {
  const schema = schemaAt(path.split('.')) as z.ZodType;
  const json = z.toJSONSchema(schema, { unrepresentable: 'any', io: 'input' }) as Record<string, unknown>;
  const fallback = json.default;
  return {
    type: typeOf(json),
    fallback: fallback === undefined ? '' : shorten(JSON.stringify(fallback)),
    says: typeof json.description === 'string' ? json.description : '',
  };
}

function typeOf(json: Record<string, unknown>): string {
  if (Array.isArray(json.enum)) return json.enum.map(String).join(', ');
  if (json.const !== undefined) return String(json.const);
  const options = (json.anyOf ?? json.oneOf) as Record<string, unknown>[] | undefined;
  if (options) return [...new Set(options.map(typeOf))].join(' or ');
  if (json.type === 'object') return 'map';
  if (json.type === 'array') return 'list';
  return typeof json.type === 'string' ? json.type : 'any';
}

const shorten = (text: string): string => (text.length > 48 ? `${text.slice(0, 45)}...` : text);
const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ');
const code = (text: string): string => (text === '' ? '' : `\`${text.replaceAll('`', "'")}\``);

export function configurationReference(): string {
  return Object.keys(SECTIONS)
    .map((section) => {
      const rows = allPaths([section]).map((path) => {
        const { type, fallback, says } = describe(path);
        return `| \`${path}\` | ${cell(type)} | ${cell(code(fallback))} | ${FIELD_CLASSES[path] === 'identity' ? '✱' : ''} | ${cell(says)} |`;
      });
      return [`### ${section}`, '', '| key | type | default | | |', '|---|---|---|---|---|', ...rows].join(
        '\n',
      );
    })
    .join('\n\n');
}

if (import.meta.main) {
  const path = join(import.meta.dirname, '..', 'docs', 'configuration.md');
  const marker = '<!-- reference: written by "npm run docs:configuration" -->';
  const [head = ''] = readFileSync(path, 'utf8').split(marker);
  writeFileSync(path, `${head}${marker}\n\n${configurationReference()}\n`);
}
