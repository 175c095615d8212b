// Configurations of mini-swe-agent: the three published ones run unchanged under agent.compat, keys are mapped or refused by name.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/config/loadConfig.ts';
import { ConfigError } from '../../src/config/readConfig.ts';
import { readTextFile } from './readTextFile.ts';

const configs = join(import.meta.dirname, '..', '..', '..', 'shared', 'data', 'configs');
const load = (specs: string[], files: Record<string, string> = {}) =>
  loadConfig({ specs, readFile: (path) => files[path] ?? readTextFile(path), cwd: '/w' });
const problems = (yaml: string, ...specs: string[]): readonly string[] => {
  try {
    load(['/w/f.yaml', ...specs], { '/w/f.yaml': yaml });
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
};

describe.skipIf(!existsSync(configs))('the published files run unchanged (skipped without ../shared)', () => {
  const v1 = () =>
    load([join(configs, 'mini-swe-agent-1.17.5.swebench.yaml'), 'agent.compat=mini-swe-agent-1']);
  const v2 = () =>
    load([join(configs, 'mini-swe-agent-2.4.6.swebench.yaml'), 'agent.compat=mini-swe-agent-2']);
  const text = (...specs: string[]) =>
    load([
      join(configs, 'mini-swe-agent-2.4.6.swebench_backticks.yaml'),
      'agent.compat=mini-swe-agent-2',
      ...specs,
    ]);
  test('swebench.yaml of 1.17.5', () => {
    const { config } = v1();
    expect(config.agent).toMatchObject({ protocol: 'bash-block', step_limit: 250, cost_limit: 3 });
    expect(config.agent.observation_template).toContain('<returncode>{{output.returncode}}</returncode>');
    expect(config.environment).toMatchObject({ cwd: '/testbed', timeout: 60, interpreter: ['bash', '-lc'] });
    expect(config.model.model_kwargs).toEqual({ temperature: 0 });
  });
  test('swebench.yaml of 2.4.6', () => {
    const { config, warnings } = v2();
    expect(config.agent.protocol).toBe('tool-call');
    expect(config.agent.format_error_template).toContain('Tool call error:');
    expect(config.environment.interpreter).toEqual(['bash', '-c']);
    expect(config.environment.env).toHaveProperty('BASH_ENV', '/root/.bashrc');
    expect(config.model.model_kwargs).toEqual({ parallel_tool_calls: true });
    expect(warnings.map((w) => w.split(' ')[0])).toEqual(['model.model_kwargs', 'environment.network:']);
  });
  test('swebench_backticks.yaml of 2.4.6, as it is and with the class its runs named', () => {
    for (const { config } of [
      text(),
      text('model.model_class=litellm_textbased'),
      text('agent.protocol=bash-block'),
    ]) {
      expect(config.agent.protocol).toBe('bash-block');
      expect(config.agent.action_regex).toBe('```mswea_bash_command\\s*\\n([\\s\\S]*?)\\n```');
    }
    expect(text().warnings.join()).toContain('asks for mswea_bash_command blocks');
  });
  test('without compat their keys are understood too', () => {
    const { config } = load([join(configs, 'mini-swe-agent-2.4.6.swebench.yaml')]);
    expect(config.agent.observation_template).toContain('<returncode>');
  });
});

describe('the mark for the cache, which the published agents set by the name of the model', () => {
  const markOf = (...specs: string[]) =>
    load(['/w/f.yaml', ...specs], { '/w/f.yaml': 'model: {model_name: anthropic/claude-x}' }).config.model
      .set_cache_control;
  test('under compat', () => {
    expect(markOf('agent.compat=mini-swe-agent-1')).toBe('default_end');
    expect(markOf('agent.compat=mini-swe-agent-2')).toBe('default_end');
    expect(markOf('agent.compat=mini-swe-agent-2', 'model.model_name=x/Some-OPUS')).toBe('default_end');
  });
  test('not for another model, not against the file, not without compat', () => {
    expect(markOf('agent.compat=mini-swe-agent-2', 'model.model_name=openai/gpt-x')).toBeNull();
    expect(markOf('agent.compat=mini-swe-agent-2', 'model.set_cache_control=null')).toBeNull();
    expect(markOf()).toBeNull();
  });
});

describe.skipIf(!existsSync(configs))(
  'its files with -c and nothing else (skipped without ../shared)',
  () => {
    const V2 = '```mswea_bash_command\\s*\\n([\\s\\S]*?)\\n```';
    const OURS = '```bash\\s*\\n([\\s\\S]*?)\\n```';
    test.each([
      ['1.17.5.swebench', 'bash-block', OURS],
      ['2.4.6.default', 'bash-block', V2],
      ['2.4.6.mini', 'tool-call', null],
      ['2.4.6.mini_textbased', 'bash-block', V2],
      ['2.4.6.programbench', 'tool-call', null],
      ['2.4.6.swebench', 'tool-call', null],
      ['2.4.6.swebench_backticks', 'bash-block', V2],
      ['2.4.6.swebench_modal', 'tool-call', null],
      ['2.4.6.swebench_xml', 'bash-block', '<mswea_bash_command>(.*?)</mswea_bash_command>'],
    ])('%s runs as %s', (name, protocol, regex) => {
      const { agent } = loadConfig({
        specs: [join(configs, `mini-swe-agent-${name}.yaml`)],
        overrides: { model: { model_name: 'claude-opus-4-5' } },
        readFile: readTextFile,
        cwd: '/',
      }).config;
      expect(agent.protocol).toBe(protocol);
      if (regex !== null) expect(agent.action_regex).toBe(regex);
    });

    test('a prompt that asks for neither is asked about, and nothing starts', () => {
      const yaml =
        'agent: {instance_template: "{{task}}"}\nmodel: {observation_template: "{{output.output}}"}';
      expect(problems(yaml)).toEqual([
        expect.stringMatching(/^agent\.protocol: .*set agent\.compat=mini-swe-agent-2/),
      ]);
      expect(
        load(['/w/f.yaml', 'agent.protocol=tool-call'], { '/w/f.yaml': yaml }).config.agent.protocol,
      ).toBe('tool-call');
    });
  },
);

describe("litellm's parameters", () => {
  const kwargs = (text: string) => load([`model.model_kwargs=${text}`]);
  test('address, limits, retries and dialect are settings here', () => {
    const { config } = kwargs(
      '{"api_base":"http://h/v1","timeout":30,"num_retries":7,"custom_llm_provider":"anthropic","top_p":1}',
    );
    expect(config.model).toMatchObject({
      base_url: 'http://h/v1',
      total_timeout_s: 30,
      retry: { max_retries: 7 },
      dialect: 'messages',
      model_kwargs: { top_p: 1 },
    });
  });
  test('a key is kept out of the configuration, and a variable is named by its name', () => {
    const loaded = kwargs('{"api_key":"sk-of-mine-12345"}');
    expect(loaded.apiKey).toBe('sk-of-mine-12345');
    expect(JSON.stringify({ ...loaded, apiKey: null })).not.toContain('sk-of-mine');
    expect(loaded.config.model.api_key_env).toBe('CONFIGURED_API_KEY');
    const named = kwargs('{"api_key":"os.environ/MY_KEY"}');
    expect(named.apiKey).toBeUndefined();
    expect(named.config.model.api_key_env).toBe('MY_KEY');
  });
  test('a timeout that is no number is refused', () => {
    expect(problems('model: {model_kwargs: {timeout: soon}}')[0]).toMatch(/timeout: "soon" is not a number/);
  });
});

describe('the other configurations of that repository are refused by key [M-39, S-31]', () => {
  const v1 = 'agent.compat=mini-swe-agent-1';
  test.each([
    [
      'default.yaml (1)',
      'agent: {instance_template: "{{system}} {{release}}"}',
      v1,
      'agent.instance_template',
    ],
    [
      'swebench_roulette.yaml',
      'model: {model_class: minisweagent.models.extra.roulette.RouletteModel}',
      v1,
      'model.model_class',
    ],
    ['github_issue.yaml', 'environment: {image: "python:3.11"}', v1, 'environment.image'],
  ])('%s', (_name, yaml, compat, key) => {
    const found = problems(yaml, compat);
    expect(found.length).toBeGreaterThan(0);
    expect(found.every((p) => p.startsWith(key))).toBe(true);
  });
});

describe('keys', () => {
  test('templates and regex move from model to agent, per layer, so that a later layer wins', () => {
    const yaml =
      'model: {observation_template: "a {{ output.output }}", format_error_template: b, action_regex: "<x>(.*?)</x>"}';
    const { config } = load(['/w/f.yaml', 'agent.format_error_template=later'], { '/w/f.yaml': yaml });
    expect(config.agent).toMatchObject({
      observation_template: 'a {{ output.output }}',
      format_error_template: 'later',
      action_regex: '<x>(.*?)</x>',
    });
  });
  test('action_observation_template is version 1 for the same [S-04]', () => {
    expect(load(['agent.action_observation_template=x']).config.agent.observation_template).toBe('x');
  });
  test('run_args become keys', () => {
    const args = [
      '--rm',
      '--network=bridge',
      '-m',
      '8g',
      '--memory-swap',
      '8g',
      '--cpus',
      '4',
      '--pids-limit=99',
      '-u',
      'agent',
      '-e',
      'A=b=c',
      '--platform',
      'linux/amd64',
      '-w',
      '/src',
      '--init',
    ];
    const { config, warnings } = load([`environment.run_args=${JSON.stringify(args)}`]);
    expect(config.environment).toMatchObject({
      network: 'bridge',
      memory: '8g',
      cpus: 4,
      pids_limit: 99,
      user: 'agent',
      env: { A: 'b=c' },
      platform: 'linux/amd64',
      cwd: '/src',
    });
    expect(warnings.join()).toContain('swap is always the memory limit');
  });
  test('and those that would open the host are refused, each named', () => {
    expect(
      problems('environment: {run_args: ["--privileged", "-v", "/:/host", "--network", "none"]}'),
    ).toEqual([
      'environment.run_args (/w/f.yaml): --privileged, -v cannot be passed to the engine; there are keys for network, memory, cpus, pids_limit, user, platform, env and cwd',
    ]);
  });
  test('forward_env is refused with the reason, empty it is nothing [M-37]', () => {
    expect(problems('environment: {forward_env: [OPENAI_API_KEY]}')[0]).toMatch(
      /^environment\.forward_env .*no secret can get there/,
    );
    expect(problems('environment: {forward_env: []}')).toEqual([]);
  });
  test('executable: docker is what we use, another engine is refused', () => {
    expect(problems('environment: {executable: docker}')).toEqual([]);
    expect(problems('environment: {executable: podman}')[0]).toContain('only the Docker engine is supported');
  });
  test('the startup command moves to the environment and is parsed', () => {
    expect(load(['run.env_startup_command=pip install {{ repo }}']).config.environment.startup_command).toBe(
      'pip install {{ repo }}',
    );
    expect(problems('run: {env_startup_command: "{{ repo"}')[0]).toMatch(/^environment\.startup_command: /);
  });
  test('accepted with a warning, and gone', () => {
    const { config, warnings } = load([
      'agent.output_path=x.json',
      'model.model_kwargs={"drop_params":true,"top_p":1}',
    ]);
    expect(warnings).toHaveLength(2);
    expect(config.model.model_kwargs).toEqual({ top_p: 1 });
  });
  test.each(['deterministic'])('model class %s is refused', (name) =>
    expect(problems(`model: {model_class: ${name}}`)[0]).toMatch(/^model\.model_class /),
  );
  test.each([
    ['portkey', 'https://api.portkey.ai/v1', 'PORTKEY_API_KEY'],
    ['minisweagent.models.portkey_model.PortkeyModel', 'https://api.portkey.ai/v1', 'PORTKEY_API_KEY'],
    ['requesty', 'https://router.requesty.ai/v1', 'REQUESTY_API_KEY'],
    ['openrouter', 'https://openrouter.ai/api/v1', 'OPENROUTER_API_KEY'],
  ])('model class %s is its service', (name, base_url, api_key_env) => {
    const { config } = load([`model.model_class=${name}`]);
    expect(config).toMatchObject({
      agent: { protocol: 'tool-call' },
      model: { base_url, api_key_env },
    });
  });
  test('litellm classes choose the protocol', () => {
    expect(load(['model.model_class=litellm']).config.agent.protocol).toBe('tool-call');
    expect(
      load(['model.model_class=minisweagent.models.litellm_textbased_model.LitellmTextbasedModel']).config
        .agent.protocol,
    ).toBe('bash-block');
    expect(load(['model.model_class=litellm_response']).config).toMatchObject({
      agent: { protocol: 'tool-call' },
      model: { dialect: 'responses' },
    });
    expect(load(['model.model_class=./my/model.ts']).config.model.model_class).toBe('./my/model.ts');
  });
});

describe('a default of a class never beats a value that was given', () => {
  const regex = '<mswea_bash_command>(.*?)</mswea_bash_command>';
  const file = (text: string) => ({ '/w/f.yaml': text });
  const loaded = (text: string, ...specs: string[]) => load(['/w/f.yaml', ...specs], file(text)).config;

  test('the regular expression of swebench_xml.yaml stays with a text-based class on the command line', (context) => {
    const xml = join(configs, 'mini-swe-agent-2.4.6.swebench_xml.yaml');
    if (!existsSync(xml)) context.skip('../shared is not there');
    for (const specs of [[xml], ['model.model_class=litellm_textbased', xml]]) {
      const { config } = load([...specs, 'model.model_class=litellm_textbased']);
      expect(config.agent).toMatchObject({ protocol: 'bash-block', action_regex: regex });
    }
  });
  test.each(['litellm_textbased', 'openrouter_textbased', 'litellm', 'anthropic', 'portkey'])(
    'a regular expression before %s',
    (name) => {
      const { agent } = loaded('agent: {action_regex: "<a>(.*?)</a>"}', `model.model_class=${name}`);
      expect(agent).toMatchObject({ protocol: 'bash-block', action_regex: '<a>(.*?)</a>' });
    },
  );
  test('address, key, dialect and protocol', () => {
    const given = 'model: {base_url: "http://proxy/v1", api_key_env: MINE, dialect: messages}';
    for (const name of ['openrouter', 'portkey_response', 'requesty', 'litellm_response'])
      expect(loaded(given, `model.model_class=${name}`).model).toMatchObject({
        ...{ base_url: 'http://proxy/v1', api_key_env: 'MINE', dialect: 'messages' },
      });
    expect(loaded('agent: {protocol: bash-block}', 'model.model_class=litellm').agent.protocol).toBe(
      'bash-block',
    );
  });
  test('the dialect where a provider is not known', () => {
    const { model } = loaded(
      'model: {dialect: messages}',
      'model.model_kwargs={"custom_llm_provider": "mine"}',
    );
    expect(model.dialect).toBe('messages');
    expect(loaded('{}', 'model.model_kwargs={"custom_llm_provider": "mine"}').model.dialect).toBe('chat');
  });
  test('the class that is named last brings its own defaults alone', () => {
    const { model } = loaded('model: {model_class: openrouter}', 'model.model_class=litellm');
    expect(model.base_url).toBeUndefined();
  });
  test('in arms too', () => {
    const { arms } = load(
      ['/w/f.yaml'],
      file(`agent: {action_regex: "<a>(.*?)</a>"}
model: {base_url: "http://proxy/v1"}
arms:
  - {name: one, model: {model_class: openrouter_textbased}}
  - {name: two, model: {model_class: openrouter, base_url: "http://two/v1"}}
`),
    );
    expect(arms.map(({ agent, model }) => [agent.action_regex, model.base_url])).toEqual([
      ['<a>(.*?)</a>', 'http://proxy/v1'],
      ['<a>(.*?)</a>', 'http://two/v1'],
    ]);
  });
});

test('top-level keys that begin with x- are places for anchors, as numbers with underscores are numbers', () => {
  const { config } = load(['/w/f.yaml'], {
    '/w/f.yaml': 'x-limits: &limits {step_limit: 1_000}\nx-note: anything\nagent: *limits\n',
  });
  expect(config.agent.step_limit).toBe(1000);
  expect(load(['agent.step_limit=2_000']).config.agent.step_limit).toBe(2000);
});

describe('action_regex written for Python', () => {
  test.each([
    ['(?s)<a>(.*?)</a>', '<a>(.*?)</a>'],
    ['<a>(?P<cmd>.*?)</a>\\Z', '<a>(?<cmd>.*?)</a>(?![\\s\\S])'],
    ['\\A<a>(.*?)</a>', '(?<![\\s\\S])<a>(.*?)</a>'],
    ['\\\\Z(.*)', '\\\\Z(.*)'],
  ])('%s is translated', (python, js) => {
    expect(load([`agent.action_regex=${python}`]).config.agent.action_regex).toBe(js);
  });
  test.each([
    ['(?i)<a>(.*?)</a>', 'an inline flag other than (?s)'],
    ['(a)(?P=x)', 'a named back reference'],
    ['(a)(b)', '2 capture groups'],
    ['(?(1)a|b)', 'a conditional group'],
    ['(a', 'not a regular expression'],
    ['<a>(.*?)(?=</a>)', 'a look-ahead'],
    ['(a)\\1', 'a back reference'],
  ])('%s is refused: %s', (python, text) => {
    const [problem] = problems(`agent: {action_regex: ${JSON.stringify(python)}}`);
    expect(problem).toMatch(/^agent\.action_regex: /);
    expect(problem).toContain(text);
  });
});
