/** Keeps the terminal free of the secrets of this process. */
import type { Redactor } from '../../base/text/redact.ts';
import { redactorOf } from '../../service/secrets.ts';

let ofTerminal: Redactor | undefined;

/** From now on these secrets are hidden too; before, only those that the environment holds. */
export const keepFromTerminal = (redactor: Redactor): void => {
  ofTerminal = redactor;
};

export const forTerminal = (text: string): string => {
  ofTerminal ??= redactorOf(process.env);
  return ofTerminal.text(text);
};
