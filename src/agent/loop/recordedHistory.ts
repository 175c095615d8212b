/**
 * The history as a class of the user's sees it. A message that is pushed is recorded, as one that the agent adds; nothing else changes what is
 * recorded already: the record, and everything that is made from it, would be another conversation than the model saw.
 */
import type { Message } from '../../model/model.ts';

const CHANGES: ReadonlySet<unknown> = new Set([
  ...['pop', 'shift', 'unshift', 'splice', 'sort', 'reverse', 'fill', 'copyWithin'],
]);

const changesRecord = (what: string): Error =>
  new Error(
    `${what} would change what is recorded: push adds a message, selectHistory leaves some out of a request`,
  );

const asSeen = (messages: readonly Message[], add: (message: Message) => void): Message[] =>
  new Proxy(messages as Message[], {
    get(target, key) {
      if (key === 'push')
        return (...more: Message[]): number => {
          for (const message of more) add(message);
          return target.length;
        };
      if (CHANGES.has(key))
        return () => {
          throw changesRecord(`messages.${String(key)}`);
        };
      return Reflect.get(target, key) as unknown;
    },
    set(target, key, value: Message) {
      if (key !== String(target.length)) throw changesRecord(`messages[${String(key)}] =`);
      add(value);
      return true;
    },
    deleteProperty(_, key) {
      throw changesRecord(`delete messages[${String(key)}]`);
    },
    defineProperty(_, key) {
      throw changesRecord(`defining messages[${String(key)}]`);
    },
  });

/** So that an edit of a message is refused where it is made. */
function frozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value) || ArrayBuffer.isView(value))
    return value;
  Object.freeze(value);
  for (const inner of Object.values(value)) frozen(inner);
  return value;
}

export type History = ReturnType<typeof keepHistory>;

/** The history of an agent, whose `messages` shows it from now on. */
export function keepHistory(agent: { addMessage(message: Message): void }) {
  let messages: Message[] = [];
  let seen: Message[] = [];
  /** Messages of an earlier run of this agent, which stand before these in the record. */
  let before = 0;
  // A field of the agent itself: a subclass that declares a field of this name would have a history of its own, which nobody records.
  Object.defineProperty(agent, 'messages', {
    enumerable: true,
    get: () => seen,
    set() {
      throw changesRecord('messages =');
    },
  });
  return {
    all: (): readonly Message[] => messages,
    /** The place in the record of the message that is added next. */
    next: (): number => before + messages.length,
    add: (message: Message): void => void messages.push(frozen(message)),
    restart(): void {
      before += messages.length;
      messages = [];
      seen = asSeen(messages, (message) => agent.addMessage(message));
    },
  };
}
