// The titles of the tests that failed in a report of Playwright's (its JSON), a line each: `node scripts/failures.mjs REPORT`.
import { readFileSync } from 'node:fs';

function* failures(suite, titles) {
  for (const inner of suite.suites ?? []) yield* failures(inner, [...titles, inner.title]);
  for (const spec of suite.specs ?? []) {
    const projects = spec.tests.filter((test) => !['expected', 'skipped'].includes(test.status));
    for (const { projectName } of projects) yield [`[${projectName}]`, ...titles, spec.title].join(' ');
  }
}

const report = JSON.parse(readFileSync(process.argv[2], 'utf8'));
for (const name of failures(report, [])) console.log(name);
