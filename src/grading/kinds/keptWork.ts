/**
 * What is kept of an agent's work for its grading, as the record has it: the name of one image, or for a task of several steps a list of
 * them, with the verdict of each step that was verified while the attempt went on.
 */
import { z } from 'zod';

const keptStep = z.object({
  step: z.string(),
  /** null: the container ended in this step. */
  image: z.string().nullable(),
  verdict: z.unknown().optional(),
});
export type KeptStep = z.infer<typeof keptStep>;

const isList = (work: string): boolean => work.startsWith('[');

export const keptWork = (steps: readonly KeptStep[]): string => JSON.stringify(steps);

/** Throws where the record is not one of steps. */
export const keptSteps = (work: string): KeptStep[] => z.array(keptStep).parse(JSON.parse(work));

/** All images of a work that was kept. */
export const imagesOfWork = (work: string): readonly string[] =>
  isList(work) ? keptSteps(work).flatMap(({ image }) => image ?? []) : [work];
