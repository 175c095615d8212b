/**
 * The protocols of providers, as `model.dialect` names them: one line each. The code of a dialect is loaded with its first model;
 * the facts beside it here are needed to plan a run.
 */
import type { ParameterRule } from '../parameters/parameterRule.ts';
import { OPENAI_RULES } from './chat/openAiRules.ts';
import { GEMINI_RULES } from './gemini/geminiRules.ts';
import { CLAUDE_RULES } from './messages/messagesRules.ts';

export interface DialectLine {
  /** OpenAI's own dialect: OpenAI's variables name the address, and requests leave through its client. */
  readonly openAi: boolean;
  /** Marks that say how long a provider keeps what it has read: its own in every request, those that are asked for, or none. */
  readonly cacheMarks: 'own' | 'asked' | 'none';
  load(): Promise<unknown>;
  /** The maker whose models are asked in it, and its rules of what they refuse. Other servers speak it too, and take what they like. */
  readonly maker?: string;
  readonly rules?: readonly ParameterRule[];
  /** The field of a request that keeps the history; the rest of a request hardly changes. */
  readonly historyIn?: string;
  /** The dialect as programs of others speak it; absent: none does. */
  program?(): Promise<unknown>;
  /** The form in which mini-swe-agent keeps a history; absent: as it came. */
  published?(): Promise<unknown>;
}

export const DIALECTS = {
  chat: {
    openAi: true,
    cacheMarks: 'asked',
    load: async () => (await import('./chat/chatDialect.ts')).chatDialect,
    maker: 'openai',
    rules: OPENAI_RULES,
    historyIn: 'messages',
    program: async () => (await import('./chat/chatProgram.ts')).chatProgram,
  },
  responses: {
    openAi: true,
    cacheMarks: 'none',
    load: async () => (await import('./responses/responsesDialect.ts')).responsesDialect,
    maker: 'openai',
    rules: OPENAI_RULES,
    historyIn: 'input',
    program: async () => (await import('./responses/responsesProgram.ts')).responsesProgram,
    published: async () => (await import('./responses/responsesPublished.ts')).responsesPublished,
  },
  messages: {
    openAi: false,
    cacheMarks: 'own',
    load: async () => (await import('./messages/messagesDialect.ts')).messagesDialect,
    maker: 'anthropic',
    rules: CLAUDE_RULES,
    historyIn: 'messages',
    program: async () => (await import('./messages/messagesProgram.ts')).messagesProgram,
    published: async () => (await import('./messages/messagesPublished.ts')).messagesPublished,
  },
  gemini: {
    openAi: false,
    cacheMarks: 'none',
    load: async () => (await import('./gemini/geminiDialect.ts')).geminiDialect,
    maker: 'gemini',
    rules: GEMINI_RULES,
    historyIn: 'contents',
    program: async () => (await import('./gemini/geminiProgram.ts')).geminiProgram,
    published: async () => (await import('./gemini/geminiPublished.ts')).geminiPublished,
  },
} satisfies Readonly<Record<string, DialectLine>>;

export type DialectName = keyof typeof DIALECTS;
export const DIALECT_NAMES = Object.keys(DIALECTS) as readonly DialectName[];
