// Prints what a JSON report of Playwright says: `node scripts/playwright-report.mjs counts|STATUS REPORT`.
// `counts` prints how many tests passed, at last, and how many failed. A status lists the tests of it, a line each: `unexpected` for
// tests that failed each time, `flaky` for tests that passed when repeated, both with the beginning of the error, or `expected`.
import { readFileSync } from 'node:fs';

const ERROR_LENGTH = 300;

const [what, file] = process.argv.slice(2);
const report = JSON.parse(readFileSync(file, 'utf8'));

/** The beginning of what failed last, and where, in one line. */
function reason({ results }) {
  const { error } = results.findLast((result) => result.error) ?? {};
  if (!error) return '';
  const text = (error.message ?? '').replace(/\u001b\[[0-9;]*m/g, '').replace(/\s+/g, ' ');
  const place = error.location ? ` (line ${error.location.line})` : '';
  return `: ${text.slice(0, ERROR_LENGTH)}${place}`;
}

function* tests(suite, titles) {
  for (const inner of suite.suites ?? []) yield* tests(inner, [...titles, inner.title]);
  for (const spec of suite.specs ?? []) {
    for (const test of spec.tests.filter(({ status }) => status === what)) {
      yield [`[${test.projectName}]`, ...titles, spec.title].join(' ') + (what === 'expected' ? '' : reason(test));
    }
  }
}

if (what === 'counts') {
  const { expected, flaky, unexpected } = report.stats;
  console.log(expected + flaky, unexpected);
} else {
  for (const line of tests(report, [])) console.log(line);
}
