// Twelve keys, as on a telephone.
import { make } from '../make';

const LETTERS: Record<string, string> = { 2: 'ABC', 3: 'DEF', 4: 'GHI', 5: 'JKL', 6: 'MNO', 7: 'PQRS', 8: 'TUV', 9: 'WXYZ', 0: '+' };
const NAMES: Record<string, string> = { '*': 'Star', '#': 'Hash' };

/** Fills an element with keys; `pressed` gets each that is pressed. */
export function fillKeypad(root: HTMLElement, testid: string, pressed: (key: string) => void): void {
  root.replaceChildren(
    ...[...'123456789*0#'].map((key) => {
      const button = make('button', { testid: `${testid}-${key === '*' ? 'star' : key === '#' ? 'hash' : key}` });
      button.type = 'button';
      if (NAMES[key]) button.setAttribute('aria-label', NAMES[key]);
      button.append(make('strong', { text: key }), make('small', { className: 'soft', text: LETTERS[key] ?? ' ' }));
      button.addEventListener('click', () => pressed(key));
      return button;
    }),
  );
}
