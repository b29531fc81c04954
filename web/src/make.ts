// New elements.

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
