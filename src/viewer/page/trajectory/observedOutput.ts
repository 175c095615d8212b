/** The output inside of an observation of mini-swe-agent, without what is wrapped around it. */

const BEGINS = '<output>';
const ENDS = '</output>';
/** What may stand before it: the exit code. */
const HEAD = 60;

/** undefined where the observation has another form. */
export function outputIn(content: string): string | undefined {
  const start = content.indexOf(BEGINS);
  if (!content.startsWith('<returncode>') || start < 0 || start > HEAD) return undefined;
  const end = content.lastIndexOf(ENDS);
  if (end < start || content.slice(end + ENDS.length).trim() !== '') return undefined;
  return content
    .slice(start + BEGINS.length, end)
    .replace(/^\r?\n/, '')
    .trimEnd();
}
