/** Every dialect that programs can speak: whoever imports this loads all. */
import { DIALECT_NAMES, DIALECTS, type DialectName } from '../../model/dialects/dialects.ts';
import type { ProgramSide } from '../../model/dialects/programSide.ts';

/** In the order of the table; errors of no dialect are said in the words of the first. */
export const SIDES: ReadonlyMap<DialectName, ProgramSide> = new Map(
  await Promise.all(
    DIALECT_NAMES.filter((name) => 'program' in DIALECTS[name]).map(
      async (name) => [name, await DIALECTS[name].program()] as const,
    ),
  ),
);

export const sideOf = (dialect: DialectName): ProgramSide => SIDES.get(dialect)!;
