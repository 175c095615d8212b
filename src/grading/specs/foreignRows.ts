/** Rows of published datasets that no suite reads or grades: what they are, and what they lack. By columns that only they have. */
import { isRecord } from '../../base/isRecord.ts';

type Columns = Readonly<Record<string, unknown>>;

const isText = (value: unknown): boolean => typeof value === 'string' && value !== '';

const JAVA_TEST = /^diff --git a\/\S+\.java b\//m;

const FOREIGN: readonly { readonly isRow: (columns: Columns) => boolean; readonly says: string }[] = [
  {
    isRow: ({ reference_commit, src_dir }) => isText(reference_commit) && src_dir !== undefined,
    says: 'Commit0 rows ask for a whole library: they have no problem_statement, patch or lists of tests, and their own harness scores them by the share of tests that pass',
  },
  {
    isRow: ({ question_id, variant, price }) => question_id != null && (variant != null || price != null),
    says: 'SWE-Lancer rows have no instance_id, base_commit or lists of tests: their tests drive a browser, in the images of their own harness',
  },
  {
    isRow: ({ golden_patch, original_prompt, relevant_file_contents }) =>
      golden_patch !== undefined && (original_prompt !== undefined || relevant_file_contents !== undefined),
    says: 'Nemotron-Cascade-RL-SWE rows are prompts with a golden_patch, without repository, base_commit and tests: the dataset that their source names has the tasks',
  },
  {
    isRow: ({ messages, trajectory, problem_statement }) =>
      (Array.isArray(messages) || Array.isArray(trajectory)) && problem_statement === undefined,
    says: 'its rows are trajectories (messages), without tasks',
  },
  {
    isRow: ({ F2P, test_command }) => F2P !== undefined && test_command !== undefined,
    says: 'SWE-PolyBench rows have F2P, P2P, a Dockerfile and a test_command, whose logs their own harness reads: bring image, eval_script, log_parser, FAIL_TO_PASS and PASS_TO_PASS',
  },
  {
    isRow: ({ image_assets }) => image_assets !== undefined,
    says: 'SWE-bench Multimodal rows of before SWE-bench 5 have no eval_script, and those of its test split no tests: SWE-bench/SWE-bench_Multimodal, or the repository of its tasks, has what is published of them',
  },
  {
    isRow: ({ meta, license, install_config }) => isRecord(meta) && isText(license) && install_config == null,
    says: 'SWE-bench-extra rows name no test command: SWE-rebench has them with an install_config',
  },
  {
    // https://huggingface.co/datasets/Daoguang/Multi-SWE-bench: the columns are those of SWE-bench.
    isRow: ({ test_patch }) => typeof test_patch === 'string' && JAVA_TEST.test(test_patch),
    says: 'rows of Java, as those of SWE-bench-java, name no test command and no log parser: Multi-SWE-bench has the repositories of SWE-bench-java with both',
  },
];

/** The reason why rows of a related dataset are of no use here, so that they do not look broken; undefined for any other rows. */
export const foreignRow = (columns: Columns): string | undefined =>
  FOREIGN.find(({ isRow }) => isRow(columns))?.says;
