/** The exit code of a command in what a program said of it; null where it said none. */
import { isRecord } from '../isRecord.ts';

/** The exit code at the beginning of a message, as both versions of mini-swe-agent show it, and others as JSON. */
const SHOWN =
  /^\s{0,8}(?:Observation:\s{0,4})?(?:<returncode>|\{\s{0,4}"(?:returncode|exit_code|exitCode)"\s?:\s?)(-?\d{1,5})\s?[<,}]/;

/** `head`: the first characters of a message. */
export function shownExit(head: string): number | null {
  const code = SHOWN.exec(head)?.[1];
  return code === undefined ? null : Number(code);
}

/** returncode, return_code, exit_code, exitCode, exitStatus */
const NAMES = /^(?:return_?code|exit_?(?:code|status))$/i;
const DEEPEST = 3;
const MOST_READ = 1_048_576;

/** `answer`: all that the program tells its model of the command, as text or as JSON with the code beside the output or in an object of its own. */
export function exitCodeTold(answer: string): number | null {
  const shown = shownExit(answer);
  if (shown !== null || answer.length > MOST_READ || !/^\s{0,99}[[{]/.test(answer)) return shown;
  let level: unknown[];
  try {
    level = [JSON.parse(answer)];
  } catch {
    return null;
  }
  for (let depth = 0; depth < DEEPEST && level.length > 0; depth++) {
    const fields = level.filter(isRecord).flatMap((one) => Object.entries(one));
    const told = fields.find(([name, value]) => NAMES.test(name) && isCode(value));
    if (told) return Number(told[1]);
    level = [...fields.map(([, value]) => value), ...level.filter(Array.isArray).flat()];
  }
  return null;
}

const isCode = (value: unknown): boolean =>
  Number.isSafeInteger(value) || (typeof value === 'string' && /^-?\d{1,10}$/.test(value));
