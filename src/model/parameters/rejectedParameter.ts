/** The parameter that a provider's refusal of a request is about. Each maker says it in a form of its own, some in a sentence alone. */
import { recordOf } from '../../base/isRecord.ts';
import { words } from '../../base/text/words.ts';
import type { ProviderError } from '../dialects/dialect.ts';
import { LONGEST, shown } from './parameterRule.ts';

type Kwargs = Readonly<Record<string, unknown>>;

/** Fields that differ from call to call: their refusal says nothing about the next instance. */
const CONVERSATION =
  /^(messages|input|contents?|system|system_?instruction|instructions|prompt|request|body)(?![a-z_])/i;

/** A sentence is about its first lines; the rest of a long one repeats the request. */
const CHARACTERS = 1000;

/** `'x'`, "x", `x` or x, with a path: `thinking.enabled.budget_tokens`, `tools[0].type`. */
const NAME = '[\'"`]?([A-Za-z_][\\w.[\\]]{0,80})';

const SENTENCES: readonly RegExp[] = [
  new RegExp(
    `\\b(?:unsupported|unknown|unrecognized|missing required|invalid) (?:parameter|argument|field|option)s?:? ${NAME}`,
    'i',
  ),
  new RegExp(`\\bunrecognized request arguments? supplied: ${NAME}`, 'i'),
  new RegExp(`\\bunsupported value: ${NAME}`, 'i'),
  new RegExp(`\\binvalid (?:value|type|input) for ${NAME}`, 'i'),
  /\binvalid '([A-Za-z_][\w.[\]]{0,80})':/i,
  /\bunknown name "([\w.]{1,80})"/i,
  /\bdoes not support parameters: \['(\w{1,80})'/i,
  /\b(\w{1,80}) value of \S{1,40} but the supported range/,
  /^`([a-z][\w.]{0,80})`/,
  // `max_tokens (200000) must be less than or equal to 8192`, and with the name of the model in between.
  /^['"`]?([a-z]\w{0,80})['"`]? (?:\(\S{1,40}\) |for \S{1,80} )?(?:is not supported|is deprecated|is too large|must be|may only be|cannot be)\b/,
  /\binvalid ([a-z]\w{0,80}) value\b/i,
  /^invalid ([a-z]\w{0,80}): /i,
  new RegExp(`\\bdoes not support (?:the )?parameter:? ${NAME}`, 'i'),
  new RegExp(`\\bargument not supported on this model: ${NAME}`, 'i'),
  /\bvalidation error: `(\w{1,80})` must\b/i,
  /\bextraneous key \[(\w{1,80})\]/i,
];

/** Sentences without the name of a field. */
const SAID: readonly (readonly [RegExp, string])[] = [
  [/\binvalid schema for function\b/i, 'tools'],
  [
    /\b(?:auto|required)['"]? tool choice requires|does not support (?:tools|tool use|function calling)/i,
    'tools',
  ],
  [/\bthinking (?:budget|level|config|is not (?:enabled|supported))/i, 'thinkingConfig'],
];

/** `path: what is wrong`, as Anthropic begins its sentences and Google those about one field. */
const PATH = /^(?:\* )?(?:GenerateContentRequest\.)?([a-z][a-z0-9_]*(?:\.[a-z0-9_]+)*): /i;
const PATH_TYPES = new Set(['invalid_request_error', 'INVALID_ARGUMENT', 'ValidationException']);

function bySentence({ message, type, code }: ProviderError): string | null {
  const said = message.slice(0, CHARACTERS);
  const path = PATH_TYPES.has(type ?? '') || PATH_TYPES.has(code ?? '') ? PATH.exec(said)?.[1] : undefined;
  if (path !== undefined) return path;
  for (const sentence of SENTENCES) {
    const name = sentence.exec(said)?.[1];
    if (name !== undefined) return name;
  }
  return SAID.find(([sentence]) => sentence.test(said))?.[1] ?? null;
}

/** A short word like `stop` or `n` occurs in sentences about other things. */
const SHORTEST_NAME = 6;

/** A setting of the user's that the sentence names in passing. */
function bySetting(message: string, kwargs: Kwargs): string | null {
  const said = new Set(message.slice(0, CHARACTERS).match(/\w+/g));
  return Object.keys(kwargs).find((name) => name.length >= SHORTEST_NAME && said.has(name)) ?? null;
}

/** null where the refusal is of the conversation, or says nothing about a parameter. */
export function rejectedParameter(error: ProviderError, kwargs: Kwargs): string | null {
  const named = error.param ?? bySentence(error);
  if (named !== null) return CONVERSATION.test(named) ? null : named;
  return bySetting(error.message, kwargs);
}

const snake = (name: string): string => name.replaceAll(/([a-z])([A-Z])/g, '$1_$2').toLowerCase();

/** Names of one thing in different dialects. */
const SAME: readonly (readonly string[])[] = [
  LONGEST,
  ['stop', 'stop_sequences'],
  words(
    'reasoning_effort thinking reasoning thinking_config thinking_budget thinking_level budget_tokens output_config effort',
  ),
];

/** The key of `model_kwargs` that a provider's path speaks of; null where none of them is. */
function settingOf(path: string, kwargs: Kwargs): string | null {
  for (const part of path
    .split(/[.[\]]+/)
    .map(snake)
    .reverse()) {
    const names = SAME.find((group) => group.includes(part)) ?? [part];
    const found = names.find((name) => name in kwargs);
    if (found) return found;
  }
  return null;
}

const INSTEAD: readonly (readonly [RegExp, string])[] = [
  [
    /tool/i,
    'the endpoint takes no tool calls as they are sent: turn them on at the server, or set agent.protocol: bash-block with a prompt that asks for blocks',
  ],
  [/^stream/i, 'set model.stream: false'],
  [
    /max_?(output_|completion_)?tokens/i,
    'set model.model_kwargs.max_tokens to what the model writes at most',
  ],
  [/^(store|include|prompt_cache_key|reasoning)/, 'set model.dialect: chat'],
  [/cache_control/, 'set model.set_cache_control: null'],
];

/** The advice about a refused parameter. */
export function parameterFix(path: string, kwargs: Kwargs): string {
  const extra = recordOf(kwargs.extra_body);
  const own = path.split(/[.[\]]+/)[0] ?? path;
  if (own in extra)
    return `take model.model_kwargs.extra_body.${own} out, or set it to a value that it takes`;
  const setting = settingOf(path, kwargs);
  if (setting !== null)
    return `set model.model_kwargs.${setting} to a value that it takes, or leave it out (it is ${shown(kwargs[setting])})`;
  const instead = INSTEAD.find(([name]) => name.test(path))?.[1];
  return instead ?? `set model.model_kwargs.${path.split('.').at(-1)} to what it takes`;
}
