// What Jinja2 from PyPI makes of a template is what templates here make of it, or they refuse it by name when it is read.
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { checkTemplate, render } from '../../src/template/render.ts';
import { Grammar, soup, VARS } from '../support/jinja/grammar.ts';
import { fromPypi } from '../support/python/fromPypi.ts';

type Vars = Readonly<Record<string, unknown>>;
interface Rendered {
  readonly ok?: string;
  /** Refused when it was read. */
  readonly load?: string;
  /** Failed while it was rendered. */
  readonly error?: string;
}

const jinja = await fromPypi('jinja2', '3.1.6');
beforeEach((context) => {
  if ('why' in jinja) context.skip(jinja.why);
});

function byJinja(cases: readonly { template: string; vars: Vars }[]): Rendered[] {
  if ('why' in jinja) throw new Error(jinja.why);
  const script = join(import.meta.dirname, '..', 'support', 'python', 'renderJinja.py');
  const done = spawnSync('python3', [script, jinja.folder], {
    input: JSON.stringify(cases),
    maxBuffer: 1 << 28,
    encoding: 'utf8',
  });
  if (done.status !== 0) throw new Error(done.stderr);
  return JSON.parse(done.stdout) as Rendered[];
}

function byUs(template: string, vars: Vars): Rendered {
  const [problem] = checkTemplate(template, [...Object.keys(vars), 'missing']);
  if (problem !== undefined) return { load: problem };
  try {
    return { ok: render(template, vars) };
  } catch (error) {
    return { error: (error as Error).message };
  }
}

/** The templates of which the two make different things. */
function differences(
  cases: readonly { template: string; vars: Vars }[],
  mayRefuse: (problem: string) => boolean,
): string[] {
  const wanted = byJinja(cases);
  return cases.flatMap(({ template, vars }, i) => {
    const [theirs, ours] = [wanted[i] as Rendered, byUs(template, vars)];
    const fits =
      theirs.ok === undefined
        ? ours.ok === undefined
        : ours.ok === theirs.ok || (ours.load !== undefined && mayRefuse(ours.load));
    return fits
      ? []
      : [`${JSON.stringify(template)}\n  Jinja2 ${JSON.stringify(theirs)}\n  here ${JSON.stringify(ours)}`];
  });
}

const OWN = { task: 'Fix `x`\n', n: 3, items: ['a', 'b'], text: 'a-b\x1bc' };
/** Forms that people write and that were read wrongly or not at all. */
const FORMS = [
  "{{ '\\x1b[31m' }}{{ '\\u2026' }}{{ \"\\d+\" }}{{ '\\'' }}{{ '\\101\\0' }}{{ 'a\\\nb' }}",
  "{{ 'x' if false }}|{{ 'x' if true }}|{{ ('x' if n > 5) | default('none') }}|{{ ('x' if false) is defined }}",
  'a {%- raw -%} {{ n }} {%- endraw -%} b',
  '{%+ raw %} {{ n }} {%- endraw +%} b',
  '{% set ns = namespace(n=0) %}{% for i in items %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}',
  "{{ '%d' % n }} {{ '%05.1f|%-4s|%x' % (2.25, 'a', 255) }} {{ '%(task)s' % {'task': 1} }} {{ '100%%' % () }}",
  "{{ task.find('x') }} {{ task.rsplit('x', 1) }} {{ 1e3 }} {{ 1_000 }} {{ 2.5e-7 }} {{ 0x10 }}",
  "{{ 'a' 'b' }} {{ 1, 2 }} {{ (1,) }} {{ [] == () }} {{ {'a': 1}.items() }} {{ range(3) }}",
  '{% for a, (b, c) in [(1, (2, 3))] if a == 1 %}{{ a }}{{ b }}{{ c }}{{ loop.depth }}{% endfor %}',
  "{{ text | replace('', '.') }} {{ 0.125 | round(2) }} {{ 3 | round }} {{ 2.675 | round(2) }} {{ '%.2f' % 0.125 }}",
  "{{ -7 // 2 }} {{ -7 % 3 }} {{ 7.5 // -2 }} {{ -0.0 % 3 }} {{ 3 * 'ab' }} {{ True + 1 }} {{ 2 ** 3 ** 2 }}",
  "{{ items | map('upper') | join }} {{ [3, 1] | sort(reverse=true) }} {{ ['b', 'A'] | unique | list }}",
  "{{ dict([('a', 1), ('b', n)]) }} {{ dict({'a': 1}, b=2).b }} {{ namespace([('a', 1)]).a }}",
  '{% set d = {"items": {"type": "x"}, "keys": 1, "pop": 2} %}{{ d.items is mapping }}{{ d["items"] is mapping }}{{ d.keys is number }}{{ d.pop is callable }}',
  '{{ {}.items is defined }}{{ {}.pop is defined }}{{ {"a": 1}.a is defined }}{% for k, v in {"items": 1}.items() %}{{ k }}{{ v }}{% endfor %}',
  '{% if n == 3 and "a" in items and not missing is defined %}yes{% elif n %}no{% else %}never{% endif %}',
];

describe('templates of Jinja 3', () => {
  test('forms that people write', () => {
    expect(
      differences(
        FORMS.map((template) => ({ template, vars: OWN })),
        () => false,
      ),
    ).toEqual([]);
  });

  test('templates made from its grammar', () => {
    const cases = Array.from({ length: 900 }, (_, seed) => ({
      template: new Grammar(seed).template(),
      vars: VARS,
    }));
    expect(differences(cases, () => false)).toEqual([]);
  });

  test('tokens in no order: what is no template there is none here, and names that are missing are refused', () => {
    const cases = Array.from({ length: 2000 }, (_, seed) => ({ template: soup(seed), vars: VARS }));
    expect(differences(cases, (problem) => problem.includes('is not a name this template can use'))).toEqual(
      [],
    );
  });
});

const CONFIGS = join(import.meta.dirname, '..', '..', '..', 'shared', 'data', 'configs');
const OUTPUTS = [
  { returncode: 0, output: 'short', exception_info: '' },
  { returncode: 1, output: `${'long '.repeat(4000)}<end>`, exception_info: 'died' },
];

describe('published prompts', () => {
  test('all templates of the configurations in ../shared/data/configs', (context) => {
    let names: string[] = [];
    try {
      names = readdirSync(CONFIGS);
    } catch {
      context.skip('../shared/data/configs is not there');
    }
    const templates = names.flatMap((name) =>
      templatesOf(parse(readFileSync(join(CONFIGS, name), 'utf8'), { uniqueKeys: false })),
    );
    expect(templates.length).toBeGreaterThan(20);
    const vars = {
      task: 'do <it>',
      system: 'Linux',
      release: '6',
      version: '#1',
      machine: 'x86_64',
      cwd: '/testbed',
      error: 'no block',
      actions: [],
      finish_reason: 'stop',
      has_tool_calls: true,
      n_model_calls: 3,
      model_cost: 0.5,
      action: { action: 'ls' },
    };
    const cases = templates.flatMap((template) =>
      OUTPUTS.map((output) => ({ template, vars: { ...vars, ...output, output } })),
    );
    expect(differences(cases, () => false)).toEqual([]);
  });
});

function templatesOf(value: unknown): string[] {
  if (typeof value === 'string') return /\{[{%]/.test(value) ? [value] : [];
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap(templatesOf);
}
