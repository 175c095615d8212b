// Every function that reads text of others. tests/foreignText.test.ts finds those that are missing here.
import { AGENT_READERS } from './agentReaders.ts';
import { BASE_READERS } from './baseReaders.ts';
import { FILE_READERS } from './fileReaders.ts';
import { GRADING_READERS } from './gradingReaders.ts';
import { MODEL_READERS } from './modelReaders.ts';
import type { Reader } from './reader.ts';
import { SHOWN_READERS } from './shownReaders.ts';
import { SUITE_READERS } from './suiteReaders.ts';

export const READERS: Readonly<Record<string, readonly Reader[]>> = {
  base: BASE_READERS,
  agent: AGENT_READERS,
  model: MODEL_READERS,
  grading: [...GRADING_READERS, ...SUITE_READERS],
  files: FILE_READERS,
  shown: SHOWN_READERS,
};
