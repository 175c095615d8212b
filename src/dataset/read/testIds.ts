/** FAIL_TO_PASS and PASS_TO_PASS in every form datasets store them: list, JSON text, Python literal text, map keyed by test. */

import { PythonLiteralError, parsePythonLiteral } from '../../base/python/literal.ts';
import { kindOf } from '../../base/text/errorText.ts';

export type TestIds = { ok: true; ids: string[] } | { ok: false; message: string };

function parseText(text: string): { value: unknown } | { message: string } {
  try {
    return { value: JSON.parse(text) };
  } catch {
    // not JSON: a Python literal, or nothing we know
  }
  try {
    return { value: parsePythonLiteral(text) };
  } catch (error) {
    if (!(error instanceof PythonLiteralError)) throw error;
    return { message: `is neither a JSON list nor a Python list (${error.message})` };
  }
}

/** `undefined` and `null` are an absent column, hence no ids. Order is kept: the official reports depend on it. */
export function parseTestIds(value: unknown): TestIds {
  if (value === undefined || value === null || value === '') return { ok: true, ids: [] };
  if (typeof value === 'string') {
    const parsed = parseText(value);
    if ('message' in parsed) return { ok: false, message: parsed.message };
    if (typeof parsed.value === 'string') return { ok: false, message: 'is one string, not a list of tests' };
    return parseTestIds(parsed.value);
  }
  if (Array.isArray(value)) {
    const odd = value.findIndex((id) => typeof id !== 'string');
    if (odd >= 0)
      return { ok: false, message: `has ${kindOf(value[odd])} at position ${odd + 1}, not a string` };
    return { ok: true, ids: value as string[] };
  }
  if (typeof value === 'object') return { ok: true, ids: Object.keys(value) };
  return { ok: false, message: `is ${kindOf(value)}, not a list of tests` };
}
