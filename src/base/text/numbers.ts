/** Numbers as people read them. */

export const percent = (p: number): string => `${(100 * p).toFixed(1)} %`;

/** "1 instance", "2 instances". */
export const plural = (n: number, noun: string, many = `${noun}s`): string => `${n} ${n === 1 ? noun : many}`;
