/** The words of a text: a long list of names reads best as one. */
export const words = (text: string): readonly string[] => text.trim().split(/\s+/);
