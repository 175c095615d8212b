/** The tests that failed on either side, each with both results. */
import type { AttemptDocument, EvaluationDocument } from '../../documents/documents.ts';
import { useDocument } from '../data/source.ts';
import { Badge } from '../parts.tsx';
import { plain } from '../text/foreignText.ts';
import { integer } from '../text/numbers.ts';

function useVerdict(doc: AttemptDocument): EvaluationDocument | undefined {
  const current = doc.evaluations.findLast((evaluation) => evaluation.current);
  return useDocument<EvaluationDocument>(current ? `evaluations/${current.id}` : undefined, false).data;
}

const MOST = 300;
const resultOf = (verdict: EvaluationDocument | undefined): ReadonlyMap<string, boolean> =>
  new Map(verdict?.tests.map((test) => [`${test.group} ${test.name}`, test.passed]));

export function TestsBeside({ left, right }: { left: AttemptDocument; right: AttemptDocument }) {
  const [a, b] = [useVerdict(left), useVerdict(right)];
  if (!a && !b) return null;
  const [resultsA, resultsB] = [resultOf(a), resultOf(b)];
  const names = [...new Set([...resultsA.keys(), ...resultsB.keys()])];
  const failed = names.filter((name) => resultsA.get(name) === false || resultsB.get(name) === false);
  return (
    <section>
      <h2>Tests</h2>
      <p>
        A <Badge word={a?.outcome} /> B <Badge word={b?.outcome} />{' '}
        {names.length > 0
          ? `${integer(failed.length)} of ${integer(names.length)} counted tests failed on a side`
          : null}
      </p>
      {failed.length > 0 ? (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolled region must be reachable by keyboard
        <section className="wide" aria-label="Tests that failed" tabIndex={0}>
          <table className="plain">
            <thead>
              <tr>
                <th scope="col">Test</th>
                <th scope="col">A</th>
                <th scope="col">B</th>
              </tr>
            </thead>
            <tbody>
              {failed.slice(0, MOST).map((name) => (
                <tr key={name}>
                  <th scope="row">
                    <code>{plain(name.slice(name.indexOf(' ') + 1))}</code>
                  </th>
                  <td>{said(resultsA.get(name))}</td>
                  <td>{said(resultsB.get(name))}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      ) : null}
    </section>
  );
}

const said = (passed: boolean | undefined) =>
  passed === undefined ? (
    '–'
  ) : passed ? (
    <span className="passed">passed</span>
  ) : (
    <span className="bad">failed</span>
  );
