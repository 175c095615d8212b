export interface Import {
  file: string;
  target: string;
  /** Loaded when it is first needed, as a table loads what is registered in it. */
  late?: boolean;
}

/** The imports of a file, read from its text: static, late, of a type alone, and addresses beside the file. */
export function importsOf(file: string, text: string): Import[] {
  // A comment may quote an import.
  const found = text
    .replaceAll(/^\s*(?:\*|\/\/).*$/gm, '')
    .matchAll(/(?:from|import|new URL)\s*(\()?\s*['"]([^'"]+)['"]/g);
  return [...found].map((m) => ({ file, target: m[2]!, ...(m[1] && { late: true }) }));
}
