/** Output items of the Responses API as litellm's types have them. */

export type Item = Readonly<Record<string, unknown>>;

/** The fields that litellm's types add to items of these kinds, all null. */
const LITELLM_FIELDS: Readonly<Record<string, Item>> = {
  function_call: { caller: null, namespace: null },
  message: { phase: null },
};

export function asLitellm(item: Item): Item {
  const added = { ...LITELLM_FIELDS[String(item.type)], ...item };
  if (item.type !== 'message' || !Array.isArray(item.content)) return added;
  const content = (item.content as Item[]).map((part) =>
    part.type === 'output_text' ? { logprobs: null, ...part } : part,
  );
  return { ...added, content };
}
