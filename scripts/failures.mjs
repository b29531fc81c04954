// Prints the titles of the tests of one status in a JSON report of Playwright, a line each: `node scripts/failures.mjs STATUS REPORT`.
// The status is `unexpected` for tests that failed each time, or `flaky` for tests that passed when repeated.
import { readFileSync } from 'node:fs';

const [status, file] = process.argv.slice(2);

function* failures(suite, titles) {
  for (const inner of suite.suites ?? []) yield* failures(inner, [...titles, inner.title]);
  for (const spec of suite.specs ?? []) {
    const projects = spec.tests.filter((test) => test.status === status);
    for (const { projectName } of projects) yield [`[${projectName}]`, ...titles, spec.title].join(' ');
  }
}

const report = JSON.parse(readFileSync(file, 'utf8'));
for (const name of failures(report, [])) console.log(name);
