/** Messages of chat completions as litellm sends them to providers other than OpenAI, for runs under agent.compat. */
type Fields = Readonly<Record<string, unknown>>;

/** What litellm's own message has no field for stands under this name. */
const SPECIFIC = ['reasoning_details', 'reasoning'] as const;

const withoutNulls = (message: Fields): Fields =>
  Object.fromEntries(Object.entries(message).filter(([, value]) => value !== null && value !== undefined));

export function asLitellmSends(message: Fields): Fields {
  if (message.role !== 'assistant') return message;
  const sent = withoutNulls(message);
  const specific = SPECIFIC.filter((name) => name in sent);
  if (specific.length === 0) return sent;
  const { reasoning_details: _details, reasoning, ...rest } = sent;
  return {
    ...rest,
    ...(reasoning === undefined ? {} : { reasoning_content: reasoning }),
    provider_specific_fields: Object.fromEntries(specific.map((name) => [name, sent[name]])),
  };
}
