// Draws a document record (document.schema.json) as text, tables, code, bars and pictures. It evaluates nothing, follows no
// address, and caps every size.
import {CAPS, SIGNS, integer, lines, list, node, pngSource, record, stylesheet, tabs, text, tone, unzip} from './kit.js';

const VERSION = 1;
const SEVERITIES = ['error', 'warning', 'info'];

// `ctx.leave()` is called on Escape, to give the focus back to the host.
export function draw(el, spec, ctx) {
  const found = record(spec);
  const root = node('div', 'tw-document', stylesheet());
  root.setAttribute('data-lm-suppress-shortcuts', 'true');
  root.setAttribute('role', 'region');
  root.setAttribute('aria-label', text(found.title, 200) || 'tileworkbench result');
  root.addEventListener('keydown', event => leave(event, root, ctx));
  const version = integer(found.version, 1, 1e6, 0);
  if (version !== VERSION) {
    const problem = version > VERSION ? `made with a newer tileworkbench (record version ${version})` : 'not a tileworkbench record';
    root.append(node('div', 'tw-text', problem));
  } else {
    root.append(verdict(found), ...list(found.diagnostics).map(diagnostic), ...tabs(list(found.sections, 32).map(section)));
  }
  el.replaceChildren(root);
}

function leave(event, root, ctx) {
  if (event.key !== 'Escape') return;
  event.preventDefault();
  event.stopPropagation();
  if (ctx && ctx.leave) ctx.leave();
  else if (root.contains(document.activeElement)) document.activeElement.blur();
}

function verdict(spec) {
  const said = record(spec.verdict);
  const chosen = tone(said.tone);
  const title = node('div', 'tw-title', text(spec.title, 500));
  const word = node('strong', '', `${SIGNS[chosen]} ${text(said.word, 200)}`);
  return node('div', `tw-verdict tw-${chosen}`, title, word, ' ' + text(said.text, 5000));
}

function diagnostic(value) {
  const spec = record(value);
  const severity = SEVERITIES.includes(spec.severity) ? spec.severity : 'error';
  const hint = text(spec.hint, 5000);
  const line = integer(spec.line, 1, 1e9, 0);
  const said = `${line ? `line ${line}: ` : ''}${severity}: ${text(spec.message, 20000)}`;
  return node('div', 'tw-diagnostic', said + (hint ? `\nfix: ${hint}` : ''));
}

function section(value) {
  const spec = record(value);
  const blocks = list(spec.blocks);
  return { title: text(spec.title, 100) || '–', draw: panel => panel.append(...blocks.flatMap(each => block(record(each)))) };
}

const BLOCKS = { text: paragraph, code, diff, table, bars, picture, facts };

function block(spec) {
  if (!Object.hasOwn(BLOCKS, spec.kind)) return [node('div', 'tw-text', '[a block of an unknown kind]')];
  return [...caption(spec), BLOCKS[spec.kind](spec)];
}

function caption(spec) {
  // A table carries its own, where screen readers look for it.
  const said = spec.kind === 'table' ? '' : text(spec.caption, 1000);
  return said ? [node('div', 'tw-caption', said)] : [];
}

function paragraph(spec) {
  return node('div', `tw-text tw-${tone(spec.tone)}`, text(spec.text));
}

function code(spec) {
  if (typeof spec.gzip !== 'string') return codeLines(spec, text(spec.text));
  const place = node('div', '', '…');
  unzip(spec.gzip.slice(0, CAPS.bytes)).then(
    found => place.replaceChildren(codeLines(spec, found)),
    () => place.replaceChildren(node('div', 'tw-text', '[this text cannot be unpacked]'))
  );
  return place;
}

function codeLines(spec, found) {
  const content = found.replace(/\n$/, '').split('\n', CAPS.lines);
  const origins = list(spec.origins, CAPS.lines);
  const notes = new Map();
  for (const mark of list(spec.marks, CAPS.lines).map(record)) {
    notes.set(mark.line, [...(notes.get(mark.line) || []), text(mark.text, 1000)]);
  }
  const row = i => {
    const made = node('div', 'tw-row', node('span', 'tw-gutter', String(i + 1)));
    const origin = integer(origins[i], 1, 1e6, 0);
    if (origins.length) made.append(node('span', 'tw-origin', origin ? `cell:${origin}` : ''));
    made.append(text(content[i], 2000));
    if (notes.has(i + 1)) made.append(node('span', 'tw-note', '◂ ' + notes.get(i + 1).join('; ')));
    return made;
  };
  return lines(content.length, row, text(spec.caption, 200) || text(spec.language, 40) || 'code');
}

const RUNS = { '=': ['tw-same', '  '], '+': ['tw-plus', '+ '], '-': ['tw-minus', '- '] };

function diff(spec) {
  const rows = [];
  for (const run of list(spec.runs, CAPS.lines)) {
    const [sign, content] = list(run, 2);
    if (sign === '~') rows.push(['tw-fold', '  · ', `${integer(content, 1, 1e9, '?')} unchanged lines`]);
    if (!Object.hasOwn(RUNS, sign)) continue;
    for (const line of list(content, CAPS.lines - rows.length)) rows.push([...RUNS[sign], text(line, 2000)]);
  }
  const row = i => node('div', `tw-row ${rows[i][0]}`, rows[i][1] + rows[i][2]);
  return lines(rows.length, row, text(spec.caption, 200) || 'changed lines');
}

function table(spec) {
  const columns = list(spec.columns, 64);
  const numeric = list(spec.numeric, 64).map(value => (value === true ? 'tw-number' : ''));
  const all = list(spec.rows, Math.floor(CAPS.cells / Math.max(1, columns.length)));
  const cells = (tag, values) => columns.map((_, i) => node(tag, numeric[i] || '', text(values[i], 5000)));
  const head = node('thead', '', node('tr', '', ...cells('th', columns)));
  for (const cell of head.querySelectorAll('th')) cell.scope = 'col';
  const body = node('tbody', '', ...all.map(values => node('tr', '', ...cells('td', list(values, 64)))));
  const said = text(spec.caption, 1000);
  return node('table', 'tw-table', ...(said ? [node('caption', 'tw-caption', said)] : []), head, body);
}

function facts(spec) {
  const rows = list(spec.facts).map(pair => {
    const name = node('th', '', text(list(pair)[0], 500));
    name.scope = 'row';
    return node('tr', '', name, node('td', '', text(list(pair)[1], 5000)));
  });
  return node('table', 'tw-table', node('tbody', '', ...rows));
}

function bars(spec) {
  const all = list(spec.bars).map(record);
  const length = bar => (Number.isFinite(bar.value) && bar.value > 0 ? bar.value : 0);
  const longest = Math.max(...all.map(length), Number.MIN_VALUE);
  const rows = all.map(bar => {
    const drawn = node('div', `tw-bar tw-${tone(bar.tone)}`);
    drawn.style.width = `${(100 * length(bar)) / longest}%`;
    const name = node('th', '', text(bar.label, 500));
    name.scope = 'row';
    return node('tr', '', name, node('td', '', node('div', 'tw-track', drawn)), node('td', '', text(bar.text, 500)));
  });
  return node('table', 'tw-table', node('tbody', '', ...rows));
}

function picture(spec) {
  const source = pngSource(spec.png);
  if (source === null) return node('div', 'tw-text', `[picture: ${text(spec.alt, 1000)}]`);
  const made = node('img', 'tw-picture');
  made.src = source;
  made.alt = text(spec.alt, 1000);
  made.width = integer(spec.width, 1, 4096, 256);
  made.height = integer(spec.height, 1, 4096, 256);
  return made;
}
