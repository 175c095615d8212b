/** Keeps the terminal free of the secrets of this process. */
import type { Redactor } from '../../base/text/redact.ts';
import { redactorOf } from '../../service/secrets.ts';

let ofTerminal: Redactor | undefined;

/** From now on the terminal is kept free of these too; before, of what the environment alone tells. */
export const keepFromTerminal = (redactor: Redactor): void => {
  ofTerminal = redactor;
};

export const forTerminal = (text: string): string => {
  ofTerminal ??= redactorOf(process.env);
  return ofTerminal.text(text);
};
