// Configurations of people and of other tools: accepted, or refused with ConfigError.
import fc from 'fast-check';
import { loadConfig } from '../../src/config/loadConfig.ts';
import { ConfigError } from '../../src/config/readConfig.ts';
import { CORPORA, textLike } from './corpus.ts';
import { type Target, target } from './target.ts';

const WORDS = [
  'agent:\n',
  '  step_limit: ',
  'model:\n',
  '  model_name: a\n',
  '- ',
  ': ',
  '&a ',
  '*a',
  '<<: *a\n',
  '!!js ',
  '|\n',
  '{',
  '}',
  '[',
  ']',
  '\t',
  '"',
  "'",
  '__proto__: ',
  'constructor: ',
  '.inf',
  '1e400',
  '0x',
  'null',
  '~',
  '# ',
  '---\n',
  '{{ task }}',
  '\u0000',
];
const text = textLike(
  CORPORA.files!().filter((each) => /^\w+:/m.test(each)),
  WORDS,
);
const spec = fc.oneof(
  fc.constant('file.yaml'),
  fc
    .tuple(
      fc.constantFrom('agent.step_limit', 'model.model_name', '__proto__.x', 'run.retry', 'a', 'agent'),
      text,
    )
    .map(([key, value]) => `${key}=${value}`),
);

export const configTargets = (): Target[] => [
  target(
    'configurations',
    fc.property(text, fc.array(spec, { minLength: 1, maxLength: 3 }), (file, specs) => {
      try {
        loadConfig({
          specs,
          cwd: '/nowhere',
          readFile: (path) => (path.endsWith('file.yaml') ? file : null),
        });
      } catch (error) {
        if (!(error instanceof ConfigError)) throw error;
      }
      if (Object.hasOwn(Object.prototype, 'x')) throw new Error('the prototype of all objects was changed');
    }),
  ),
];
