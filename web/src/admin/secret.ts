// The administrator's secret: entered once, and kept as long as the tab is open.
import { make } from '../make';

const KEY = 'portunus.admin';

/** Reads the tab's storage; some browsers allow none. */
let known = read();
let asking: Promise<string> | null = null;

export function secret(): string {
  return known;
}

/** Keeps what has opened the Admin API, or forgets it. */
export function keepSecret(opened: string): void {
  known = opened;
  try {
    if (opened) sessionStorage.setItem(KEY, opened);
    else sessionStorage.removeItem(KEY);
  } catch {
    // It is asked for again after a reload.
  }
}

/** Asks the user for it; requests that wait for it at once share the answer. `refused` if what they entered last was wrong. */
export function askSecret(refused: boolean): Promise<string> {
  asking ??= ask(refused).finally(() => (asking = null));
  return asking;
}

function ask(refused: boolean): Promise<string> {
  const form = make('form', { className: 'card wide stack', testid: 'secret-form' });
  const why = make('p', {
    text: refused ? 'That is not the secret.' : 'This server asks for its admin secret: admin.secret in its configuration.',
    testid: 'secret-why',
  });
  why.setAttribute('role', 'alert');
  const label = make('label', { text: 'Admin secret' });
  const input = make('input', { testid: 'secret' });
  label.htmlFor = input.id = 'admin-secret';
  input.type = 'password';
  input.autocomplete = 'off';
  const field = make('div');
  field.append(label, input);
  const row = make('div', { className: 'row' });
  row.append(make('button', { className: 'primary', text: 'Open', testid: 'secret-open' }));
  form.append(why, field, row);
  document.getElementById('notice')?.before(form);
  input.focus();
  return new Promise((entered) => {
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      form.remove();
      entered(input.value);
    });
  });
}

function read(): string {
  try {
    return sessionStorage.getItem(KEY) ?? '';
  } catch {
    return '';
  }
}
