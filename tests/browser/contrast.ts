// Contrast as WCAG 2.2 computes it, of what a page shows.
import type { Page } from '@playwright/test';

export interface Poor {
  what: string;
  ratio: number;
  needed: number;
}

/**
 * What has less contrast than level AA asks for: text against what is behind it (1.4.3), and the edges of controls (1.4.11).
 * Disabled controls need none. `seen` is how many pairs of colours were looked at.
 */
export function contrasts(page: Page): Promise<{ seen: number; poor: Poor[] }> {
  return page.evaluate(() => {
    type Color = [red: number, green: number, blue: number, alpha: number];
    const parse = (text: string): Color => {
      const [red = 0, green = 0, blue = 0, alpha = 1] = (text.match(/[\d.]+/g) ?? []).map(Number);
      return [red, green, blue, alpha];
    };
    const over = (front: Color, back: Color): Color => {
      const mix = (one: number, other: number) => one * front[3] + other * (1 - front[3]);
      return [mix(front[0], back[0]), mix(front[1], back[1]), mix(front[2], back[2]), 1];
    };
    const luminance = (color: Color) => {
      const [red, green, blue] = color.slice(0, 3).map((value) => (value <= 10.31475 ? value / 3294.6 : ((value / 255 + 0.055) / 1.055) ** 2.4));
      return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    };
    const ratio = (one: Color, other: Color) => {
      const [dark, bright] = [luminance(one), luminance(other)].sort((a, b) => a - b);
      return (bright + 0.05) / (dark + 0.05);
    };
    /** The colour of an element's own background and of all behind it. */
    const behind = (element: Element | null): Color => {
      if (!element) return [255, 255, 255, 1];
      const own = parse(getComputedStyle(element).backgroundColor);
      return own[3] === 1 ? own : over(own, behind(element.parentElement));
    };

    const poor: Poor[] = [];
    let seen = 0;
    const look = (what: string, front: string, back: Color, needed: number) => {
      seen += 1;
      const found = ratio(over(parse(front), back), back);
      if (found < needed) poor.push({ what, ratio: Math.round(found * 100) / 100, needed });
    };
    const shown = (element: Element) => element.checkVisibility({ visibilityProperty: true }) && !element.matches(':disabled');

    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const text = texts.currentNode.textContent?.trim();
      const element = texts.currentNode.parentElement;
      if (!text || !element || !shown(element) || element.closest('script, noscript')) continue;
      const { color, fontSize, fontWeight } = getComputedStyle(element);
      const large = parseFloat(fontSize) >= 24 || (parseFloat(fontSize) >= 18.66 && Number(fontWeight) >= 700);
      look(text.slice(0, 40), color, behind(element), large ? 3 : 4.5);
    }
    for (const control of document.querySelectorAll('input, select, button')) {
      if (!shown(control) || control.matches('[type="checkbox"], [type="range"]')) continue;
      look(`edge of ${control.id || control.textContent}`, getComputedStyle(control).borderTopColor, behind(control.parentElement), 3);
      if (!control.matches('[placeholder]')) continue;
      look(`placeholder of ${control.id}`, getComputedStyle(control, '::placeholder').color, behind(control), 4.5);
    }
    for (const figure of document.querySelectorAll('figure.empty')) {
      const video = figure.querySelector('video');
      if (video) look('text of an empty picture', getComputedStyle(figure, '::after').color, behind(video), 4.5);
    }
    for (const line of document.querySelectorAll('.plot .line')) {
      if (shown(line)) look('line of a plot', getComputedStyle(line).stroke, behind(line), 3);
    }
    return { seen, poor };
  });
}
