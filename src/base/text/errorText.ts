/** What was thrown, in words: a library may throw anything. */
export const errorText = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const OF_FILES: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'a part of its path is a file',
  EISDIR: 'it is a folder',
  EACCES: 'you may not read it',
};

/** Why a file could not be read. */
export const fileErrorText = (error: unknown): string =>
  OF_FILES[(error as NodeJS.ErrnoException).code ?? ''] ?? errorText(error);
