'use strict';
// What all scripts of the page share: its data, unpacked, what is shown of them, and small helpers. No script asks
// anything of the network but live() in main.js, on a page that `engram watch` serves.

const page = JSON.parse(document.getElementById('page-data').textContent);
const root = document.documentElement;

/**
 * What is shown, which outlives that its parts are drawn anew. `x`: steps, tokens or hours; `logY`: null until somebody
 * chooses; `range`: of x, null for all; `off`: runs that are switched off; `selected`: a run by part; `heads`: the
 * chosen one by run; `moments`: the chosen step of the spans by run, none for the newest; `sorted`: {column, down} by
 * table; `compared`, `comparedKey`: figure and key of the comparison; `oneScale`: all heads have the same colours.
 */
const view = {
  x: 'steps',
  y: 'score',
  logX: false,
  logY: null,
  smooth: 0.3,
  range: null,
  off: new Set(),
  selected: new Map(),
  heads: new Map(),
  moments: new Map(),
  sorted: new Map(),
  compared: 'best',
  comparedKey: null,
  comparedLog: false,
  oneScale: false
};
/** The perplexities of the first steps would hide all others. A run that has reported nothing has no score yet. */
const isLogY = () => view.logY ?? page.runs.some(run => run.score && run.score !== 'bpc');
// Runs of another unit than the best one's would share its axis: at first they are switched off.
const bestScore = page.best.length ? page.runs[page.best[0]].score : '';
page.runs.forEach((run, i) => {
  if (bestScore && run.score && run.score !== bestScore) view.off.add(i);
});
/** An element: make('button', {class: 'a', onclick: f}, 'text', child ...). Texts never become markup. */
function make(tag, members = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(members)) {
    if (name.startsWith('on'))
      element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false)
      element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.filter(child => child !== null && child !== undefined));
  return element;
}
const byId = id => document.getElementById(id);

function bytes(packed) {
  const text = atob(packed);
  const all = new Uint8Array(text.length);
  for (let i = 0; i < text.length; ++i) all[i] = text.charCodeAt(i);
  return all;
}
/** Numbers of 32 bits, the lowest byte first, whatever the machine has first. */
function floats(packed) {
  const all = bytes(packed);
  const numbers = new Float32Array(all.length / 4);
  const from = new DataView(all.buffer);
  for (let i = 0; i < numbers.length; ++i) numbers[i] = from.getFloat32(4 * i, true);
  return numbers;
}
/** A line of a run, {x, y}, x in steps; null where there is none. Unpacked once. */
function series(packed) {
  if (!packed) return null;
  if (!packed.points) packed.points = {x: floats(packed.x), y: floats(packed.y)};
  return packed.points;
}

const style = name => getComputedStyle(root).getPropertyValue(name).trim();
const colour = run => style('--c' + run % 8);
/** Runs beyond the eighth have the same colours, with dashes. */
const dashes = run => [[], [7, 4], [2, 3]][Math.floor(run / 8) % 3];

const whole = new Intl.NumberFormat('en', {maximumFractionDigits: 0});
function number(value, digits = 4) {
  if (!Number.isFinite(value)) return '-';
  const size = Math.abs(value);
  if (size >= 1e6 || (size > 0 && size < 1e-3)) return value.toExponential(2).replace(/\.?0+e/, 'e');
  return size >= 1000 ? whole.format(value) : String(Number(value.toPrecision(digits)));
}

/** Where a step lies on the axis; NaN where that is not known. */
function abscissa(run, step) {
  if (view.x === 'steps') return step;
  if (view.x === 'tokens') return step * (run.tokens_per_step || NaN);
  const clock = series(run.train.clock);
  if (!clock || clock.x.length === 0) return NaN;
  let low = 0, high = clock.x.length - 1;
  if (step >= clock.x[high]) return clock.y[high] / 3600;
  if (step <= clock.x[0]) return clock.y[0] * (step / clock.x[0]) / 3600;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (clock.x[middle] <= step)
      low = middle;
    else
      high = middle;
  }
  const share = (step - clock.x[low]) / Math.max(1, clock.x[high] - clock.x[low]);
  return (clock.y[low] + share * (clock.y[high] - clock.y[low])) / 3600;
}
const abscissaName = {
  steps: 'step',
  tokens: 'tokens',
  hours: 'hours'
};

/** Nats as what is shown: nats, bits, perplexity, or each run's own score. */
function loss(run, nats) {
  const what =
      view.y === 'score' ? {bpc: 'bits', ppl: 'perplexity', ppl_bpe: 'perplexity'}[run.score] || 'nats' : view.y;
  return what === 'nats' ? nats : what === 'bits' ? nats / Math.LN2 : Math.exp(nats);
}

/** Points {x, y} of a line; what has no place on the axes is left out. */
function points(run, line, value = y => y, logY = false) {
  const found = [];
  if (!line) return found;
  for (let i = 0; i < line.x.length; ++i) {
    const x = abscissa(run, line.x[i]), y = value(line.y[i]);
    if (Number.isFinite(x) && Number.isFinite(y) && (!logY || y > 0) && (!view.logX || x > 0)) found.push({x, y});
  }
  return found;
}
/** A running mean that forgets over `share` of the width; points need not be equally far apart. */
function smoothed(line, share) {
  if (share <= 0 || line.length < 3) return line;
  const width = (line[line.length - 1].x - line[0].x) * share * share / 4;
  let sum = 0, weight = 0, last = line[0].x;
  return line.map(point => {
    const keep = width > 0 ? Math.exp(-(point.x - last) / width) : 0;
    const own = width > 0 ? 1 - Math.exp(-Math.max(point.x - last, width / line.length) / width) : 1;
    last = point.x;
    sum = sum * keep + own * point.y;
    weight = weight * keep + own;
    return {x: point.x, y: sum / weight};
  });
}

/** A row of buttons of which one is pressed. `choices`: [value, words]; `choose` gets the value. */
function choices(name, list, value, choose) {
  const group = make('div', {class: 'group', role: 'group', 'aria-label': name}, name + ' ');
  for (const [key, words] of list) {
    const button = make('button', {class: 'button', type: 'button', 'aria-pressed': String(key === value)}, words);
    button.addEventListener('click', () => {
      for (const other of group.querySelectorAll('button'))
        other.setAttribute('aria-pressed', String(other === button));
      choose(key);
    });
    group.append(button);
  }
  return group;
}
/** A button that is on or off. */
function toggle(words, value, choose) {
  const button = make('button', {class: 'button', type: 'button', 'aria-pressed': String(value)}, words);
  button.addEventListener('click', () => {
    const on = button.getAttribute('aria-pressed') !== 'true';
    button.setAttribute('aria-pressed', String(on));
    choose(on);
  });
  return button;
}
/** One button for each run that has something to show in a part, and what `show(run)` makes of the chosen one. */
function perRun(place, part, has, show) {
  const runs = page.runs.map((run, i) => i).filter(has);
  if (runs.length === 0) return false;
  // The best run first, if it has something to show there.
  if (!runs.includes(view.selected.get(part)))
    view.selected.set(part, page.best.find(run => runs.includes(run)) ?? runs[0]);
  const shown = make('div');
  const draw = () => shown.replaceChildren(show(view.selected.get(part)));
  const tabs = make('div', {class: 'tabs', role: 'group', 'aria-label': 'Run'});
  for (const run of runs) {
    const button = make(
        'button', {class: 'choice', type: 'button', 'aria-pressed': String(run === view.selected.get(part))},
        make('i', {class: 'chip c' + run % 8}), page.runs[run].name);
    button.addEventListener('click', () => {
      view.selected.set(part, run);
      for (const other of tabs.children) other.setAttribute('aria-pressed', String(other === button));
      draw();
      sweepCharts();
    });
    tabs.append(button);
  }
  place.replaceChildren(...(runs.length > 1 ? [tabs] : []), shown);
  draw();
  return true;
}

/** The colours of a map: 256 times red, green, blue, from nothing to most. */
function ramp() {
  const ends = ['--map-low', '--map-middle', '--map-high'].map(name => style(name).split(',').map(Number));
  const all = new Uint8ClampedArray(256 * 3);
  for (let i = 0; i < 256; ++i) {
    const place = i / 255 * 2, from = ends[Math.min(1, Math.floor(place))],
          to = ends[Math.min(1, Math.floor(place)) + 1];
    const share = place - Math.min(1, Math.floor(place));
    for (let k = 0; k < 3; ++k) all[3 * i + k] = from[k] + share * (to[k] - from[k]);
  }
  return all;
}
/** Draws rows of bytes, a pixel each. */
function drawMap(canvas, rows, columns, value) {
  canvas.width = Math.max(1, columns);
  canvas.height = Math.max(1, rows);
  const context = canvas.getContext('2d'), image = context.createImageData(canvas.width, canvas.height),
        colours = ramp();
  for (let row = 0; row < rows; ++row)
    for (let column = 0; column < columns; ++column) {
      const shade = Math.max(0, Math.min(255, Math.round(value(row, column)))), at = 4 * (row * columns + column);
      image.data.set([colours[3 * shade], colours[3 * shade + 1], colours[3 * shade + 2], 255], at);
    }
  context.putImageData(image, 0, 0);
}
/** Runs `draw` when the element comes near the window, or the page is printed. */
const waiting = new Map();
const nearby = new IntersectionObserver(entries => {
  for (const entry of entries)
    if (entry.isIntersecting) drawNow(entry.target);
}, {rootMargin: '300px'});
function drawNow(element) {
  nearby.unobserve(element);
  const draw = waiting.get(element);
  waiting.delete(element);
  if (draw) draw();
}
function whenNear(element, draw) {
  waiting.set(element, draw);
  nearby.observe(element);
}
