/** What was thrown, in words: a library may throw anything. */
export const errorText = (error: unknown): string => (error instanceof Error ? error.message : String(error));
