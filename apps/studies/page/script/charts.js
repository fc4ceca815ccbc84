'use strict';
// Lines over the steps, by Chart.js. What it lacks is here: one cursor over all charts, a range of x for all of them by
// dragging, and keys.

const hasCharts = typeof Chart !== 'undefined';
const charts = [];
let cursorX = null;
/** The chart over which a range is being dragged, and from where; null: none is. */
let dragged = null;
addEventListener('pointerup', event => {
  if (!dragged) return;
  const {chart, from} = dragged;
  dragged = null;
  chart.release(from, event);
});

/**
 * A chart over the common axis. `lines()` makes its lines: {run, name, points, width, faint, dots, marked, dash,
 * colour}; dots have no line, what is marked has both. An axis of its own may have names() for 0, 1, 2 ...
 */
class LineChart {
  constructor(place, title, lines, options = {}) {
    this.lines = lines;
    this.options = options;
    this.plot =
        make('div', {class: 'plot' + (options.tall ? ' tall' : ''), tabindex: '0', role: 'img', 'aria-label': title});
    this.canvas = make('canvas');
    this.line = make('div', {class: 'cursor'});
    this.band = make('div', {class: 'band'});
    this.readout = make('div', {class: 'readout'});
    this.plot.append(this.canvas, this.band, this.line, this.readout);
    this.unit = make('small', {}, options.unit || '');
    this.keys = make('div', {class: 'keys'});
    place.append(make('div', {class: 'chart'}, make('h3', {}, title, this.unit), this.plot, this.keys));
    this.listen();
    charts.push(this);
    whenNear(this.plot, () => this.draw());
  }

  datasets() {
    return this.lines().filter(line => line.run === undefined || !view.off.has(line.run)).map(line => {
      const ink = line.colour || colour(line.run);
      return {
        label: line.name,
        line,
        data: line.points,
        parsing: false,
        normalized: true,
        spanGaps: true,
        showLine: !line.dots,
        borderColor: line.faint ? ink + '55' : ink,
        backgroundColor: ink,
        borderDash: line.dash || (line.run === undefined ? [] : dashes(line.run)),
        borderWidth: line.width || 1.6,
        tension: 0,
        pointRadius: line.dots || line.marked || line.points.length === 1 ? 3.4 : 0,
        pointHitRadius: 0,
        pointHoverRadius: 0,
        pointStyle: ['circle', 'rect', 'triangle', 'rectRot'][(line.run || 0) % 4],
        pointBorderColor: style('--card'),
        pointBorderWidth: 1,
        clip: 6,
        order: line.faint ? 3 :
            line.dots     ? 1 :
                            2,
      };
    });
  }

  scales() {
    const own = this.options.axis, soft = style('--soft'), grid = style('--grid');
    const ticks =
        {color: soft, maxRotation: 0, autoSkipPadding: 14, font: {size: 11}, callback: value => number(value, 3)};
    const x = {
      type: own     ? own.type || 'linear' :
          view.logX ? 'logarithmic' :
                      'linear',
      ticks,
      grid: {color: grid, borderColor: grid, tickLength: 4}
    };
    const names = own && own.names && own.names();
    if (names) {
      x.ticks = {...ticks, stepSize: 1, callback: value => names[value] ?? ''};
      [x.min, x.max] = [-0.5, names.length - 0.5];
    }
    if (!own && view.range) [x.min, x.max] = view.range;
    if (!own) Object.assign(x, view.range ? {} : this.extent());
    x.title = {display: true, text: own ? own.name : abscissaName[view.x], color: soft, font: {size: 11}, padding: 0};
    const logarithmic = this.options.logY && this.options.logY();
    const y = {
      type: logarithmic ? 'logarithmic' : 'linear',
      ticks: {...ticks, maxTicksLimit: 7},
      grid: {color: grid, borderColor: grid, tickLength: 0},
      grace: logarithmic ? 0 : '4%'
    };
    if (this.options.fromZero && !logarithmic) y.min = 0;
    if (this.options.least)
      y.min = typeof this.options.least === 'function' ? this.options.least() : this.options.least;
    const most = this.options.most ? this.options.most() : NaN;
    if (Number.isFinite(most)) y.max = most;
    return {x, y};
  }

  /** The same x for all charts, whatever each has; that of a run for those of one run. */
  extent() {
    let most = -Infinity, least = Infinity;
    page.runs.forEach((run, i) => {
      if (this.options.run !== undefined && this.options.run !== i) return;
      const line = series(run.train.loss) || series(run.valid.loss);
      if (!line || (view.off.has(i) && this.options.run !== i) || line.x.length === 0) return;
      const ends = [abscissa(run, line.x[0]), abscissa(run, line.x[line.x.length - 1])].filter(Number.isFinite);
      most = Math.max(most, ...ends);
      least = Math.min(least, ...ends);
    });
    if (!(most > -Infinity)) return {};
    return view.logX ? {min: least > 0 ? least : undefined, max: most} : {min: 0, max: most > 0 ? most : undefined};
  }

  draw() {
    const data = {datasets: this.datasets()};
    this.unit.textContent = typeof this.options.unit === 'function' ? this.options.unit() : this.options.unit || '';
    // Lines of runs have the page's legend.
    this.keys.replaceChildren(
        ...data.datasets.filter(({line}) => line.colour && !line.faint && line.run === undefined)
            .map(
                ({line}) =>
                    make('span', {}, make('i', {class: 'key', style: `background:${line.colour}`}), line.name)));
    if (this.chart) this.chart.destroy();
    this.chart = new Chart(this.canvas, {
      type: 'line',
      data,
      options: {
        animation: false,
        responsive: true,
        maintainAspectRatio: false,
        events: [],
        interaction: {mode: null},
        layout: {padding: {top: 6, right: 8}},
        scales: this.scales(),
        plugins: {legend: {display: false}, tooltip: {enabled: false}}
      },
    });
    this.place(cursorX);
  }
  redraw() {
    if (this.chart) this.draw();
  }

  listen() {
    const isDragged = () => dragged && dragged.chart === this;
    this.plot.addEventListener('pointermove', event => {
      if (!this.chart) return;
      if (isDragged()) this.stretch(dragged.from, this.at(event));
      this.move(this.at(event), event.clientY - this.plot.getBoundingClientRect().top);
    });
    this.plot.addEventListener('pointerdown', event => {
      if (this.chart && event.button === 0 && event.pointerType !== 'touch' && !this.options.axis)
        dragged = {chart: this, from: this.at(event)};
    });
    this.plot.addEventListener('pointerleave', () => isDragged() || this.move(null));
    this.plot.addEventListener('blur', () => this.move(null));
    this.plot.addEventListener('dblclick', () => zoom(null));
    this.plot.addEventListener('keydown', event => this.key(event));
  }

  /** Where the mouse is, as x. */
  at(event) { return this.chart.scales.x.getValueForPixel(event.clientX - this.plot.getBoundingClientRect().left); }

  /** The end of a drag. A chart that was drawn anew meanwhile is no longer here. */
  release(from, event) {
    this.band.style.display = 'none';
    if (!this.chart || !this.plot.isConnected) return;
    const range = [from, this.at(event)].sort((a, b) => a - b), scale = this.chart.scales.x;
    if (scale.getPixelForValue(range[1]) - scale.getPixelForValue(range[0]) > 8) zoom(range);
  }

  key(event) {
    if (!this.chart) return;
    const {min, max} = this.chart.scales.x, step = (max - min) / (event.shiftKey ? 10 : 100);
    const here = cursorX === null ? (min + max) / 2 : cursorX;
    const moves = {
      ArrowLeft: () => this.move(Math.max(min, here - step)),
      ArrowRight: () => this.move(Math.min(max, here + step)),
      Home: () => this.move(min),
      End: () => this.move(max),
      Escape: () => (this.move(null), zoom(null)),
      '+': () => zoom([here - (here - min) / 2, here + (max - here) / 2]),
      '-': () => zoom([here - 2 * (here - min), here + 2 * (max - here)])
    };
    if (this.options.axis && ['+', '-', 'Escape'].includes(event.key)) return;
    if (!moves[event.key]) return;
    event.preventDefault();
    moves[event.key]();
  }

  stretch(from, to) {
    const pixels = [from, to].map(x => this.chart.scales.x.getPixelForValue(x)).sort((a, b) => a - b),
          area = this.chart.chartArea;
    Object.assign(this.band.style, {
      display: 'block',
      left: pixels[0] + 'px',
      width: pixels[1] - pixels[0] + 'px',
      top: area.top + 'px',
      height: area.bottom - area.top + 'px'
    });
  }

  /** The cursor of all charts of the same axis. */
  move(x) {
    if (this.options.axis) return this.place(x);
    cursorX = x;
    for (const chart of charts)
      if (!chart.options.axis) chart.place(x);
  }

  place(x) {
    if (!this.chart) return;
    const scale = this.chart.scales.x, area = this.chart.chartArea,
          pixel = x === null ? NaN : scale.getPixelForValue(x);
    const seen = area && pixel >= area.left - 1 && pixel <= area.right + 1;
    this.line.style.display = this.readout.style.display = seen ? 'block' : 'none';
    if (!seen) return;
    Object.assign(this.line.style, {left: pixel + 'px', top: area.top + 'px', height: area.bottom - area.top + 'px'});
    const axis = this.options.axis, names = axis && axis.names && axis.names();
    const where = names ? names[Math.round(x)] ?? '' : number(x);
    this.readout.replaceChildren(make('b', {}, `${axis ? axis.name : abscissaName[view.x]} ${where}`));
    for (const set of this.chart.data.datasets) {
      const found = set.line.faint || set.line.still ? null : nearest(set.data, x);
      if (!found) continue;
      this.readout.append(make(
          'div', {}, set.line.run === undefined ? null : make('i', {class: 'chip c' + set.line.run % 8}),
          `${number(found.y)} ${set.label}`));
    }
    const width = this.readout.offsetWidth, right = pixel + 10 + width < this.plot.clientWidth;
    Object.assign(
        this.readout.style,
        {top: area.top + 4 + 'px', left: (right ? pixel + 10 : Math.max(0, pixel - 10 - width)) + 'px'});
  }
}

/** The point of a line that is nearest in x; null without points. */
function nearest(line, x) {
  if (line.length === 0) return null;
  let low = 0, high = line.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (line[middle].x <= x)
      low = middle;
    else
      high = middle;
  }
  return Math.abs(line[low].x - x) <= Math.abs(line[high].x - x) ? line[low] : line[high];
}

function zoom(range) {
  view.range = range;
  const button = byId('zoom-out');
  if (button) button.classList.toggle('hidden', range === null);
  for (const chart of charts)
    if (!chart.options.axis) chart.redraw();
}
/** Draws anew what has been drawn, as after a change of what is shown. */
function redrawCharts() {
  for (const chart of charts) chart.redraw();
}
/** Forgets charts whose place is no longer on the page, and what waits to be drawn there. */
function sweepCharts() {
  for (const element of [...waiting.keys()])
    if (!element.isConnected) {
      waiting.delete(element);
      nearby.unobserve(element);
    }
  for (let i = charts.length - 1; i >= 0; --i)
    if (!charts[i].plot.isConnected) {
      if (charts[i].chart) charts[i].chart.destroy();
      charts.splice(i, 1);
    }
}
