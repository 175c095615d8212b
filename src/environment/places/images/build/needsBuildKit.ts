/** Whether a Dockerfile asks for what only BuildKit does. The classic builder keeps a build within a limit of memory, so it has all others. */

const INSTRUCTIONS: ReadonlySet<string> = new Set(['RUN', 'COPY', 'ADD']);
const FLAG = /^--(?:mount|network|security|link|chmod|parents|exclude|checksum|keep-git-dir)\b/;
/** The text of a command in the file itself: RUN <<EOF. */
const HERE = /<<-?["']?[A-Za-z_]/;

function asks(line: string): boolean {
  const [instruction, ...words] = line.trim().split(/\s+/);
  if (!INSTRUCTIONS.has(instruction!.toUpperCase())) return false;
  // Flags stand before everything else.
  const end = words.findIndex((word) => !word.startsWith('--'));
  const flags = end === -1 ? words : words.slice(0, end);
  return HERE.test(line) || flags.some((word) => FLAG.test(word));
}

export const needsBuildKit = (text: string): boolean => text.split('\n').some(asks);
