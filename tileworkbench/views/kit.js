// What every drawing module shares: elements, checked values, tabs, long lists. Records are hostile input, so text only
// ever becomes text nodes, and every name, style and attribute is one of ours.

export const CAPS = { string: 200000, items: 400, cells: 1 << 16, lines: 100000, bytes: 8 << 20, png: 2 << 20 };
export const SIGNS = { good: '✓', bad: '✗', warn: '!', plain: '·' };
const LINE = 18;
const SHOWN = 24;

// One colour, one meaning (Okabe–Ito); a sign or a word always stands beside it.
const STYLE = `
.tw-document { --tw-good: #009e73; --tw-bad: #d55e00; --tw-warn: #e69f00; --tw-plain: #767676;
  color: var(--jp-ui-font-color1, inherit); font-size: 13px; line-height: 1.5; padding: 4px 0; }
.tw-verdict { border-left: 4px solid var(--tw-tone); padding: 2px 0 2px 8px; margin-bottom: 6px; }
.tw-good { --tw-tone: var(--tw-good); } .tw-bad { --tw-tone: var(--tw-bad); }
.tw-warn { --tw-tone: var(--tw-warn); } .tw-plain { --tw-tone: var(--tw-plain); }
.tw-title { font-weight: 600; }
.tw-diagnostic { border-left: 4px solid var(--tw-bad); padding: 2px 0 2px 8px; margin: 4px 0; white-space: pre-wrap; }
.tw-tabs { display: flex; flex-wrap: wrap; border-bottom: 1px solid var(--jp-border-color1, #bbb); }
.tw-tab { background: none; border: 0; border-bottom: 3px solid transparent; color: inherit; cursor: pointer;
  font: inherit; min-height: 28px; padding: 4px 12px; }
.tw-tab[aria-selected="true"] { border-bottom-color: var(--jp-brand-color1, #0072b2); font-weight: 600; }
.tw-tab:focus-visible, .tw-lines:focus-visible, .tw-panel:focus-visible {
  outline: var(--jp-focus-outline-width, 2px) solid var(--jp-focus-outline-color, #0072b2); outline-offset: -2px; }
.tw-panel { padding: 6px 0; }
.tw-text { white-space: pre-wrap; margin: 6px 0; border-left: 3px solid transparent; }
.tw-text.tw-good, .tw-text.tw-bad, .tw-text.tw-warn { border-left-color: var(--tw-tone); padding-left: 8px; }
.tw-caption { font-weight: 600; margin: 8px 0 2px; text-align: left; caption-side: top; }
.tw-lines { font: 12px/${LINE}px var(--jp-code-font-family, monospace); max-height: ${LINE * SHOWN}px; overflow: auto;
  background: var(--jp-layout-color0, transparent); border: 1px solid var(--jp-border-color1, #bbb); }
.tw-rows { position: relative; min-width: max-content; }
.tw-row { height: ${LINE}px; white-space: pre; padding-right: 12px; }
.tw-gutter { display: inline-block; width: 4ch; margin-right: 1ch; text-align: right; color: var(--tw-plain);
  user-select: none; }
.tw-origin { display: inline-block; width: 7ch; color: var(--tw-plain); user-select: none; }
.tw-note { color: var(--jp-ui-font-color1, inherit); font-style: italic; margin-left: 2ch; }
.tw-plus { background: rgba(0, 158, 115, 0.22); } .tw-minus { background: rgba(213, 94, 0, 0.22); }
.tw-fold { color: var(--tw-plain); }
.tw-document table.tw-table { border-collapse: collapse; margin: 4px 0; font-size: 13px; }
.tw-document .tw-table td, .tw-document .tw-table th { padding: 2px 12px 2px 4px; text-align: left; vertical-align: top; }
.tw-document .tw-table .tw-number { text-align: right; font-variant-numeric: tabular-nums; }
.tw-document .tw-table tr:nth-child(even) td { background: var(--jp-layout-color2, transparent); }
.tw-track { width: 220px; } .tw-bar { height: 12px; background: var(--tw-tone); outline: 1px solid currentcolor; }
.tw-picture { background: #fff; max-width: 100%; image-rendering: pixelated; }
`;

export function text(value, cap = CAPS.string) {
  const found = typeof value === 'string' ? value : typeof value === 'number' ? String(value) : '';
  return found.length > cap ? found.slice(0, cap) + ' …' : found;
}

export function list(value, cap = CAPS.items) {
  return Array.isArray(value) ? value.slice(0, cap) : [];
}

export function record(value) {
  return value !== null && typeof value === 'object' && !Array.isArray(value) ? value : {};
}

export function integer(value, low, high, otherwise) {
  return Number.isInteger(value) && value >= low && value <= high ? value : otherwise;
}

export function tone(value) {
  return Object.hasOwn(SIGNS, value) ? value : 'plain';
}

// `names` are classes of ours; children are elements or strings, and strings become text nodes.
export function node(tag, names, ...children) {
  const made = document.createElement(tag);
  if (names) made.className = names;
  made.append(...children);
  return made;
}

// Puts an element of ours into the Tab order. JupyterLab looks for its shortcuts from the focused element upwards, so the
// attribute that holds them off stands on each element that can have the focus: `d d` would delete the cell.
function focusable(el, order) {
  el.tabIndex = order;
  el.setAttribute('data-lm-suppress-shortcuts', 'true');
}

export function stylesheet() {
  return node('style', '', STYLE);
}

// A data URI of a PNG, or null: nothing but base64 gets in, so no other type and no address can.
export function pngSource(base64) {
  if (typeof base64 !== 'string' || base64.length > CAPS.png) return null;
  return /^iVBORw0KGgo[A-Za-z0-9+/]*={0,2}$/.test(base64) ? 'data:image/png;base64,' + base64 : null;
}

// The text of a compressed block. It stops at the cap, so that a small record cannot unfold into gigabytes.
export async function unzip(base64) {
  const bytes = Uint8Array.from(atob(base64), char => char.charCodeAt(0));
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip')).getReader();
  const decoder = new TextDecoder();
  let found = '';
  let total = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return found + decoder.decode();
    total += value.length;
    found += decoder.decode(value, { stream: true });
    if (total > CAPS.bytes) {
      await reader.cancel();
      return found + '\n[the rest is over the size limit]';
    }
  }
}

// Thousands of lines, of which only those in sight are in the page. `row(i)` makes line i.
export function lines(count, row, label) {
  const rows = node('div', 'tw-rows');
  const box = node('div', 'tw-lines', rows);
  focusable(box, 0);
  box.setAttribute('role', 'region');
  box.setAttribute('aria-label', label);
  rows.style.height = `${count * LINE}px`;
  let first = -1;
  const fill = () => {
    const start = Math.max(0, Math.floor(box.scrollTop / LINE) - SHOWN);
    if (start === first) return;
    first = start;
    const shown = node('div', '');
    shown.style.cssText = `position: absolute; top: ${start * LINE}px; min-width: 100%`;
    for (let i = start; i < Math.min(count, start + 3 * SHOWN); i++) shown.append(row(i));
    rows.replaceChildren(shown);
    // Lines taken out of the flow do not widen their box by themselves.
    rows.style.minWidth = `${Math.max(shown.scrollWidth, parseInt(rows.style.minWidth) || 0)}px`;
  };
  box.addEventListener('scroll', fill);
  fill();
  return box;
}

let drawings = 0;

// Tabs by the ARIA pattern: one stop for the Tab key, arrows, Home and End move between them. Panels are drawn when first
// shown. `items` are {title, draw(panel)}.
export function tabs(items) {
  const prefix = `tw-${++drawings}`;
  const bar = node('div', 'tw-tabs');
  bar.setAttribute('role', 'tablist');
  const panels = items.map((item, i) => {
    const panel = node('div', 'tw-panel');
    panel.id = `${prefix}-panel-${i}`;
    panel.setAttribute('role', 'tabpanel');
    panel.setAttribute('aria-labelledby', `${prefix}-tab-${i}`);
    focusable(panel, 0);
    return panel;
  });
  const buttons = items.map((item, i) => {
    const button = node('button', 'tw-tab', item.title);
    button.type = 'button';
    button.id = `${prefix}-tab-${i}`;
    button.setAttribute('role', 'tab');
    button.setAttribute('aria-controls', panels[i].id);
    button.addEventListener('click', () => choose(i));
    return button;
  });
  const drawn = new Set();
  const choose = chosen => {
    buttons.forEach((button, i) => {
      button.setAttribute('aria-selected', String(i === chosen));
      focusable(button, i === chosen ? 0 : -1);
      panels[i].hidden = i !== chosen;
    });
    if (drawn.has(chosen)) return;
    drawn.add(chosen);
    items[chosen].draw(panels[chosen]);
  };
  bar.addEventListener('keydown', event => {
    const now = buttons.indexOf(document.activeElement);
    const last = buttons.length - 1;
    const moves = { ArrowRight: now < last ? now + 1 : 0, ArrowLeft: now > 0 ? now - 1 : last, Home: 0, End: last };
    if (now < 0 || !Object.hasOwn(moves, event.key)) return;
    event.preventDefault();
    choose(moves[event.key]);
    buttons[moves[event.key]].focus();
  });
  bar.append(...buttons);
  if (items.length) choose(0);
  return [bar, ...panels];
}
