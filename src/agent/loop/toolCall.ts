/**
 * Reads one call of the bash tool, telling the model precisely what is wrong with one that cannot run (T-14), and makes the history
 * that goes back valid for strict providers: unique ids, arguments that are JSON, nothing huge sent again.
 */
import { isRecord } from '../../base/isRecord.ts';
import type { ToolCall } from '../../model/model.ts';
import type { Call } from '../action.ts';

export function readToolCall(call: ToolCall, maxCommandBytes: number): Call {
  const refuse = (error: string): Call => ({ callId: call.id, error });
  const { name, arguments: text } = call.function;
  if (name !== 'bash') return refuse(`Unknown tool '${name}'. The only tool is bash.`);
  let args: unknown;
  try {
    args = JSON.parse(text);
  } catch (error) {
    return refuse(`Error parsing tool call arguments: ${(error as Error).message}.`);
  }
  if (!isRecord(args)) return refuse("The arguments must be a JSON object with the field 'command'.");
  const { command } = args;
  if (command === undefined) return refuse("Missing 'command' argument in bash tool call.");
  if (typeof command !== 'string')
    return refuse(`The 'command' argument must be a string, not ${kindOf(command)}.`);
  if (command.includes('\0'))
    return refuse("The 'command' argument contains a NUL byte, which no shell accepts.");
  const bytes = Buffer.byteLength(command);
  if (bytes > maxCommandBytes)
    return refuse(`command is ${megabytes(bytes)}; limit ${megabytes(maxCommandBytes)}.`);
  return { command, callId: call.id };
}

const kindOf = (value: unknown): string =>
  value === null ? 'null' : Array.isArray(value) ? 'an array' : `a ${typeof value}`;
const megabytes = (bytes: number): string => {
  const mb = bytes / (1024 * 1024);
  return `${Number.isInteger(mb) ? mb : mb.toFixed(1)} MB`;
};

/** Some servers send no id or the same one twice; every call needs its own to be answered. */
export function withUniqueIds(calls: readonly ToolCall[], step: number): ToolCall[] {
  const seen = new Set<string>();
  return calls.map((call, i) => {
    const id = call.id && !seen.has(call.id) ? call.id : `call_${step}_${i}`;
    seen.add(id);
    return id === call.id ? call : { ...call, id };
  });
}

/** Arguments that the history can carry: the model sees what it wrote, inside JSON, and 10 MB are not sent again with every request. */
export function sendableArguments(text: string, maxBytes: number): string {
  const tooLong = Buffer.byteLength(text) > maxBytes;
  if (!tooLong && isJsonObject(text)) return text;
  const shown = tooLong ? `${text.slice(0, 2000)}… ${text.length - 2000} characters omitted` : text;
  return JSON.stringify({ invalid_arguments: shown });
}
function isJsonObject(text: string): boolean {
  try {
    return isRecord(JSON.parse(text));
  } catch {
    return false;
  }
}
