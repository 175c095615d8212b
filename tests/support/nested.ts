/** JSON text of arrays and objects inside each other. */
export const nested = (depth: number): string => `${'{"a":['.repeat(depth / 2)}1${']}'.repeat(depth / 2)}`;
