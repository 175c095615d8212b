/** Numbers as people read them. */

export const percent = (p: number): string => `${(100 * p).toFixed(1)} %`;
