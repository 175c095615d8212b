/** Predictions as files: `preds.json` of mini-swe-agent, and lines as the leaderboard takes them. */
import { asciiJson } from '../../base/python/jsonDump.ts';
import type { Prediction } from './readPredictions.ts';

/** mini-swe-agent's form: an object by instance id. */
export const predsJson = (predictions: readonly Prediction[]): string =>
  `${asciiJson(Object.fromEntries(predictions.map((p) => [p.instance_id, p])))}\n`;

/** One object a line and no blank line, on which the official reader fails. */
export const predsJsonl = (predictions: readonly Prediction[]): string =>
  predictions.map((p) => `${asciiJson(p, 0)}\n`).join('');
