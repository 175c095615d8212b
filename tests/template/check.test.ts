// What is wrong with a template is found when the config loads, and a template reaches nothing of the host language.
import { describe, expect, test } from 'vitest';
import { TemplateError, UndefinedError } from '../../src/template/parse.ts';
import { checkTemplate, compileTemplate, render } from '../../src/template/render.ts';
import { cpuMs } from '../support/cpuTime.ts';

describe('checkTemplate', () => {
  test('a template that uses what it is given has no problems', () => {
    expect(
      checkTemplate('{{ task }} {% for a in actions %}{{ loop.index }}{{ a }}{% endfor %}', [
        'task',
        'actions',
      ]),
    ).toEqual([]);
  });
  test('an unknown name is named, with the closest known one [S-19]', () => {
    expect(checkTemplate('{{ taks }}', ['task'])).toEqual([
      "'taks' is not a name this template can use; did you mean 'task'?",
    ]);
  });
  test('an unknown name in a branch that rarely runs is found too', () => {
    expect(
      checkTemplate('{% if a %}{% else %}{{ ouput.output[:5] }}{% endif %}', ['a', 'output']),
    ).toHaveLength(1);
  });
  test('names under "is defined" and default may be missing', () => {
    expect(
      checkTemplate('{% if f is defined and f == "x" %}{{ f }}{% endif %}{{ g | default("d") }}', []),
    ).toEqual([]);
  });
  test('names set in the template are known after that, loop names only inside [S-61]', () => {
    expect(checkTemplate('{% set n = 1 %}{{ n }}', [])).toEqual([]);
    expect(checkTemplate('{% for i in range(2) %}{{ i }}{% endfor %}{{ i }}', [])).toHaveLength(1);
  });
  test.each([
    ['{{ x | dump }}', "there is no filter 'dump'"],
    ['{% if x is odious %}{% endif %}', "there is no test 'odious'"],
    ['{{ x.toUpperCase() }}', "there is no method 'toUpperCase' to call"],
    ['{{ x() }}', "'x' cannot be called"],
    ['{% include "a" %}', 'templates here have no {% include %} (line 1)'],
    ['{% macro m() %}{% endmacro %}', 'templates here have no {% macro %} (line 1)'],
    ['{{ x === 1 }}', 'Jinja2 has no operator === (line 1)'],
  ])('%s is refused', (template, problem) => {
    expect(checkTemplate(template, ['x'])).toContain(problem);
  });
  test('syntax errors carry line and column', () => {
    expect(checkTemplate('a\n{% if %}', [])[0]).toMatch(/line 2, column/);
  });
});

describe('a template cannot reach code', () => {
  const attacks = [
    "{{ x.constructor.constructor('return process')() }}",
    '{{ x["constructor"] }}',
    '{{ x.__proto__ }}',
    '{{ l.constructor }}',
    '{{ d.toString }}',
    '{{ d.hasOwnProperty("a") }}',
    '{{ d["__proto__"]["polluted"] }}',
    '{{ f }}',
    '{{ l.map(f) }}',
    '{{ x | map("constructor") }}',
    '{{ [d] | map(attribute="constructor") | list }}',
    '{{ range.constructor }}',
  ];
  test.each(attacks)('%s', (template) => {
    const vars = { x: 'text', l: [1], d: { a: 1 }, f: () => 'called' };
    expect(() => render(template, vars)).toThrow(TemplateError);
  });
  test('inherited names of the variables object are not variables', () => {
    expect(() => render('{{ toString }}', {})).toThrow(UndefinedError);
  });
  test('values are never read as template text', () => {
    expect(render('{{ task }}', { task: '{{ 1 + 1 }} {% raw %} {# x #}' })).toBe(
      '{{ 1 + 1 }} {% raw %} {# x #}',
    );
  });
});

describe('beyond the golden file', () => {
  const d = { p: 1, q: [1, 2] };
  test('slices with a step and from the end', () => {
    expect(render('{{ x[::-1] }} {{ x[::2] }} {{ x[-3:-1] }} {{ x[9:] }}', { x: '😀abc' })).toBe(
      'cba😀 😀b ab ',
    );
  });
  test.each<[string, string]>([
    ['{{ 7 // 2 * 2 }} {{ 2 * 7 // 3 }} {{ 3 * 5 % 4 }} {{ 10 - 3 + 2 }}', '6 4 3 9'],
    ['{{ -7 % 3 }} {{ -7 // 2 }} {{ 2 ** 3 }} {{ 2 ** -1 }}', '2 -4 8 0.5'],
    ['{{ 1 == "1" }} {{ 1 == 1.0 }} {{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }}', 'False True True False'],
    ['{{ 9 is divisibleby 3 }} {{ "a" is in ["a"] }} {{ 3 is not divisibleby 2 }}', 'True True True'],
    ['{{ "a" ~ 1 + 2 }}', 'error'],
    ['{% for k in d %}{{ k }};{% endfor %}', 'p;q;'],
    ['{% for i in [1, 2, 3] if i > 1 %}{{ i }}{% endfor %}', '23'],
    ['{% set n = 0 %}{% for i in [1, 2] %}{% set n = n + i %}{% endfor %}{{ n }}', '0'],
    ['{% set t %}a{{ 1 }}{% endset %}{{ t }}', 'a1'],
    ['{{ d | length }} {{ d.q | last }} {{ d.get("z", 5) }} {{ d.get("z") }}', '2 2 5 None'],
    ['{{ "a b" | title }} {{ "x" * 3 }} {{ [3, 1, 2] | sort | join(",") }}', 'A B xxx 1,2,3'],
    ['{{ "one two three" | truncate(9, False, "…", 0) }}', 'one two…'],
    ['{{ 2.5 | round }} {{ 3.14159 | round(2) }} {{ "7" | int + 1 }}', '2.0 3.14 8'],
    ['{{ "yes" if not d.p == 2 else "no" }}', 'yes'],
    ['{{ 0.00001 }} {{ 1.5 }} {{ 2.0 }} {{ 10.0 ** 20 }}', '1e-05 1.5 2.0 1e+20'],
    [`{{ ["a'b", 'c\n', none, true] }}`, `["a'b", 'c\\n', None, True]`],
    ['{%- filter upper -%} ab {%- endfilter -%} c', 'ABc'],
  ])('%s', (template, wanted) => {
    if (wanted === 'error') expect(() => render(template, { d })).toThrow(TemplateError);
    else expect(render(template, { d })).toBe(wanted);
  });
  test('slices and lengths of large text count code points without making arrays of them', () => {
    const big = '😀'.repeat(1_000_000);
    let text = '';
    const took = cpuMs(() => {
      text = render('{{ x | length }} {{ x[:2] }} {{ x[-2:] }}', { x: big });
    });
    expect(text).toBe('1000000 😀😀 😀😀');
    expect(took).toBeLessThan(1000);
  });
  test('what Jinja2 can do and templates here cannot is refused by name when it is read', () => {
    const refused: readonly (readonly [string, RegExp])[] = [
      ['{% macro m() %}{% endmacro %}', /no {% macro %}/],
      ['{% for x in l recursive %}{% endfor %}', /cannot be recursive/],
      ['{{ range(*l) }}', /take no '\*'/],
      ["{{ '\\N{BULLET}' }}", /have no '\\N/],
      ['{{ 12345678901234567890 }}', /too large/],
      ['{{ x | wordwrap(10) }}', /no filter 'wordwrap'/],
      ['{{ x.encode() }}', /no method 'encode'/],
      ['{{ x.split(",", 1, 2) }}', /at most 2 arguments/],
      ['{{ x.split(limit=1) }}', /no argument 'limit'/],
      ['{{ x | indent(widht=2) }}', /no argument 'widht'/],
      ['{{ (x | tojson) + "<" }}', /joined by ~/],
      ['{{ (x | e).upper() }}', /joined by ~/],
      ['{{ {1: "a"}[1] }}', /no mapping with a key that is a int/],
      ['{{ "{a[b]}".format(a=x) }}', /cannot format '\{a\[b\]\}'/],
    ];
    for (const [template, problem] of refused)
      expect(checkTemplate(template, ['x', 'l']).join('; '), template).toMatch(problem);
  });
  test('long and deep templates are read in linear time, or refused', () => {
    const took = cpuMs(() => {
      const pairs = [
        ['(', ')'],
        ['[', ']'],
        ['{"a": ', '}'],
        ['-', ''],
        ['not ', ''],
        ['x if ', ''],
        ['', ' + 1'],
        ['', '.a'],
        ['', ' | e'],
        ['x if x else ', ''],
      ];
      for (const [open = '', close = ''] of pairs)
        expect(() => render(`{{ ${open.repeat(20_000)}x${close.repeat(20_000)} }}`, { x: 1 })).toThrow(
          TemplateError,
        );
      for (const block of ['if x', 'for y in x', 'filter e', 'with y = x'])
        expect(() =>
          render(`{% ${block} %}`.repeat(20_000) + `{% end${block.split(' ')[0]} %}`.repeat(20_000), {
            x: [1],
          }),
        ).toThrow(TemplateError);
      const long = `{{ x }}{% if x %}  {% endif %}{# ${'y'.repeat(50)} #}{%- raw %} {{ {% endraw -%}`.repeat(
        10_000,
      );
      expect(render(long, { x: 'a' })).toHaveLength(70_000);
      for (const open of ['{% ', '{{ ', '{#', '{%-raw', '{%      '])
        expect(() => compileTemplate(open.repeat(50_000))).toThrow(TemplateError);
    });
    expect(took).toBeLessThan(4000);
  });
  test('a width, a repetition and a power that no prompt has are refused', () => {
    for (const expression of [
      '"x" * 100000000',
      '[1] * 100000000',
      '"%999999999d" % 1',
      '"{:999999999}".format(1)',
      '"a".center(999999999)',
      '9 ** 99',
      'range(999999999)',
    ])
      expect(() => render(`{{ ${expression} }}`, {}), expression).toThrow(TemplateError);
  });
  test('a template is compiled once', () => {
    expect(compileTemplate('a{{ b }}')).toBe(compileTemplate('a{{ b }}'));
  });
});
