/** A report as blocks, made once and rendered for a terminal, for Markdown or as HTML. Strings are raw: each renderer escapes its own way. */

export interface Bar {
  readonly label: string;
  /** In the unit of `max`. */
  readonly value: number;
  readonly low?: number;
  readonly high?: number;
  readonly text: string;
}

export type Block =
  | { readonly kind: 'heading'; readonly level: 1 | 2 | 3; readonly text: string }
  | { readonly kind: 'facts'; readonly rows: readonly (readonly [label: string, value: string])[] }
  | {
      readonly kind: 'table';
      readonly head: readonly string[];
      readonly align: readonly ('left' | 'right')[];
      readonly rows: readonly (readonly string[])[];
    }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'warning'; readonly text: string }
  /** `onTerminal`: how many of them a terminal shows; the other renderers, and JSON, show all. */
  | {
      readonly kind: 'ids';
      readonly label: string;
      readonly ids: readonly string[];
      readonly onTerminal?: number;
    }
  /** Verbatim lines of text, such as a diff. */
  | { readonly kind: 'lines'; readonly lines: readonly string[] }
  /** Only where pictures can be shown; its numbers are in a table nearby. */
  | { readonly kind: 'bars'; readonly title: string; readonly max: number; readonly bars: readonly Bar[] };

export type Document = readonly Block[];
