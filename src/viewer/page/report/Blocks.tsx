/** A report or a comparison as the program words it. */
import type { ReactNode } from 'preact/compat';
import type { Block } from '../../../report/render/document.ts';
import { Foldout, Scrolled } from '../parts.tsx';
import { plain } from '../text/foreignText.ts';
import { integer } from '../text/numbers.ts';

interface BlocksProps {
  blocks: readonly Block[];
  /** How the name of an instance is shown. */
  name?: ((id: string) => ReactNode) | undefined;
}

export const Blocks = ({ blocks, name = plain }: BlocksProps) => (
  <div className="blocks">
    {blocks.map((block, i) => (
      // biome-ignore lint/suspicious/noArrayIndexKey: blocks of one immutable document
      <One key={i} block={block} name={name} />
    ))}
  </div>
);

/** A comparison is read for the instances that changed. */
const OPEN = new Set(['Broken', 'Fixed']);

function Ids({ block, name }: { block: Block & { kind: 'ids' }; name: (id: string) => ReactNode }) {
  const title = `${block.label}: ${integer(block.ids.length)}`;
  const list = (
    <ul className="plainlist">
      {block.ids.map((id) => (
        <li key={id}>{name(id)}</li>
      ))}
    </ul>
  );
  return OPEN.has(block.label) ? (
    <section>
      <h3>{title}</h3>
      {list}
    </section>
  ) : (
    <Foldout title={title}>{() => list}</Foldout>
  );
}

function One({ block, name }: { block: Block; name: (id: string) => ReactNode }) {
  switch (block.kind) {
    case 'heading':
      // The page has its own title.
      return block.level === 1 ? null : <h3>{plain(block.text)}</h3>;
    case 'text':
      return <p>{plain(block.text)}</p>;
    case 'warning':
      return (
        <p className="problem" role="note">
          {plain(block.text)}
        </p>
      );
    case 'facts':
      return (
        <dl className="wordfacts">
          {block.rows.map(([label, value], i) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a fact may have several lines without a label
            <div key={i}>
              <dt>{plain(label)}</dt>
              <dd>{plain(value)}</dd>
            </div>
          ))}
        </dl>
      );
    case 'table':
      return (
        <Scrolled className="wide" label={block.head.join(', ')}>
          <table className="plain">
            <thead>
              <tr>
                {block.head.map((head) => (
                  <th key={head} scope="col">
                    {plain(head)}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {block.rows.map((row, i) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: rows of one immutable table
                <tr key={i}>
                  <th scope="row">{plain(row[0] ?? '')}</th>
                  {row.slice(1).map((cell, n) => (
                    // biome-ignore lint/suspicious/noArrayIndexKey: cells of one immutable table
                    <td key={n}>{plain(cell)}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </Scrolled>
      );
    case 'ids':
      return block.ids.length === 0 ? null : <Ids block={block} name={name} />;
    case 'lines':
      return <pre className="output">{plain(block.lines.join('\n'))}</pre>;
    case 'bars':
      // The numbers of the bars stand in a table nearby.
      return null;
  }
}
