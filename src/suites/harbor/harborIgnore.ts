/** Files of `tests/` and `solution/`, of the task and of its steps, that `.harborignore` leaves out: patterns and their order are git's. */
import { posix } from 'node:path';
import { type LinearRegex, linearRegex } from '../../base/regex/linearRegex.ts';
import { type LeavesOut, TaskFolderError, taskFiles, taskText } from '../taskFiles.ts';

const IGNORE = '.harborignore';
const SCOPE = /^(?:steps\/[^/]+\/)?(?:tests|solution)$/;

interface Pattern {
  readonly leavesOut: boolean;
  readonly foldersAlone: boolean;
  /** The pattern of a path below the folder of the file. */
  readonly regex: LinearRegex;
}

/** One part of a pattern between two slashes. */
function partOf(glob: string): string {
  let source = '';
  for (let at = 0; at < glob.length; at++) {
    const char = glob[at]!;
    const close = char === '[' ? glob.indexOf(']', at + 2) : -1;
    if (char === '*') source += '[^/]*';
    else if (char === '?') source += '[^/]';
    else if (close > 0) {
      const set = glob
        .slice(at + 1, close)
        .replace(/^[!^]/, '^')
        .replaceAll('\\', '\\\\')
        .replaceAll('[', '\\[');
      source += `[${set}]`;
      at = close;
    } else {
      if (char === '\\' && at + 1 < glob.length) at += 1;
      source += glob[at]!.replace(/[.+^${}()|[\]\\*?]/, '\\$&');
    }
  }
  return source;
}

function regexOf(pattern: string): LinearRegex {
  const parts = pattern.split('/');
  const anchored = parts.length > 1;
  if (parts[0] === '') parts.shift();
  let source = anchored ? '^' : '^(?:.*/)?';
  for (const [index, part] of parts.entries()) {
    const isLast = index === parts.length - 1;
    if (part !== '**') source += `${partOf(part)}${isLast ? '' : '/'}`;
    else source += isLast ? '.+' : '(?:.*/)?';
  }
  return linearRegex(`${source}$`, 's');
}

/** The line without blanks at its end; a blank behind a backslash stays. */
function withoutBlanks(line: string): string {
  let end = line.length;
  while (end > 0 && line[end - 1] === ' ' && line[end - 2] !== '\\') end -= 1;
  return line.slice(0, end);
}

function patternsOf(text: string, shown: string): Pattern[] {
  return text.split(/\r?\n/).flatMap((written, index) => {
    const line = withoutBlanks(written);
    if (line === '' || line.startsWith('#')) return [];
    const leavesOut = !line.startsWith('!');
    const glob = leavesOut ? line : line.slice(1);
    const foldersAlone = glob.endsWith('/');
    const pattern = foldersAlone ? glob.slice(0, -1) : glob;
    if (pattern === '') return [];
    try {
      return [{ leavesOut, foldersAlone, regex: regexOf(pattern) }];
    } catch {
      throw new TaskFolderError(`line ${index + 1} of ${shown} is no pattern of git: ${line.slice(0, 80)}`);
    }
  });
}

/** Asked for a folder before what is below it. */
function leftOutOf(task: string): LeavesOut {
  const files = new Map<string, readonly Pattern[]>();
  const patternsIn = (folder: string): readonly Pattern[] => {
    const name = `${folder}/${IGNORE}`;
    const known = files.get(folder) ?? patternsOf(taskText(task, name) ?? '', name);
    files.set(folder, known);
    return known;
  };
  const isOut = (path: string, isFolder: boolean): boolean => {
    const folders: string[] = [];
    for (let above = posix.dirname(path); above !== '.'; above = posix.dirname(above)) folders.unshift(above);
    const scope = folders.findIndex((folder) => SCOPE.test(folder));
    if (scope < 0) return false;
    let out = false;
    for (const folder of folders.slice(scope))
      for (const { leavesOut, foldersAlone, regex } of patternsIn(folder))
        if ((isFolder || !foldersAlone) && regex.matchesAtStart(path.slice(folder.length + 1)))
          out = leavesOut;
    return out;
  };
  return (path, isFolder) => {
    if (posix.basename(path) === IGNORE) return true;
    const parts = path.split('/');
    return parts.some((_, index) => {
      const isLast = index === parts.length - 1;
      return isOut(parts.slice(0, index + 1).join('/'), isFolder || !isLast);
    });
  };
}

/** The files as Harbor takes them. A folder that an image is built from goes there as it is. */
export function harborFiles(task: string, folder: string): ReturnType<typeof taskFiles> {
  const isBuilt = taskText(task, `${folder}/Dockerfile`) !== undefined;
  return taskFiles(task, folder, isBuilt ? undefined : leftOutOf(task));
}
