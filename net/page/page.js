// page.js -- asks /status each second and shows it; asks /keys, /value and /series when a person does.
//
// What comes from the store is put in as text, never as markup. The address keeps what is shown (#keys=P,
// #chart=P&field=F), so that it can be sent to somebody.
'use strict';

const kPeriodMs = 1000;
const kHistory = 120;
const kLatencyWindow = 10;
const kTableRows = 500;

const byId = (id) => document.getElementById(id);
const counted = (number) => Math.round(number).toLocaleString('en');

let lastLook = null;
const looks = [];      // The last latency figures.
const rates = [];      // Messages received in each of the last seconds.
let seqKeys = false;
let redraw = () => {}; // The chart, where the page has become wider or narrower.
let nextAfter = null;  // The last key shown, where there are more.

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function bytes(number) {
  for (const [size, unit] of [[2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB']]) {
    if (number >= size) return `${(number / size).toPrecision(3)} ${unit}`;
  }
  return `${counted(number)} B`;
}

function span(seconds) {
  if (seconds === null) return 'over 10 s';
  if (seconds === 0) return '0 s';
  if (seconds < 1e-3) return `${Number((seconds * 1e6).toPrecision(3))} µs`;
  if (seconds < 1) return `${Number((seconds * 1e3).toPrecision(3))} ms`;
  if (seconds < 120) return `${Number(seconds.toPrecision(3))} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 120 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

// Puts pairs of name and text into a list; where the names are the same as before only what changed is touched.
function setPairs(list, pairs) {
  const names = [...list.querySelectorAll('dt')].map((name) => name.textContent);
  if (names.join('\n') !== pairs.map(([name]) => name).join('\n')) {
    list.replaceChildren(...pairs.map(([name, text]) => {
      const pair = element('div');
      pair.append(element('dt', name), element('dd', text));
      return pair;
    }));
    return;
  }
  list.querySelectorAll('dd').forEach((value, index) => setText(value, pairs[index][1]));
}

// A screen reader says what changes in a live region: so only changes are written.
function setText(target, text) {
  if (target.textContent !== text) target.textContent = text;
}

function setRows(body, rows) {
  body.replaceChildren(...rows.map((cells) => {
    const row = element('tr');
    cells.forEach((cell, index) => row.append(index === 0 ? element('th', cell, {scope: 'row'}) : element('td', cell)));
    return row;
  }));
}

async function ask(path, parameters = {}) {
  const query = new URLSearchParams(parameters).toString();
  const token = sessionStorage.getItem('token');
  const answer = await fetch(query === '' ? path : `${path}?${query}`, {
    signal: AbortSignal.timeout(10000), headers: token === null ? {} : {Authorization: `Bearer ${token}`}});
  byId('token-form').hidden = answer.status !== 401;
  if (answer.status === 401) throw new Error('a token is needed');
  const content = await answer.json();
  if (!answer.ok) throw new Error(content.error || `${path}: status ${answer.status}`);
  return content;
}

function setState(text, kind) {
  setText(byId('state'), text);
  byId('state').className = `state ${kind}`;
}

function showState(now) {
  if (now.failed) return setState('failed: the store takes no more writes; restart kvingest', 'bad');
  if (now.paused !== '') {
    return setState(`reading rests: ${now.paused_text || now.paused}`, now.paused_text === '' ? 'warn' : 'bad');
  }
  return setState('running', 'good');
}

function showRates(now, seconds) {
  const rate = (name) => lastLook === null || seconds <= 0 ? 0 : Math.max(0, (now[name] - lastLook[name]) / seconds);
  rates.push(rate('received'));
  if (rates.length > kHistory) rates.shift();
  setPairs(byId('rate-tiles'), [
    ['received a second', compact(rate('received'))],
    ['stored a second', compact(rate('stored'))],
    ['bytes a second', bytes(rate('bytes'))],
    ['received', counted(now.received)],
    ['stored', counted(now.stored)],
    ['rejected', counted(now.rejected)],
    ['blank', counted(now.blank)],
    ['duplicate', counted(now.duplicate)],
    ['pending', counted(now.pending)],
    ['connections', counted(now.connections)],
    ['turned away', counted(now.connections_refused)],
    ['queue', bytes(now.queue_bytes)],
  ]);
  const label = `Messages received a second over the last ${rates.length} seconds; at most ` +
      `${compact(Math.max(...rates))}, now ${compact(rates[rates.length - 1])}`;
  drawLine(byId('rate-chart'), rates, label, [`${rates.length} s ago`, 'now'], true, 180);
}

function showSafety(now) {
  const marks = now.watermarks;
  setText(byId('loss'), now.loss_window.text);
  const age = now.last_commit_age_milliseconds;
  setPairs(byId('safety-tiles'), [
    ['stored up to', counted(marks.stored)],
    ['durable up to', counted(marks.durable)],
    ['on disk up to', counted(marks.on_disk)],
    ['loss window', `${counted(now.loss_window.records)} records`],
    ['its age', span(now.loss_window.milliseconds / 1000)],
    ['last commit', age === null ? 'none yet' : `${span(age / 1000)} ago`],
    ['stalled for', now.paused === '' ? 'not stalled' : span(now.paused_milliseconds / 1000)],
  ]);
}

// Within which bound a share of the times was: the buckets of two looks, subtracted.
function within(share, now, before) {
  const count = now.count - before.count;
  for (let i = 0; i < now.up_to_seconds.length; ++i) {
    const [bound, upTo] = now.up_to_seconds[i];
    if (upTo - before.up_to_seconds[i][1] >= share * count) return bound;
  }
  return null;
}

function showLatency(now) {
  looks.push(now.latency);
  if (looks.length > kLatencyWindow) looks.shift();
  const names = {commit_synced: 'a group, synced', commit_unsynced: 'a group, not synced', sync: 'a sync alone'};
  const rows = [];
  for (const [name, title] of Object.entries(names)) {
    const latest = now.latency[name];
    const recent = latest.count > looks[0][name].count;
    const zero = {count: 0, seconds: 0, up_to_seconds: latest.up_to_seconds.map(([bound]) => [bound, 0])};
    const before = recent ? looks[0][name] : zero;
    const count = latest.count - before.count;
    if (count === 0) continue;
    rows.push([`${title}, ${recent ? 'last seconds' : 'since the start'}`, counted(count),
      span((latest.seconds - before.seconds) / count), span(within(0.5, latest, before)),
      span(within(0.99, latest, before))]);
  }
  if (rows.length === 0) rows.push(['nothing was written yet', '', '', '', '']);
  setRows(byId('latency-rows'), rows);
}

function showSources(now) {
  const note = byId('sources-note');
  if (now.sources === null) return setText(note, 'not to be had just now: the store is busy');
  const all = Object.entries(now.sources);
  setText(note, all.length > kTableRows ? `the first ${kTableRows} of ${counted(all.length)}` : '');
  setRows(byId('source-rows'), all.slice(0, kTableRows).map(([name, one]) => [name === '@' ? '@ (unnamed)' : name,
    counted(one.next), counted(one.received), counted(one.stored), counted(one.rejected), counted(one.blank),
    counted(one.duplicate)]));
}

function showStore(now) {
  setText(byId('facts'), [now.store, now.dir, `durability ${now.durability}`,
    `up ${span(now.uptime_milliseconds / 1000)}`].filter((part) => part !== '').join(' · '));
  setPairs(byId('store-pairs'), Object.entries(now.store_stats).map(([name, value]) =>
    [name.replaceAll('_', ' '), name.endsWith('_bytes') ? bytes(value) : counted(value)]));
}

function showRecord(record) {
  seqKeys = record.seq_keys;
  const label = seqKeys ? 'From arrival number' : 'Keys that begin with';
  setText(byId('keys-start-label'), label);
  setText(byId('chart-start-label'), label);
  byId('chart-field').disabled = !record.has_fields;
  byId('chart-field').placeholder = record.has_fields ? '' : 'the value itself';
  const names = byId('field-names');
  if (names.children.length !== record.columns.length)
    names.replaceChildren(...record.columns.map((column) => element('option', undefined, {value: column})));
}

async function look() {
  try {
    const now = await ask('/status');
    now.at = performance.now();
    showRecord(now.record);
    showRates(now, lastLook === null ? 0 : (now.at - lastLook.at) / 1000);
    showSafety(now);
    showLatency(now);
    showSources(now);
    showStore(now);
    showState(now);
    lastLook = now;
  } catch (error) {
    setState(`no answer: ${error.message}`, 'bad');
  }
}

// One question at a time, and none while nobody looks.
async function keepLooking() {
  if (!document.hidden) await look();
  setTimeout(keepLooking, kPeriodMs);
}

const startOf = (text) => text === '' ? {} : seqKeys ? {from: text} : {prefix: text};

async function showValue(key) {
  byId('value').hidden = false;
  setText(byId('value-title'), key);
  try {
    const found = await ask('/value', {key});
    setText(byId('value-note'), `${counted(found.bytes)} bytes${found.cut ? ', of which the first are shown' : ''}`);
    setText(byId('value-text'), found.value);
  } catch (error) {
    setText(byId('value-note'), error.message);
    setText(byId('value-text'), '');
  }
  byId('value').focus();
}

async function showKeys(after) {
  const note = byId('keys-note');
  try {
    const start = startOf(byId('keys-start').value);
    const found = await ask('/keys', after === null ? start : {...start, after});
    byId('key-rows').replaceChildren(...found.keys.map((one) => {
      const row = element('tr');
      const name = element('td');
      const button = element('button', one.key, {type: 'button', class: 'key'});
      button.addEventListener('click', () => showValue(one.key));
      name.append(button);
      row.append(name, element('td', counted(one.bytes)), element('td', one.cut ? `${one.value} …` : one.value));
      return row;
    }));
    byId('keys-table').hidden = found.keys.length === 0;
    byId('keys-next').hidden = !found.more;
    byId('value').hidden = true;
    nextAfter = found.more ? found.keys[found.keys.length - 1].key : null;
    setText(note, found.keys.length === 0 ? 'no such keys' :
      `${counted(found.keys.length)} keys${found.more ? '; there are more' : ''}`);
  } catch (error) {
    setText(note, error.message);
  }
}

async function showChart() {
  const note = byId('chart-note');
  const field = byId('chart-field').value;
  try {
    const found = await ask('/series', {...startOf(byId('chart-start').value), ...(field === '' ? {} : {field})});
    const points = found.points;
    byId('chart-figure').hidden = points.length === 0;
    const skipped = found.skipped > 0 ? `${counted(found.skipped)} records hold no number there` : '';
    if (points.length === 0) return setText(note, skipped || 'no such keys');
    setText(note, [skipped, found.more ? `only up to ${found.last}` : ''].filter((part) => part !== '').join('; '));
    const values = points.map((point) => point.value);
    const ends = [points[0].key, points[points.length - 1].key];
    const caption = `${field === '' ? 'the value' : field} of ${counted(points.length)} records, from ` +
        `${Math.min(...values)} to ${Math.max(...values)}, keys ${ends[0]} to ${ends[1]}`;
    redraw = () => drawLine(byId('chart-picture'), values, caption, ends, false, 320);
    redraw();
    setText(byId('chart-caption'), caption);
    setRows(byId('chart-rows'), points.slice(0, kTableRows).map((point) => [point.key, String(point.value)]));
  } catch (error) {
    byId('chart-figure').hidden = true;
    setText(note, error.message);
  }
}

// #keys=AAPL/ and #chart=AAPL/&field=close.
async function followAddress() {
  if (!location.hash.includes('=')) return;  // A link to a part of the page.
  const wanted = new URLSearchParams(location.hash.slice(1));
  if (wanted.has('keys')) {
    byId('keys-start').value = wanted.get('keys');
    await showKeys(null);
    byId('keys').scrollIntoView();
  }
  if (wanted.has('value')) await showValue(wanted.get('value'));
  if (wanted.has('chart')) {
    byId('chart-start').value = wanted.get('chart');
    byId('chart-field').value = wanted.get('field') || '';
    await showChart();
    byId('chart').scrollIntoView();
  }
}

function remember(parameters) {
  window.history.replaceState(null, '', `#${new URLSearchParams(parameters)}`);
}

byId('token-form').addEventListener('submit', (event) => {
  event.preventDefault();
  sessionStorage.setItem('token', byId('token').value);
  look();
});
byId('keys-form').addEventListener('submit', (event) => {
  event.preventDefault();
  remember({keys: byId('keys-start').value});
  showKeys(null);
});
byId('keys-next').addEventListener('click', () => showKeys(nextAfter));
byId('chart-form').addEventListener('submit', (event) => {
  event.preventDefault();
  remember({chart: byId('chart-start').value, field: byId('chart-field').value});
  showChart();
});
window.addEventListener('hashchange', followAddress);
window.addEventListener('resize', () => redraw());

look().then(followAddress).then(() => setTimeout(keepLooking, kPeriodMs));
