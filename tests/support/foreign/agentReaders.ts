// What a model wrote and what a command printed, on their way through the agent.

import { type AgentConfig, agentConfigSchema } from '../../../src/agent/agentConfig.ts';
import { behaviourOf, exceptionType } from '../../../src/agent/compat/behaviour.ts';
import { AmbiguousJson, holdsTooMuch, spansOf } from '../../../src/agent/gateway/policy.ts';
import { acpSummary } from '../../../src/agent/installed/acpAgent.ts';
import { truncate } from '../../../src/agent/loop/degrade.ts';
import {
  actionPattern,
  bashBlock,
  sendableArguments,
  textResult,
  toolCall,
} from '../../../src/agent/loop/protocol.ts';
import { markerPrefix, SUBMIT_MARKERS, submissionOf } from '../../../src/agent/loop/submission.ts';
import { templatesOf } from '../../../src/agent/loop/templates.ts';
import {
  invertValue,
  observationInverter,
  timeoutInverter,
} from '../../../src/agent/replay/playTrajectory.ts';
import { PythonError } from '../../../src/base/python/values.ts';
import { createDemux } from '../../../src/environment/docker/startProcess.ts';
import {
  createFenceFinder,
  createFrameReader,
  fenceOf,
  parseEnd,
} from '../../../src/environment/exec/endReport.ts';
import { createCollector } from '../../../src/environment/exec/outputCollector.ts';
import { quotePath, writePatch } from '../../../src/environment/patch/gitPatch.ts';
import { classifyPullMessage } from '../../../src/environment/places/pullFailure.ts';
import { SUSPICION_RULES, scanCommand } from '../../../src/grading/suspicion/commands.ts';
import { objectOfText } from '../../../src/model/dialects/programSide.ts';
import type { ModelReply } from '../../../src/model/model.ts';
import { applyFilter, FILTERS, TESTS } from '../../../src/template/filters.ts';
import { METHOD_NAMES, methodOf, wrongCall } from '../../../src/template/methods.ts';
import { TemplateError } from '../../../src/template/parse.ts';
import { checkTemplate, render } from '../../../src/template/render.ts';
import { jsonValue, type Reader, readersOf } from './reader.ts';

const FENCE_WORDS = [
  '```bash\n\n',
  '```bash\n\n\n',
  '```bash\nls\n',
  '\n```',
  '\n```\n',
  '```mswea_bash_command\n',
];
const EMPTY_REPLY: ModelReply = {
  message: { role: 'assistant', content: null },
  content: '',
  toolCalls: [],
  finishReason: null,
  modelId: null,
  usage: null,
  costNano: 0,
  raw: null,
};
const replyOf = (content: string) => ({ ...EMPTY_REPLY, content });
const callOf = (text: string) => ({
  ...EMPTY_REPLY,
  toolCalls: [{ id: 'a', type: 'function' as const, function: { name: 'bash', arguments: text } }],
});

const COMPATS = [undefined, 'mini-swe-agent-1', 'mini-swe-agent-2'] as const satisfies readonly (
  | AgentConfig['compat']
  | undefined
)[];
const configOf = (compat: (typeof COMPATS)[number], protocol: AgentConfig['protocol']) =>
  agentConfigSchema.parse({ ...(compat && { compat }), protocol });
const VARS = { cwd: '/', timeout: 60, env: {}, interpreter: ['bash', '-c'] };

/** Each published way, and ours, by the two protocols. */
const dialectReads = (): Record<string, (text: string) => unknown> =>
  Object.fromEntries(
    COMPATS.flatMap((compat) =>
      (['bash-block', 'tool-call'] as const).map((kind) => {
        const config = configOf(compat, kind);
        const dialect = behaviourOf(config.compat);
        const protocol = dialect.protocol(config, VARS);
        const templates = templatesOf(config);
        const read = (text: string) => {
          const reply = kind === 'bash-block' ? replyOf(text) : callOf(text);
          const turn = protocol.parse(reply);
          dialect.history(reply, protocol);
          dialect.formatErrorVars(reply, turn.error ?? '', turn.found, protocol);
          const result = { ...textResult(text), raw: Buffer.from(text) };
          const output = dialect.outputText(result);
          dialect.submission(result);
          const observed = dialect.observed({ result, output, exceptionInfo: '', command: 'ls' });
          return render(templates.observation, { ...VARS, output: observed });
        };
        return [`agent ${compat ?? 'ours'}, ${kind}`, read];
      }),
    ),
  );

const TEMPLATE = '<o>\n{{ output.output }}</o>{{ output.returncode }}';
const invert = observationInverter(TEMPLATE, {});
const invertTimeout = timeoutInverter('{{ action.action }}\n{{ output }}', {});

type Push = (chunk: Buffer) => unknown;

/** As the bytes come from an engine, which sends them in parts; `end` is what is asked for when all are there. */
function throughStream(create: () => { push: Push; end?: () => unknown }): (text: string) => unknown {
  return (text) => {
    const bytes = Buffer.from(text);
    const { push, end } = create();
    for (let at = 0; at < bytes.length; at += 65_536) push(bytes.subarray(at, at + 65_536));
    return end?.();
  };
}

const STREAMS = {
  'stream of frames': throughStream(() => ({ push: createFrameReader(parseEnd) })),
  'stream with a fence': throughStream(() => ({
    push: createFenceFinder(fenceOf('0123456789abcdef'), () => undefined),
  })),
  'stream of output': throughStream(() => {
    const collector = createCollector(1024 * 1024);
    return { push: collector.push, end: collector.finish };
  }),
  'streams of an engine in one': throughStream(() => ({ push: createDemux(() => undefined) })),
};

/** As many of these arguments as the method takes. */
const mostOf = (name: string, args: readonly string[]): readonly string[] =>
  [2, 1, 0].filter((n) => wrongCall(name, n, []) === null).map((n) => args.slice(0, n))[0] ?? [];

/** Filters, tests and methods as templates call them on a hostile value; what is refused is refused with TemplateError. */
const templateReads = (): Record<string, (text: string) => unknown> => ({
  ...Object.fromEntries(
    Object.keys(FILTERS).map((name) => [`filter ${name}`, (v: string) => applyFilter(name, v, [], {})]),
  ),
  ...Object.fromEntries(
    Object.keys(TESTS).map((name) => [`test ${name}`, (v: string) => TESTS[name]!(v, [v])]),
  ),
  ...Object.fromEntries(
    [...METHOD_NAMES].map((name) => [
      `method ${name}`,
      (v: string) => methodOf(v, name)?.(name === 'join' ? [[v, v]] : mostOf(name, ['a', 'b']), {}),
    ]),
  ),
});

export const AGENT_READERS: readonly Reader[] = [
  ...readersOf(
    {
      acpSummary: (text) => [acpSummary(text), acpSummary(`{"acp":${text}`)],
      holdsTooMuch: (text) => holdsTooMuch(Buffer.from(text)),
      // The gateway asks for spans only of what JSON.parse has read.
      spansOf: (text) => {
        const bytes = Buffer.from(JSON.stringify({ model: 'm', input: jsonValue(text) }));
        return spansOf(bytes);
      },
      'spansOf of a body': (text) => {
        JSON.parse(text);
        return spansOf(Buffer.from(text));
      },
      objectOfText,
    },
    { words: ['{"', '":', '[[', '\\"', '{"a":1,"a":2}'], refuses: [AmbiguousJson, SyntaxError] },
  ),
  ...readersOf(
    {
      'actionPattern, published': actionPattern('```bash\\s*\\n([\\s\\S]*?)\\n```'),
      'actionPattern, own': actionPattern(
        '<run>(.*?)</run>|```\\w*\\s*\\n(.*?)\\n```'.replace('(.*?)\\n', '.*?\\n'),
      ),
      bashBlock: (text) => bashBlock('```bash\\s*\\n([\\s\\S]*?)\\n```').parse(replyOf(text)),
      toolCall: (text) => toolCall(1_000_000).parse(callOf(text)),
      'toolCall of a command': (text) =>
        toolCall(10_000_000).parse(callOf(JSON.stringify({ command: jsonValue(text) }))),
      sendableArguments: (text) => sendableArguments(text, 1_000_000),
      truncate: (text) => truncate(text, 10_000),
      ...dialectReads(),
    },
    { words: [...FENCE_WORDS, '<run>', '{"command": "'] },
  ),
  ...readersOf(
    {
      markerPrefix,
      submissionOf: (text) => submissionOf({ raw: Buffer.from(text), exitCode: 0, timedOut: false }),
    },
    { words: [...SUBMIT_MARKERS, `${SUBMIT_MARKERS[0]}\n`, `\n${SUBMIT_MARKERS[0]}`] },
  ),
  ...readersOf(
    {
      exceptionType,
      invertValue: (text) => invertValue('<{{ task }}>', text, (task) => ({ task })),
      observationInverter: (text) => invert(`<o>\n${text}</o>0`, 'ls'),
      'observationInverter of any text': (text) => invert(text, text),
      timeoutInverter: (text) => invertTimeout(text, 'ls'),
    },
    { words: ['<o>\n', '</o>1', ' timed out after ', '[Errno '] },
  ),
  ...readersOf(
    {
      ...STREAMS,
      parseEnd,
      classifyPullMessage,
      quotePath: (text) => quotePath('a/', text.slice(0, 4096)),
      writePatch: (text) => {
        const version = (body: string) => ({ mode: '100644', content: Buffer.from(body) });
        return writePatch([{ path: 'a', before: version(text), after: version(`b\n${text}c`) }]);
      },
    },
    {
      words: ['\x1e0', '\x1e0 0 0 0\x1e', '\x1e\x1e', '\x1e0123456789abcde', '\x01\0\0\0\0\0\0\0', 'access '],
    },
  ),
  ...SUSPICION_RULES.flatMap((rule, i) =>
    readersOf(
      { [`suspicion rule ${rule.rule} (${i + 1})`]: (text) => scanCommand(text, text, [rule]) },
      {
        words: [
          'mv a',
          'sed -i s/a/',
          'git ',
          'git -C ',
          'git -c a ',
          'git log ',
          '> ',
          '>>',
          'tee ',
          'rm -a ',
          'cp ',
          'pip install ',
          ' -e',
          'python -m ',
          'curl ',
          'urlopen(',
          'cat /site-packages/a',
          'tests/',
          '-i ',
        ],
      },
    ),
  ),
  ...readersOf(templateReads(), {
    words: ['<a', 'a b', '{{ a }}'],
    refuses: [TemplateError, PythonError, TypeError],
  }),
  ...readersOf(
    {
      'template with a hostile value': (text) => render('{{ a }}{{ a|length }}{{ a[:10] }}', { a: text }),
      'template of a person': (text) => checkTemplate(text, ['a']),
    },
    {
      words: ['{{ a', '{% if ', '{% for a in b %}', '{#', '-%}', 'a.b', 'a|b', '(a'],
      refuses: [TemplateError],
    },
  ),
];
