/** Reasons why attempts did not resolve their instances, as the viewer and `show` say them. */
import type { Store } from '../../store/open.ts';
import type { AttemptDocument } from '../../viewer/documents/attemptDocuments.ts';
import { createDocuments } from '../../viewer/documents/resources.ts';
import type { Why } from '../../viewer/documents/why.ts';

export function whyOfAttempt(store: Store): (attemptId: number) => Why | null {
  const documents = createDocuments(store, { title: '' });
  return (attemptId) => (documents.read(`attempts/${attemptId}`) as AttemptDocument).why;
}
