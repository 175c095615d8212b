/**
 * The class of a setting, said beside each key in the schema of its section, as the last call: `.meta(identity('what it sets'))`.
 * identity: another value is another experiment, refused at resume and named by compare. runtime: how fast and where it runs.
 */
export type FieldClass = 'identity' | 'runtime';

const metaOf =
  (fieldClass: FieldClass) =>
  (description?: string): { class: FieldClass; description?: string } =>
    description === undefined ? { class: fieldClass } : { class: fieldClass, description };

export const identity = metaOf('identity');
export const runtime = metaOf('runtime');
