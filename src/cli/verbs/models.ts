/** `swebatch models [NAME…]`: what a model's name means, or the providers that names can begin with. */
import { inert } from '../../base/text/inert.ts';
import { type ModelMeaning, modelMeaning, providerFacts } from '../../run/plan/modelMeaning.ts';
import { UserError } from '../../run/userError.ts';
import { filledText } from '../flags/checks.ts';
import { defineVerb, flags, json } from '../flags/verb.ts';
import { EXIT, printResult } from '../terminal/context.ts';
import { table } from '../terminal/table.ts';

export const modelsVerb = defineVerb({
  name: 'models',
  describe:
    'what a model name means: provider, dialect, address, key, prices, context; without a name the providers',
  flags: flags({
    name: { ...filledText('as -m takes it: claude-opus-4-5, openrouter/…'), place: 'optional' },
    json,
  }),
  examples: [
    ['$0 models', 'the providers, and which keys are set'],
    ['$0 models anthropic/claude-opus-4-5', 'what a run with this name would ask, and at what price'],
  ],
  async run(args) {
    if (args.name === undefined) {
      const facts = providerFacts(process.env);
      printResult(args.json, facts, () => providerTable(facts));
      return EXIT.done;
    }
    const answer = await modelMeaning(args.name, process.env, new Date());
    if (!answer.ok) throw new UserError(answer.message, { hint: answer.fix });
    printResult(args.json, answer.meaning, () => linesOf(answer.meaning));
    return EXIT.done;
  },
});

const providerTable = (facts: ReturnType<typeof providerFacts>): string =>
  table(
    ['prefix', 'dialect', 'key', 'set', 'address'],
    facts.map((p) => [
      `${p.prefix}/`,
      p.dialect,
      p.keys.join(' or '),
      p.keys_set.length > 0 ? 'yes' : 'no',
      p.base_url ?? `$${p.base_url_variables.join(' or $')}`,
    ]),
  );

const count = (tokens: number | null): string =>
  tokens === null ? 'not known' : `${tokens.toLocaleString('en')} tokens`;

function credentialsText({ credentials, key_set }: ModelMeaning): string {
  if (key_set) return 'the key';
  const { from, packages, installed } = credentials!;
  return `${from}, ${installed ? 'by' : 'not installed:'} ${packages.join(', ')}`;
}

const addressText = ({ base_url, base_url_from }: ModelMeaning): string =>
  `${base_url ?? 'not known: set model.base_url'}${base_url_from === null ? '' : ` (from $${base_url_from})`}`;

function linesOf(m: ModelMeaning): string {
  const prices = m.prices
    ? `$${m.prices.input} in, $${m.prices.output} out${m.prices.cache_read === undefined ? '' : `, $${m.prices.cache_read} cached`} per million tokens (${m.price_source})`
    : 'not known: set model.prices';
  const rows: readonly (readonly [string, string])[] = [
    ['provider', m.provider ?? 'any OpenAI-compatible server'],
    ...(m.did_you_mean === null ? [] : [['did you mean', `${m.did_you_mean}?`] as const]),
    ['dialect', m.dialect],
    ['sent as', m.sent_as],
    ['address', addressText(m)],
    ['key', `$${m.key}, which is ${m.key_set ? 'set' : 'not set'}`],
    ...(m.credentials === null ? [] : [['credentials', credentialsText(m)] as const]),
    ['prices', prices],
    ['context', count(m.context)],
    ['longest answer', count(m.max_output)],
    ...(m.gone === null ? [] : [['served until', m.gone] as const]),
  ];
  return rows.map(([what, text]) => `${what.padEnd(16)}${inert(text)}`).join('\n');
}
