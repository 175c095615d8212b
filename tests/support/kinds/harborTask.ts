// Makes Harbor task folders for tests.
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const TOML = `schema_version = "1.3"
[task]
name = "made/task"
[environment]
docker_image = "debian:12"
`;

/** Files by path below the task; a path with null is left out. Returns the folder. */
export function harborTask(
  root: string,
  id: string,
  files: Readonly<Record<string, string | null>> = {},
): string {
  const folder = join(root, id);
  const all = {
    'task.toml': TOML,
    'instruction.md': 'Write "hello" to hello.txt.\n',
    'tests/test.sh': '#!/bin/bash\necho 1 > /logs/verifier/reward.txt\n',
    'solution/solve.sh': '#!/bin/bash\necho hello > hello.txt\n',
    ...files,
  };
  for (const [path, text] of Object.entries(all)) {
    if (text === null) continue;
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text, { mode: path.endsWith('.sh') ? 0o755 : 0o644 });
  }
  return folder;
}
