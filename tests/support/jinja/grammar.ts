/** Random templates from the grammar of Jinja 3, by seed: well-typed ones for the most part, so that most of them render to something. */

export const VARS = {
  s: 'Hello, world',
  t: '  two\tlines\nand "quotes" of it\'s <b>own</b>  ',
  u: 'naïve ßtraße 😀 İo',
  e: '',
  c: 'a,b,,c',
  n: 7,
  m: -3,
  z: 0,
  x: 2.5,
  y: -0.125,
  p: true,
  q: false,
  o: null,
  l: [3, 1, 2],
  k: ['b', 'A', 'c', 'a'],
  w: [],
  d: { one: 1, two: 'zwei', three: [1, 2] },
  r: [
    { name: 'Bob', age: 30, tags: ['x'] },
    { name: 'al', age: 25, tags: [] },
    { name: 'Cy', age: 30, tags: ['y', 'z'] },
  ],
} as const;

type Kind = 'text' | 'int' | 'float' | 'bool' | 'numbers' | 'texts' | 'dict' | 'dicts';
const NAMES: Readonly<Record<Kind, readonly string[]>> = {
  text: ['s', 't', 'u', 'e', 'c'],
  int: ['n', 'm', 'z'],
  float: ['x', 'y'],
  bool: ['p', 'q'],
  numbers: ['l'],
  texts: ['k'],
  dict: ['d'],
  dicts: ['r'],
};

/** Numbers from 0 to 1 by a seed (mulberry32). */
function chance(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

export class Grammar {
  private readonly next: () => number;
  private made = 0;
  constructor(seed: number) {
    this.next = chance(seed);
  }

  private int(below: number): number {
    return Math.floor(this.next() * below);
  }
  private one<T>(of: readonly T[]): T {
    return of[this.int(of.length)] as T;
  }
  private maybe(text: string, rate = 0.5): string {
    return this.next() < rate ? text : '';
  }
  private name(): string {
    this.made += 1;
    return `v${this.made}`;
  }

  template(): string {
    const parts = Array.from({ length: 1 + this.int(4) }, () => this.part(2));
    return parts.join('') + this.maybe('\n', 0.2);
  }

  private part(depth: number): string {
    const kind = this.int(depth > 0 ? 12 : 5);
    if (kind < 2) return this.data();
    if (kind < 6) {
      // Jinja2 marks this text as safe, which its repr shows, and escapes what is added to it.
      const safe = this.maybe(this.one([' | tojson', ' | tojson(indent=1)', ' | e']), 0.1);
      const shown = safe
        ? this.inner(this.one(['text', 'dict', 'numbers', 'dicts'] as const), 3)
        : this.any(3);
      return `${this.open('{{')} ${shown}${safe} ${this.close('}}')}`;
    }
    if (kind === 6) return `{#${this.maybe('-', 0.2)} a comment {{ n }} ${this.maybe('-', 0.2)}#}`;
    if (kind === 7)
      return `${this.tag('raw')}${this.one(['{{ n }}', '{% if %}', ' {# x #} ', '\n text '])}${this.tag('endraw')}`;
    if (kind === 8) return this.condition(depth);
    if (kind === 9) return this.loop(depth);
    if (kind === 10) return this.assignment(depth);
    return this.block(depth);
  }

  private data(): string {
    return this.one(['text ', '\n', '  \n  ', ' }} ', ' %} #} ', '{ x }', 'a\r\nb', '\t', "it's ", '\u00a0']);
  }
  private open(mark: string): string {
    return mark + this.one(['', '', '', '-', '+']);
  }
  private close(mark: string): string {
    return this.one(['', '', '', '-']) + mark;
  }
  private tag(body: string): string {
    return `${this.open('{%')}${this.one([' ', '  ', '\n'])}${body} ${this.close('%}')}`;
  }
  private parts(depth: number): string {
    return Array.from({ length: 1 + this.int(2) }, () => this.part(depth - 1)).join('');
  }

  private condition(depth: number): string {
    const middle = this.maybe(`${this.tag(`elif ${this.expression('bool', 2)}`)}${this.parts(depth)}`, 0.3);
    const end = this.maybe(`${this.tag('else')}${this.parts(depth)}`);
    return `${this.tag(`if ${this.any(2)}`)}${this.parts(depth)}${middle}${end}${this.tag('endif')}`;
  }

  private loop(depth: number): string {
    const item = this.name();
    const kind = this.int(4);
    const filter = this.maybe(` if ${item} is defined`, 0.2);
    const head =
      kind === 0
        ? `for ${item}, ${item}b in ${this.inner('dict', 2)}.items()`
        : kind === 1
          ? `for ${item} in range(${this.int(4)})${filter}`
          : `for ${item} in ${this.expression(this.one(['numbers', 'texts', 'text'] as const), 2)}${filter}`;
    const inside = this.one([
      `{{ ${item} }}`,
      '{{ loop.index }}/{{ loop.length }}{{ "," if not loop.last }}',
      `{{ loop.cycle("odd", "even") }}`,
      `{{ loop.revindex0 }}{{ loop.previtem if loop.previtem is defined }}`,
      `{% if loop.changed(${item}) %}new{% endif %}`,
      `{{ loop.nextitem | default("end") }}`,
    ]);
    const otherwise = this.maybe(`${this.tag('else')}none`, 0.3);
    return `${this.tag(head)}${inside}${this.parts(depth)}${otherwise}${this.tag('endfor')}`;
  }

  private assignment(depth: number): string {
    const name = this.name();
    switch (this.int(5)) {
      case 0:
        return `${this.tag(`set ${name}`)}${this.parts(depth)}${this.tag('endset')}[{{ ${name} }}]`;
      case 1:
        return `${this.tag(`set ${name} = ${this.any(3)}`)}{{ ${name} }}`;
      case 2:
        return `${this.tag(`set ${name}, ${name}b = ${this.any(2)}, ${this.any(2)}`)}{{ ${name} }}{{ ${name}b }}`;
      case 3:
        return `${this.tag(`set ${name} | upper`)}${this.parts(depth)}${this.tag('endset')}{{ ${name} }}`;
      default:
        return (
          `${this.tag(`set ${name} = namespace(n=${this.int(3)})`)}{% for i in ${this.expression('numbers', 1)} %}` +
          `{% set ${name}.n = ${name}.n + i %}{% endfor %}{{ ${name}.n }}`
        );
    }
  }

  private block(depth: number): string {
    const name = this.name();
    return this.one([
      () =>
        `${this.tag(`with ${name} = ${this.any(2)}`)}{{ ${name} }}${this.parts(depth)}${this.tag('endwith')}`,
      () =>
        `${this.tag(`filter ${this.one(['upper', 'trim', 'replace("a", "b")', 'indent(2) | lower'])}`)}${this.parts(depth)}${this.tag('endfilter')}`,
      () => `${this.tag(`set ${name} = joiner("; ")`)}{{ ${name}() }}a{{ ${name}() }}b{{ ${name}() }}`,
      () =>
        `${this.tag(`set ${name} = cycler(1, 2, 3)`)}{{ ${name}.next() }}{{ ${name}.next() }}{{ ${name}.current }}`,
    ])();
  }

  any(depth: number): string {
    return this.expression(
      this.one([
        'text',
        'text',
        'text',
        'int',
        'float',
        'bool',
        'numbers',
        'texts',
        'dict',
        'dicts',
      ] as const),
      depth,
    );
  }

  /** In parentheses where it stands beside an operator. */
  private inner(kind: Kind, depth: number): string {
    const made = this.expression(kind, depth - 1);
    return /^[\w.]+$/.test(made) ? made : `(${made})`;
  }

  expression(kind: Kind, depth: number): string {
    const common = this.int(14);
    if (depth <= 0 || common === 0) return this.leaf(kind);
    if (common === 1)
      return `${this.inner(kind, depth)} if ${this.expression('bool', depth - 1)} else ${this.expression(kind, depth - 1)}`;
    if (common === 2)
      return `${this.inner(kind, depth)} ${this.one(['or', 'and'])} ${this.inner(kind, depth)}`;
    if (common === 3) return `missing | default(${this.expression(kind, depth - 1)})`;
    switch (kind) {
      case 'text':
        return this.text(depth);
      case 'int':
        return this.whole(depth);
      case 'float':
        return this.real(depth);
      case 'bool':
        return this.truth(depth);
      case 'numbers':
      case 'texts':
        return this.list(kind, depth);
      case 'dict':
        return this.one([
          () => 'd',
          () => `dict(a=${this.any(1)})`,
          () => `{${this.string()}: ${this.any(1)}, "k": ${this.any(0)}}`,
          () => 'r[0]',
          () => 'r | first',
        ])();
      default:
        return this.one([
          () => 'r',
          () => 'r[:2]',
          () =>
            `r | sort(attribute="${this.one(['name', 'age', 'age,name'])}"${this.maybe(', reverse=true')})`,
          () =>
            `r | selectattr("age", "${this.one(['>', 'eq', 'lt', 'divisibleby'])}", ${this.one([25, 28, 30])}) | list`,
          () => 'r | rejectattr("tags") | list',
        ])();
    }
  }

  private leaf(kind: Kind): string {
    if (this.next() < 0.5) return this.one(NAMES[kind]);
    switch (kind) {
      case 'text':
        return this.string();
      case 'int':
        return this.one([
          '0',
          '1',
          '12',
          '1_000',
          '0x1F',
          '0b101',
          '0o17',
          '-4',
          'd.one',
          'l[0]',
          'l[-1]',
          'd["one"]',
        ]);
      case 'float':
        return this.one(['1.5', '0.1', '1e3', '2.5e-7', '1_0.5', '-0.0', '3.0', '1E+2']);
      case 'bool':
        return this.one(['true', 'false', 'True', 'False', 'none is none']);
      case 'numbers':
        return this.one(['[1, 2]', '[]', '(1,)', '[0.5, 1]', 'range(3) | list', 'd.three', '(4, 5)']);
      case 'texts':
        return this.one([
          '["x", "Y"]',
          "['a' 'b']",
          'c.split(",")',
          's | list',
          't.splitlines()',
          '["only",]',
        ]);
      case 'dict':
        return this.one(['{}', '{"a": 1}', 'r[1]']);
      default:
        return 'r';
    }
  }

  private string(): string {
    const body = this.one([
      'a',
      '',
      ' b ',
      'x\\ny',
      '\\x1b[31m',
      '\\u2026',
      '\\U0001F600',
      '\\t',
      "it\\'s",
      '\\d+',
      '\\\\',
      '\\101',
      'ß',
      '{{',
      '%}',
      '100%',
      'a-b c',
      '\\\n',
      '\\a\\b\\f\\v\\0',
    ]);
    return this.next() < 0.5 ? `'${body}'` : `"${body}"`;
  }

  private text(depth: number): string {
    const of = (): string => this.inner('text', depth);
    const small = (): number => this.int(6) - 2;
    return this.one([
      () => `${of()} ~ ${this.inner(this.one(['int', 'float', 'bool', 'text', 'numbers'] as const), depth)}`,
      () => `${of()} + ${of()}`,
      () => `${of()} * ${this.int(3)}`,
      () =>
        `${of()}[${small()}:${this.one(['', String(small())])}${this.maybe(`:${this.one([1, 2, -1, -2])}`)}]`,
      () =>
        `${of()} | ${this.one(['upper', 'lower', 'title', 'capitalize', 'trim', 'reverse', 'string', 'urlencode', 'center(12)', 'trim("ab ")'])}`,
      () =>
        `${of()} | indent${this.one(['', '(2)', '(2, true)', '("> ", first=true)', '(width=1, blank=true)'])}`,
      () =>
        `${of()} | truncate(${this.one(['5', '6, true', '7, false, ".."', '8, end="", leeway=0', '4, leeway=1'])})`,
      () => `${of()} | replace(${this.string()}, ${this.string()}${this.maybe(`, ${this.int(3)}`, 0.3)})`,
      () =>
        `${of()}.${this.one(['upper()', 'lower()', 'strip()', 'strip("H d")', 'lstrip()', 'rstrip()', 'capitalize()', 'swapcase()', 'title()', 'zfill(15)', 'center(14, "*")', 'ljust(14)', 'rjust(14, "-")', 'removeprefix("He")', 'removesuffix("d")', 'replace("l", "L", 1)', 'replace("", "-")', 'expandtabs(4)', 'casefold()'])}`,
      () => `${this.string()}.join(${this.expression('texts', depth - 1)})`,
      () =>
        `${this.inner(this.one(['numbers', 'texts'] as const), depth)} | join(${this.one(['', '", "', '"-"', 'd="+"'])})`,
      () =>
        `r | map(attribute="${this.one(['name', 'age', 'tags.0'])}"${this.maybe(', default="?"')}) | join("|")`,
      () =>
        `${this.expression('texts', 1)} | map(${this.one(['"upper"', '"length"', '"replace", "a", "b"', '"default", "x"'])}) | join(",")`,
      () =>
        `"${this.one(['%d', '%5d|', '%-5d|', '%05d', '%+d', '%x', '%#X', '%o', '%s', '%r', '%5s|', '%i%%', '%c'])}" % ${this.one(['n', 'm', 'z', '12', '65'])}`,
      () =>
        `"${this.one(['%f', '%.2f', '%8.3f|', '%e', '%.0f', '%g', '%.3g', '%G', '%+.1f', '%010.2f', '%s', '%r', '%d'])}" % ${this.inner('float', depth)}`,
      () => `"%s and %s" % (${this.any(1)}, ${this.any(1)})`,
      () => `"%(one)s-%(two)r" % d`,
      () => `"%s=%s" | format(${this.any(1)}, ${this.any(0)})`,
      () =>
        `"${this.one(['{}', '{0}{0}', '{:>9}', '{:<9}|', '{:^9}|', '{!r}', '{:*^9}', '{{{}}}', '{:.3}'])}".format(${this.one(['s', 'u', 'e', '"ab"'])})`,
      () =>
        `"${this.one(['{:d}', '{:5}', '{:05d}', '{:+}', '{:,}', '{:x}', '{:#o}', '{:<6}|', '{:_}', '{:b}', '{:e}', '{:.1f}', '{:%}'])}".format(${this.one(['n', 'm', '1234567', '0'])})`,
      () =>
        `"${this.one(['{:.2f}', '{:8.1f}', '{:g}', '{:e}', '{:,.2f}', '{:.0%}', '{}', '{:+.3f}', '{:<8.2f}|', '{:08.2f}'])}".format(${this.one(['x', 'y', '1234.5', '0.5', '1e20', '2.675'])})`,
      () => `"{a}/{b}".format(a=${this.any(0)}, b=${this.any(0)})`,
      () => `${this.inner('dict', depth)} | string`,
      () => `${this.inner('dicts', 1)} | length | string`,
      () => `${this.expression('numbers', 1)} | string`,
      () => `${of()} if ${this.expression('bool', depth - 1)}`,
      () => `d | dictsort | string`,
      () => `${this.inner('int', depth)} | filesizeformat${this.maybe('(true)', 0.4)}`,
      () => `r[${this.int(3)}].name`,
      () => `r | groupby("age") | map(attribute="grouper") | join(",")`,
      () =>
        `${this.one(['l', 'k'])} | ${this.one(['batch(2)', 'batch(2, "-")', 'slice(2)', 'slice(2, 0)'])} | list | string`,
      () => `${of()}.partition(${this.one(['","', '" "'])}) | string`,
      () => `${of()}.rsplit(${this.one(['","', '", "', ''])}${this.maybe('', 0)}) | string`,
      () =>
        `${of()}.${this.one(['rsplit(None, 1)', 'split(None, 1)', 'split(",", 1)', 'split("l", maxsplit=2)', 'rsplit("l", 1)', 'splitlines(true)', 'rpartition("l")', 'split()'])} | string`,
    ])();
  }

  private whole(depth: number): string {
    const of = (): string => this.inner('int', depth);
    return this.one([
      () => `${of()} ${this.one(['+', '-', '*', '//', '%'])} ${of()}`,
      () => `-${of()}`,
      () => `+${of()}`,
      () => `${this.int(5)} ** ${this.int(4)}`,
      () => `${of()} | abs`,
      () =>
        `${this.inner(this.one(['text', 'numbers', 'texts', 'dict'] as const), depth)} | ${this.one(['length', 'count'])}`,
      () =>
        `${this.inner('text', depth)} | ${this.one(['wordcount', 'int', 'int(5)', 'int(default=9)', 'int(0, 16)'])}`,
      () => `${this.inner('float', depth)} | int`,
      () => `${this.inner('int', depth)} | round`,
      () =>
        `${this.inner('text', depth)}.${this.one(['find("l")', 'rfind("l")', 'count("l")', 'find("")', 'find("o", 5)', 'count("")', 'rfind("a", 0, -1)', 'find("zz", 99)'])}`,
      () => `l | ${this.one(['sum', 'min', 'max', 'first', 'last', 'sum(start=10)'])}`,
      () => `r | sum(attribute="age")`,
      () => `l.${this.one(['count(1)', 'index(2)'])}`,
      () =>
        `"${this.one(['12', ' 7 ', '0x1f', '1_0', '3.9', 'x', '-5', '1e3', 'inf', ''])}" | int${this.maybe('(-1)')}`,
    ])();
  }

  private real(depth: number): string {
    const of = (): string => this.inner('float', depth);
    return this.one([
      () => `${of()} ${this.one(['+', '-', '*', '/', '//', '%'])} ${of()}`,
      () => `${this.inner('int', depth)} / ${this.one(['2', '4', '-8', '3'])}`,
      () => `${of()} | round(${this.one(['', '1', '2', '0, "floor"', '1, "ceil"', 'precision=3', '-1'])})`,
      () => `${this.inner('text', depth)} | float`,
      () => `"${this.one(['1.5', ' 2 ', '1e5', '.5', '5.', '1_0.1', 'x'])}" | float${this.maybe('(0.5)')}`,
      () => `${this.inner('int', depth)} | float`,
      () => `-${of()}`,
      () => `${of()} | abs`,
      () => `2 ** -${1 + this.int(3)}`,
      () => `[x, y, 0.5] | ${this.one(['sum', 'min', 'max'])}`,
    ])();
  }

  private truth(depth: number): string {
    const number = (): string => this.inner(this.one(['int', 'float'] as const), depth);
    return this.one([
      () => `${number()} ${this.one(['==', '!=', '<', '>', '<=', '>='])} ${number()}`,
      () => `${number()} < ${number()} <= ${number()}`,
      () =>
        `${this.inner('text', depth)} ${this.one(['==', '!=', '<', '>', 'in', 'not in'])} ${this.inner('text', depth)}`,
      () => `${this.inner('int', depth)} ${this.one(['in', 'not in'])} ${this.inner('numbers', depth)}`,
      () => `not ${this.inner('bool', depth)}`,
      () => `${this.inner('bool', depth)} ${this.one(['and', 'or'])} ${this.inner('bool', depth)}`,
      () =>
        `${this.inner('int', depth)} is ${this.maybe('not ', 0.3)}${this.one(['odd', 'even', 'divisibleby 3', 'divisibleby(2)', 'number', 'integer', 'float', 'eq 7', 'gt(1)', 'in [7, 0]', 'string', 'boolean'])}`,
      () =>
        `${this.inner('text', depth)} is ${this.maybe('not ', 0.3)}${this.one(['string', 'lower', 'upper', 'mapping', 'sequence', 'iterable', 'in "Hello, world"', 'none', 'eq "a"', 'callable'])}`,
      () =>
        `${this.one(['missing', 'd.missing', 'r[0].missing', 's', 'o', 'l[0]', 'd["one"]'])} is ${this.maybe('not ')}${this.one(['defined', 'undefined'])}`,
      () =>
        `${this.one(['o', 'd', 'l', 'p', 'x'])} is ${this.one(['none', 'mapping', 'sequence', 'iterable', 'true', 'false', 'number', 'sameas none', 'boolean'])}`,
      () =>
        `${this.inner('text', depth)}.${this.one(['startswith("He")', 'endswith("d")', 'startswith(("x", "H"))', 'isdigit()', 'isalpha()', 'isupper()', 'islower()', 'isspace()', 'isalnum()', 'isnumeric()'])}`,
      () => `"${this.one(['upper', 'nothing', 'e'])}" is ${this.one(['filter', 'test'])}`,
      () => `${this.inner('numbers', depth)} == ${this.inner('numbers', depth)}`,
      () => `"one" in d`,
    ])();
  }

  private list(kind: 'numbers' | 'texts', depth: number): string {
    const of = (): string => this.inner(kind, depth);
    return this.one([
      () => `${of()} | sort${this.one(['', '(reverse=true)', '(true)', '(case_sensitive=true)'])}`,
      () => `${of()} | unique${this.maybe('(case_sensitive=true)', 0.3)} | list`,
      () => `${of()} | reverse | list`,
      () => `${of()}[${this.int(3)}:]`,
      () => `${of()}[::-1]`,
      () => `${of()} | list`,
      () => `(${of()} | list) + (${of()} | list)`,
      () => `${of()} | select${this.one(['', '("string")', '("number")', '("in", l)'])} | list`,
      () => `${of()} | reject("${this.one(['string', 'none', 'undefined'])}") | list`,
      () =>
        kind === 'numbers'
          ? `${of()} | map("${this.one(['abs', 'int', 'float', 'round'])}") | list`
          : `${of()} | map("${this.one(['lower', 'trim', 'capitalize', 'first'])}") | list`,
      () => (kind === 'texts' ? 'd.keys() | list' : 'd.three * 2'),
      () =>
        kind === 'texts'
          ? `${this.inner('text', depth)}.split(${this.one(['', '","', '"l"', 'sep=" "'])})`
          : `range(${this.int(4)}, ${this.int(9)}, ${this.one([1, 2, 3, -1])}) | list`,
      () => (kind === 'texts' ? 'r | map(attribute="name") | list' : 'r | map(attribute="age") | list'),
      () =>
        `[${this.expression(kind === 'texts' ? 'text' : 'int', depth - 1)}, ${this.expression(kind === 'texts' ? 'text' : 'float', depth - 1)}]`,
    ])();
  }
}

const PIECES = [
  '{{',
  '}}',
  '{%',
  '%}',
  '{#',
  '#}',
  '{{-',
  '-}}',
  '{%-',
  '-%}',
  ' ',
  ' ',
  ' ',
  '\n',
  's',
  'n',
  'l',
  'd',
  'if',
  'else',
  'elif',
  'endif',
  'for',
  'in',
  'endfor',
  'set',
  'endset',
  'not',
  'and',
  'or',
  'is',
  'defined',
  '(',
  ')',
  '[',
  ']',
  '{',
  '}',
  ',',
  ':',
  '.',
  '|',
  '=',
  '==',
  '+',
  '-',
  '*',
  '**',
  '/',
  '//',
  '%',
  '~',
  '"a"',
  "'b'",
  '1',
  '2.5',
  'true',
  'none',
  'upper',
  'raw',
  'endraw',
  'with',
  'endwith',
  'filter',
  'endfilter',
  '\\',
  '!',
  '<',
  '>=',
  'loop',
  'range(2)',
  '1e3',
  'x',
  'text',
];

/** Tokens in no order: what is no template in Jinja2 is none here. */
export function soup(seed: number): string {
  const next = chance(seed);
  const pieces = Array.from(
    { length: 2 + Math.floor(next() * 9) },
    () => PIECES[Math.floor(next() * PIECES.length)],
  );
  const joined = pieces.join(next() < 0.5 ? ' ' : '');
  return next() < 0.6 ? `{{ ${joined} }}` : joined;
}
