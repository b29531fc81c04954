// The connection check: which ways lead from this browser to the server, and what is wrong.
import { Checks } from './check/checks';
import { Steps } from './check/steps';
import { verdict } from './check/verdict';
import { element } from './page';

const steps = new Steps(element('steps'));
const startButton = element<HTMLButtonElement>('start');
const verdictBox = element('verdict');
const reportBox = element<HTMLTextAreaElement>('report');

startButton.addEventListener('click', () => void run());
element('copy').addEventListener('click', () => void copy());

async function run(): Promise<void> {
  startButton.disabled = true;
  verdictBox.hidden = true;
  element('report-card').hidden = true;
  steps.clear();
  const checks = new Checks(steps);
  await checks.run();
  const { kind, text } = verdict(steps.outcomes(), checks.gone);
  const paragraph = document.createElement('p');
  paragraph.textContent = text;
  verdictBox.replaceChildren(paragraph);
  verdictBox.className = `notice ${kind}`;
  verdictBox.hidden = false;
  reportBox.value = report(text, checks.server);
  element('copied').textContent = '';
  element('report-card').hidden = false;
  element('start-text').textContent = 'Check again';
  startButton.disabled = false;
}

/** All that was found, as text for a mail. */
function report(text: string, server: string): string {
  const head = [
    `Connection check of ${window.location.origin}`,
    `Time      ${new Date().toISOString()}`,
    `Server    ${server || 'unknown'}`,
    `Browser   ${navigator.userAgent}`,
    '',
  ];
  return [...head, ...steps.lines(), '', text, ''].join('\n');
}

async function copy(): Promise<void> {
  try {
    // Pages of plain HTTP have no clipboard.
    await navigator.clipboard.writeText(reportBox.value);
    element('copied').textContent = 'Copied.';
  } catch {
    reportBox.focus();
    reportBox.select();
    element('copied').textContent = 'Selected: copy it by Ctrl+C, or by the menu.';
  }
}
