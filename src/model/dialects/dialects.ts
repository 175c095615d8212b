/**
 * The protocols of providers, as `model.dialect` names them: one line each. What asks in one is loaded with the first model that does;
 * what stands here beside it is needed to plan a run.
 */
export const DIALECTS = {
  chat: {
    openAi: true,
    cacheMarks: 'asked',
    load: async () => (await import('./chat/chatDialect.ts')).chatDialect,
    historyIn: 'messages',
    program: async () => (await import('./chat/chatProgram.ts')).chatProgram,
  },
  responses: {
    openAi: true,
    cacheMarks: 'none',
    load: async () => (await import('./responses/responsesDialect.ts')).responsesDialect,
    historyIn: 'input',
    program: async () => (await import('./responses/responsesProgram.ts')).responsesProgram,
  },
  messages: {
    openAi: false,
    cacheMarks: 'own',
    load: async () => (await import('./messages/messagesDialect.ts')).messagesDialect,
    historyIn: 'messages',
    program: async () => (await import('./messages/messagesProgram.ts')).messagesProgram,
  },
  gemini: {
    openAi: false,
    cacheMarks: 'none',
    load: async () => (await import('./gemini/geminiDialect.ts')).geminiDialect,
    historyIn: 'contents',
    program: async () => (await import('./gemini/geminiProgram.ts')).geminiProgram,
  },
} satisfies Readonly<
  Record<
    string,
    {
      /** OpenAI's own: its variables name the address, and requests leave through its client. */
      readonly openAi: boolean;
      /** Marks that say how long a provider keeps what it has read: its own in every request, those that are asked for, or none. */
      readonly cacheMarks: 'own' | 'asked' | 'none';
      load(): Promise<unknown>;
      /** The field of a request that keeps what was said; the rest of a request hardly changes. */
      readonly historyIn?: string;
      /** How programs of others speak it; absent: none does. */
      program?(): Promise<unknown>;
    }
  >
>;
export type DialectName = keyof typeof DIALECTS;
export const DIALECT_NAMES = Object.keys(DIALECTS) as readonly DialectName[];
