// New elements.
import paths from './icons.json';

/** A new element; those that tests look for have a name for them. */
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  { className = '', text = '', testid = '' } = {},
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text) made.textContent = text;
  if (testid) made.dataset['testid'] = testid;
  return made;
}

/** A new button that does something. */
export function makeButton(text: string, testid: string, run: () => void): HTMLButtonElement {
  const button = make('button', { text, testid });
  button.type = 'button';
  button.addEventListener('click', run);
  return button;
}

/** A drawing of `icons.json`, which the text beside it explains. */
export function makeIcon(name: keyof typeof paths): SVGElement {
  const namespace = 'http://www.w3.org/2000/svg';
  const icon = document.createElementNS(namespace, 'svg');
  icon.setAttribute('class', 'icon');
  icon.setAttribute('viewBox', '0 0 24 24');
  icon.setAttribute('aria-hidden', 'true');
  const path = document.createElementNS(namespace, 'path');
  path.setAttribute('d', paths[name]);
  icon.append(path);
  return icon;
}
