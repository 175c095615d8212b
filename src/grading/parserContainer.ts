/**
 * Python of others that reads logs. Such code runs in a container of its own without network, never on this machine and never beside the judged
 * work.
 */

import { z } from 'zod';
import { OWN_HOST } from '../base/imageReference.ts';
import { keyed } from '../base/keyed.ts';
import { sha256 } from '../base/sha256.ts';
import { errorText } from '../base/text/errorText.ts';
import { EnvironmentError, isLoss, placeTexts } from '../environment/environment.ts';
import type { BuildRecipe } from '../environment/places/buildRecipes.ts';
import type { GradeRequest } from './gradingFrame.ts';

const FOLDER = '/swebatch-parser';
const PROGRAM = 'ask.py';
const ANSWER = 'answer.json';
const TIMEOUT_S = 300;
const BUILD_S = 3600;

/** The parser's answer, or why there is none, as a clause (observed: tests/suites/smith/smith.test.ts). */
export type ParserAnswer =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly outcome: 'invalid' | 'ungradable'; readonly message: string };

/** An image of ours that has such Python. The image is built when first needed, and the network is open in the build alone. */
export const parserImage = (...lines: readonly string[]): BuildRecipe & { readonly image: string } => {
  const content = Buffer.from(`${lines.join('\n')}\n`);
  return {
    image: `${OWN_HOST}/parser:${sha256(content).slice(0, 32)}`,
    files: () => [{ path: 'Dockerfile', content, executable: false }],
    timeoutS: BUILD_S,
  };
};

export type Asker = Pick<GradeRequest, 'factory' | 'owner' | 'signal'>;

interface Question {
  readonly instanceId: string;
  /** The first that has Python. */
  readonly images: readonly string[];
  /** Runs beside the files, and leaves `answer` for us. */
  readonly program: string;
  readonly files: Readonly<Record<string, string>>;
}

const programOf = (program: string): string => `import json
${program}
with open('${ANSWER}', 'w', encoding='utf-8') as out:
    json.dump(answer, out)
`;

/** Asks for the status of each test, in words of the asked program. */
export async function askStatuses(
  question: Question,
  request: Asker,
): Promise<ReadonlyMap<string, string> | Extract<ParserAnswer, { ok: false }>> {
  const answer = await askPython(question, request);
  if (!answer.ok) return answer;
  const statuses = keyed(z.string()).safeParse(answer.value);
  if (statuses.success) return new Map(Object.entries(statuses.data));
  return { ok: false, outcome: 'invalid', message: 'its log parser did not give a status for each test' };
}

/** Asks in a fresh container. */
export async function askPython(
  { instanceId, images, program, files }: Question,
  { factory, owner, signal }: Asker,
): Promise<ParserAnswer> {
  const lost = (outcome: 'invalid' | 'ungradable', why: string): ParserAnswer => ({
    ok: false,
    outcome,
    message: `its log parser ${why}`,
  });
  for (const image of images) {
    try {
      const start = { instanceId, image, owner, signal, container: { cwd: '/', network: 'none' } as const };
      const environment = await factory.start(start);
      try {
        const at = { cwd: '/', timeoutS: TIMEOUT_S, signal };
        if ((await environment.execute(`command -v python3 && mkdir -p ${FOLDER}`, at)).exitCode !== 0)
          continue;
        await placeTexts(environment, FOLDER, { ...files, [PROGRAM]: programOf(program) });
        const inside = { ...at, cwd: FOLDER };
        const ran = await environment.execute(`python3 ${PROGRAM}`, inside);
        if (ran.timedOut) return lost('invalid', `did not end within ${TIMEOUT_S} s`);
        if (ran.exitCode !== 0)
          return lost('invalid', `gave up: ${ran.output.trim().split('\n').at(-1)?.slice(0, 300) ?? ''}`);
        const { output } = await environment.execute(`cat ${ANSWER}`, inside);
        return { ok: true, value: JSON.parse(output) };
      } finally {
        await environment.close();
      }
    } catch (error) {
      if (error instanceof SyntaxError) return lost('invalid', 'answered too much to be read');
      const isGone = error instanceof EnvironmentError && !isLoss(error) && image === images.at(-1);
      if (!isGone) throw error;
      return lost(
        'ungradable',
        `is Python, and the image that has it is not on the engine: ${errorText(error)}`,
      );
    }
  }
  return lost('ungradable', 'is Python, and no image of it has one');
}
