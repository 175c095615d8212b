/** What R2E-Gym does in a container of its images before an agent works there, or tests run: the same links, the same clean-up. */

export const R2E_PATH =
  '/root/.venv/bin:/root/.local/bin:/root/.cargo/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Images of its first releases also held these in the work tree. */
const NOT_FOR_AGENTS = [
  'run_tests.sh',
  'syn_issue.json',
  'expected_test_output.json',
  'execution_result.json',
  'parsed_commit.json',
  'modified_files.json',
  'modified_entities.json',
  'r2e_tests',
];

const LINKS = [
  'cd /testbed || exit 1',
  'ln -s /testbed/.venv /root/.venv',
  'ln -s /testbed/.venv/bin/python /root/.local/bin/python',
  'ln -s /testbed/.venv/bin/python /root/.local/bin/python3',
  'find /testbed/.venv/bin -type f -executable -exec ln -sf {} /root/.local/bin/ \\;',
  'timeout 120 uv pip install chardet',
  "find . -name '*.pyc' -delete",
  "find . -name '__pycache__' -exec rm -rf {} +",
];

const MOVES = [
  "find /r2e_tests -name '*.pyc' -delete",
  "find /r2e_tests -name '__pycache__' -exec rm -rf {} +",
  'mv /testbed/run_tests.sh /root/run_tests.sh',
  'mv /testbed/r2e_tests /root/r2e_tests',
  'mv /r2e_tests /root/r2e_tests',
  'ln -s /root/r2e_tests /testbed/r2e_tests',
];

/** The suite only moves the tests to /root, where an agent could read them. Here its container loses them: they run in another one. */
const HIDES = [`rm -rf /r2e_tests ${NOT_FOR_AGENTS.map((name) => `/testbed/${name}`).join(' ')}`];

/** As in the suite, nothing of it has to succeed: images differ in what they have. */
export const r2eSetup = (tests: 'hide' | 'run'): string =>
  [
    LINKS[0],
    ...[...LINKS.slice(1), ...(tests === 'hide' ? [] : MOVES)].map(
      (command) => `${command} >/dev/null 2>&1 || true`,
    ),
    ...(tests === 'hide' ? HIDES : []),
  ].join('\n');
