/** The box above a table: words anybody can type, and a syntax for those who ask. */
import { type ReactNode, useState } from 'react';
import { plain } from '../text/foreignText.ts';

interface BoxProps {
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly problems: readonly string[];
  /** An example of the syntax. */
  readonly hint: string;
  readonly fields: ReadonlyMap<string, unknown>;
}

export function FilterBox({ value, onChange, problems, hint, fields }: BoxProps) {
  const [isExplained, explain] = useState(false);
  return (
    <div className="filter">
      <div className="filterline">
        <input
          type="search"
          aria-label="Filter"
          placeholder="search"
          title={hint}
          value={value}
          spellCheck={false}
          onChange={(event) => onChange(event.target.value)}
          aria-invalid={problems.length > 0}
        />
        <button
          type="button"
          aria-expanded={isExplained}
          aria-label="What can be typed here"
          title="what can be typed here"
          onClick={() => explain(!isExplained)}
        >
          ?
        </button>
      </div>
      {problems.length > 0 ? (
        <p role="alert" className="problem">
          {plain(problems.join('; '))}
        </p>
      ) : null}
      {isExplained ? <Syntax hint={hint} fields={[...fields.keys()]} /> : null}
    </div>
  );
}

const RULES: readonly [string, string][] = [
  ['django limit', 'both words, anywhere in the row'],
  ['class:limit', 'the field contains it'],
  ['verdict=resolved|unresolved', 'the field is one of them'],
  ['steps>50 cost>=0.5 time>10m', 'numbers; s m h k M are units'],
  ['flags:any detail:none', 'has something, has nothing'],
  ['-repo:sympy "two words"', 'not; quoted'],
];

function Syntax({ hint, fields }: { hint: string; fields: readonly string[] }): ReactNode {
  return (
    <div className="syntax">
      <dl>
        {RULES.map(([example, meaning]) => (
          <div key={example}>
            <dt>
              <code>{example}</code>
            </dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
      <p>
        Here for example <code>{hint}</code>. Fields: <code>{fields.join(' ')}</code>
      </p>
    </div>
  );
}
