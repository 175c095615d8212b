// Layers, key=value, unknown keys, aliases, origins: the way from -c to one checked configuration.
import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/config/loadConfig.ts';
import { merge, type Tree } from '../../src/config/merge.ts';
import { ConfigError } from '../../src/config/readConfig.ts';

const files = (map: Record<string, string>) => (path: string) => map[path] ?? null;
const load = (specs: string[], map: Record<string, string> = {}, overrides: Tree = {}) =>
  loadConfig({
    specs,
    overrides,
    readFile: files({ '/w/base.yaml': 'agent:\n  step_limit: 7\n', ...map }),
    cwd: '/w',
  });
const problems = (...args: Parameters<typeof load>): readonly string[] => {
  try {
    load(...args);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
};

describe('layers', () => {
  test('files, key=value and flags merge left to right; later wins [M-43, M-57, S-06]', () => {
    const { config } = load(
      ['base.yaml', 'agent.cost_limit=5', 'more.yaml', 'agent.step_limit=9'],
      { '/w/more.yaml': 'agent: {cost_limit: 1, step_limit: 8}\nmodel: {model_name: m}\n' },
      { agent: { cost_limit: 2 } },
    );
    expect(config.agent).toMatchObject({ step_limit: 9, cost_limit: 2 });
    expect(config.model.model_name).toBe('m');
  });
  test('a flag that was not given overrides nothing, 0 does [M-43, M-44]', () => {
    const flags = (cost: unknown): Tree => ({ agent: { cost_limit: cost, step_limit: undefined } });
    expect(load(['base.yaml', 'agent.cost_limit=4'], {}, flags(undefined)).config.agent.cost_limit).toBe(4);
    expect(load(['base.yaml', 'agent.cost_limit=4'], {}, flags(0)).config.agent.cost_limit).toBe(0);
    expect(load(['base.yaml'], {}, flags(0)).config.agent.step_limit).toBe(7);
  });
  test('where each value came from is kept', () => {
    const { origins } = load(['base.yaml', 'agent.cost_limit=5'], {}, { run: { workers: 3 } });
    expect(origins).toEqual({
      'agent.step_limit': '/w/base.yaml',
      'agent.cost_limit': '-c agent.cost_limit=5',
      'run.workers': 'command line',
    });
  });
  test('files carry a hash of what was read, "-" is standard input', () => {
    const loaded = load(['-'], { '-': 'run: {workers: 5}' });
    expect(loaded.config.run.workers).toBe(5);
    expect(loaded.files).toEqual([
      { path: 'standard input', sha256: expect.stringMatching(/^[0-9a-f]{64}$/) },
    ]);
  });
  test('a name with dots keeps them (mini-swe-agent turns my.config into my.yaml)', () => {
    expect(load(['my.config'], { '/w/my.config.yaml': 'run: {workers: 6}' }).config.run.workers).toBe(6);
  });
  test('inputs are not changed and __proto__ is only a key [M-43]', () => {
    const base = { a: { b: 1 } };
    expect(merge(base, JSON.parse('{"a":{"__proto__":{"x":1}}}'))).toEqual({
      a: { b: 1, ['__proto__']: { x: 1 } },
    });
    expect(base).toEqual({ a: { b: 1 } });
    expect(({} as { x?: number }).x).toBeUndefined();
  });
});

describe('key=value [M-40]', () => {
  test.each<[string, unknown]>([
    ['model.model_kwargs.a=text', { a: 'text' }],
    ['model.model_kwargs.a="quoted"', { a: 'quoted' }],
    ['model.model_kwargs.a.b.c.d.e=1', { a: { b: { c: { d: { e: 1 } } } } }],
    ['model.model_kwargs.a=-3', { a: -3 }],
    ['model.model_kwargs.a=0.5', { a: 0.5 }],
    ['model.model_kwargs.a=0', { a: 0 }],
    ['model.model_kwargs.a=true', { a: true }],
    ['model.model_kwargs.a=True', { a: 'True' }],
    ['model.model_kwargs.a=null', { a: null }],
    ['model.model_kwargs.a=[1,"x"]', { a: [1, 'x'] }],
    ['model.model_kwargs.a={"b":2}', { a: { b: 2 } }],
    ['model.model_kwargs.a=', { a: '' }],
    ['model.model_kwargs.a=b=c=d', { a: 'b=c=d' }],
  ])('%s', (spec, wanted) => {
    expect(load([spec]).config.model.model_kwargs).toEqual(wanted);
  });
  test.each(['=v', 'a..b=v', 'a.=v', '.a=v'])('%s is refused [M-40]', (spec) => {
    expect(problems([spec])[0]).toContain('expected key.path=value');
  });
});

describe('images', () => {
  test.each(['../../x', 'evil.example/../x', 'a b', 'http://x/y', '-x', 'a@b'])('%s is no name', (image) => {
    expect(problems([`environment.image="${image}"`])[0]).toMatch(
      /environment\.image: .* is not an image name/,
    );
  });
  test('a module of its own may name images as it likes', () => {
    expect(
      load(['environment.image="docker://a"', 'environment.environment_class=./a.ts']).config.environment
        .image,
    ).toBe('docker://a');
  });
});

describe('YAML', () => {
  test('merge keys and anchors work', () => {
    const yaml = 'agent: &a {step_limit: 3}\narms:\n  - name: x\n    agent: {<<: *a, cost_limit: 1}\n';
    expect(load(['f.yaml'], { '/w/f.yaml': yaml }).arms[0]?.agent).toMatchObject({
      step_limit: 3,
      cost_limit: 1,
    });
  });
  test('an empty file, and an empty section, are nothing', () => {
    expect(load(['f.yaml'], { '/w/f.yaml': '\n' }).config.agent.cost_limit).toBe(3);
    expect(load(['f.yaml'], { '/w/f.yaml': 'agent:\nmodel:\n' }).config.agent.cost_limit).toBe(3);
  });
});

describe('what is wrong is said, all at once', () => {
  test.each([
    ['agent.max_iterations=50', 'agent.max_iterations: there is no such key; did you mean agent.step_limit?'],
    [
      'environment.step_limit=1',
      'environment.step_limit: there is no such key; did you mean agent.step_limit?',
    ],
    ['modell.model_name=x', 'modell: there is no such key; did you mean model?'],
    [
      'model.retry.max_retrys=2',
      'model.retry.max_retrys: there is no such key; did you mean model.retry.max_retries?',
    ],
    ['agent.zzz=1', 'agent.zzz: there is no such key'],
  ])('%s', (spec, text) => {
    expect(problems([spec])).toEqual([text]);
  });
  test('several problems come together', () => {
    expect(problems(['agent.x1=1', 'run.workers=0', 'environment.forward_env=["KEY"]'])).toHaveLength(3);
  });
  test('a template that fails in one branch only is found', () => {
    expect(
      problems([
        'agent.observation_template={% if output.output | length > 9999 %}{{ output.nope }}{% endif %}',
      ]),
    ).toEqual(["agent.observation_template: 'dict object' has no attribute 'nope'"]);
  });
  test('fields of the row can be used once they are exposed', () => {
    expect(problems(['agent.instance_template={{ hints_text }}'])).toHaveLength(1);
    expect(
      load(['agent.instance_template={{ hints_text }}', 'agent.expose_fields=["hints_text"]']).config.agent
        .expose_fields,
    ).toEqual(['hints_text']);
  });
});

test('none is off for every limit', () => {
  const { config } = load([
    'agent.cost_limit=none',
    'agent.step_limit=none',
    'run.cost_limit=none',
    'environment.timeout=none',
  ]);
  expect([
    config.agent.cost_limit,
    config.agent.step_limit,
    config.run.cost_limit,
    config.environment.timeout,
  ]).toEqual([0, 0, 0, 0]);
  expect(load(['environment.network=none']).config.environment.network).toBe('none');
});

describe('arms', () => {
  const yaml = `
model: {base_url: http://x, model_name: base}
arms:
  - model: {model_name: org/a}
  - name: b
    model: {model_name: b}
    agent: {step_limit: 3}
`;
  test('each is the configuration with its own sections over it', () => {
    const { arms } = load(['f.yaml'], { '/w/f.yaml': yaml });
    expect(arms.map((a) => [a.name, a.model.model_name, a.model.base_url, a.agent.step_limit])).toEqual([
      ['org_a', 'org/a', 'http://x', 0],
      ['b', 'b', 'http://x', 3],
    ]);
  });
  test('a flag is over every arm, as it is over every file', () => {
    const named = `arms:\n  - {name: a, model: {model_name: a}}\n  - {name: b, model: {model_name: b}, environment: {pull: always}}\n`;
    const { arms } = loadConfig({
      specs: ['f.yaml'],
      overrides: { model: { model_name: 'replay:r1' }, environment: { pull: 'never' } },
      readFile: (path) => (path === '/w/f.yaml' ? named : null),
      cwd: '/w',
    });
    expect(arms.map((a) => [a.name, a.model.model_name, a.environment.pull])).toEqual([
      ['a', 'replay:r1', 'never'],
      ['b', 'replay:r1', 'never'],
    ]);
  });
  test('problems name the arm, two of one name are refused', () => {
    expect(
      problems(['f.yaml', 'arms=[{"agent":{"stp_limit":1}},{"name":"q"},{"name":"q"}]'], {
        '/w/f.yaml': yaml,
      }),
    ).toEqual([
      'arms[0]: agent.stp_limit: there is no such key; did you mean agent.step_limit?',
      'arms[2]: the name "q" is taken by another arm; give each its own name',
    ]);
  });
  test('without arms there is one', () => {
    expect(load(['model.model_name=x/y']).arms.map((a) => a.name)).toEqual(['x_y']);
  });
});

test('a start-up file of images is not run on this machine', () => {
  const env = ['environment.env.BASH_ENV=/root/.bashrc', 'environment.env.A="1"'];
  const local = load([...env, 'environment.environment_class=local']);
  expect(local.config.environment.env).toEqual({ A: '1' });
  expect(local.warnings.join()).toContain('environment.env.BASH_ENV');
  expect(load(env).config.environment.env).toHaveProperty('BASH_ENV');
  expect(load(['environment.env.BASH_ENV=/my/file', 'environment.environment_class=local']).warnings).toEqual(
    [],
  );
});

describe('limits that contradict each other', () => {
  test('a container that ends before the agent may is refused [T-25]', () => {
    const wall = 'agent.wall_time_limit_seconds=7201';
    expect(problems(['base.yaml', wall])).toEqual([
      'environment.container_timeout (2h) is shorter than agent.wall_time_limit_seconds (7201 s): raise it, or set it to 0 for no limit',
    ]);
    expect(problems(['base.yaml', wall, 'environment.container_timeout=3h'])).toEqual([]);
    expect(problems(['base.yaml', wall, 'environment.container_timeout=0'])).toEqual([]);
    expect(problems(['base.yaml', 'agent.wall_time_limit_seconds=7200'])).toEqual([]);
  });
  test('sizes and durations that cannot be read are named before anything starts', () => {
    expect(
      problems([
        'base.yaml',
        'environment.memory=4q',
        'environment.disk=x',
        'environment.container_timeout=2 weeks',
      ]),
    ).toEqual([
      expect.stringMatching(/^environment\.memory: "4q" is not a size/),
      expect.stringMatching(/^environment\.disk: "x" is not a size/),
      expect.stringMatching(/^environment\.container_timeout: "2 weeks" is not a duration/),
    ]);
  });
});
