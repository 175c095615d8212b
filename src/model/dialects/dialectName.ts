/** The dialects that there are, as `model.dialect` names them. */
export const DIALECT_NAMES = ['chat', 'responses', 'messages', 'gemini'] as const;
export type DialectName = (typeof DIALECT_NAMES)[number];
