/** Numbers as people read them. */

export const percent = (p: number, digits = 1): string => `${(100 * p).toFixed(digits)} %`;
