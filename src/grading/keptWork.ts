/**
 * What is kept of an agent's work for its grading, as the record has it: the name of one image, or a JSON list of objects, each with the name
 * of an image or null. What else they hold is the suite's.
 */
import { z } from 'zod';

const listed = z.array(z.object({ image: z.string().nullable() }));

/** All images of a work that was kept. Throws where the record cannot be read. */
export const imagesOfWork = (work: string): readonly string[] =>
  work.startsWith('[') ? listed.parse(JSON.parse(work)).flatMap(({ image }) => image ?? []) : [work];
