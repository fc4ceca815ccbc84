'use strict';
// The parts "Spans" and "Memories".

/** The spans of a run at its moments. */
function spansOf(run) {
  const spans = page.runs[run].spans;
  if (!spans) return null;
  if (!spans.unpacked) spans.unpacked = {steps: floats(spans.steps), values: floats(spans.values)};
  return {...spans, ...spans.unpacked};
}

/** The spans that are on the page; null: none. */
let shownSpans = null;
function drawSpans() {
  const place = byId('span-maps');
  shownSpans = null;
  const some = perRun(place, 'spans', run => page.runs[run].spans, run => {
    shownSpans = new SpanView(run);
    return shownSpans.element();
  });
  place.closest('section').classList.toggle('hidden', !some);
}
/** Takes in the spans of a run that goes on, where they are; draws them anew only if they are others. */
function refreshSpans() {
  if (shownSpans && shownSpans.isOf(page.runs[shownSpans.run].spans))
    shownSpans.update();
  else
    drawSpans();
}

/** The spans of a run's heads at a step, and the means of layers over the steps. */
class SpanView {
  constructor(run) {
    this.run = run;
    this.spans = spansOf(run);
    this.said = make('span');
    this.longest = make('span');
    this.cells = Array.from({length: this.spans.layers * this.spans.heads}, () => make('td'));
    this.slider = make('input', {type: 'range', min: '0', step: '1', 'aria-label': 'Step'});
    this.slider.addEventListener('input', () => {
      const moment = Number(this.slider.value);
      // The newest one is followed.
      if (moment === this.spans.steps.length - 1)
        view.moments.delete(run);
      else
        view.moments.set(run, this.spans.steps[moment]);
      this.show();
    });
  }

  isOf(spans) {
    return spans && spans.layers === this.spans.layers && spans.heads === this.spans.heads &&
        this.spans.steps.length > 1;
  }
  update() {
    this.spans = spansOf(this.run);
    this.place();
    this.show();
  }

  /** Sets the slider to the chosen step, or the one nearest to it. */
  place() {
    const {steps} = this.spans, last = steps.length - 1, chosen = view.moments.get(this.run);
    const far = moment => Math.abs(steps[moment] - chosen);
    let moment = last;
    if (chosen !== undefined)
      for (let i = 0; i < last; ++i)
        if (far(i) < far(moment)) moment = i;
    this.slider.max = String(last);
    this.slider.value = String(moment);
  }
  show() {
    const {spans, cells} = this, moment = Number(this.slider.value), size = cells.length, colours = ramp();
    cells.forEach((cell, i) => {
      const value = spans.values[moment * size + i],
            shade = Math.max(0, Math.min(255, Math.round(255 * value / spans.longest) || 0));
      cell.textContent = number(value);
      const [red, green, blue] = colours.slice(3 * shade, 3 * shade + 3);
      cell.style.background = `rgb(${red}, ${green}, ${blue})`;
      cell.style.color = 0.3 * red + 0.59 * green + 0.11 * blue > 130 ? '#111' : '#fff';
    });
    this.said.textContent = 'step ' + whole.format(spans.steps[moment]);
    this.longest.textContent = ` ${number(spans.longest)}, the longest span`;
  }

  table() {
    const {layers, heads} = this.spans, body = make('tbody'), heading = make('tr', {}, make('th'));
    for (let layer = 0; layer < layers; ++layer)
      body.append(make(
          'tr', {}, make('th', {scope: 'row'}, 'layer ' + layer),
          ...this.cells.slice(layer * heads, (layer + 1) * heads)));
    for (let head = 0; head < heads; ++head) heading.append(make('th', {scope: 'col'}, 'head ' + head));
    return make('table', {class: 'spans'}, make('thead', {}, heading), body);
  }

  /** The means of each layer over the steps. */
  lines() {
    const {spans, run} = this;
    const mean = (moment, layer) => {
      const from = (moment * spans.layers + layer) * spans.heads;
      return spans.values.slice(from, from + spans.heads).reduce((sum, span) => sum + span, 0) / spans.heads;
    };
    return Array.from({length: spans.layers}, (_, layer) => {
      const line = {x: spans.steps, y: spans.steps.map((_, moment) => mean(moment, layer))};
      return {name: 'layer ' + layer, colour: layerColour(layer, spans.layers), points: points(page.runs[run], line)};
    });
  }

  element() {
    const {run} = this, several = this.spans.steps.length > 1;
    this.place();
    this.show();
    const map = make(
        'div', {class: 'chart'}, make('h3', {}, 'Positions that each head sees'),
        several ? make('div', {class: 'controls'}, make('label', {}, this.slider, this.said)) :
                  make('p', {class: 'note'}, this.said),
        make('div', {class: 'scroll', style: 'border:0'}, this.table()),
        make('p', {class: 'note'}, make('small', {}, '0 ', make('span', {class: 'ramp'}), this.longest)));
    const part = make('div', {class: 'two'}, map);
    if (hasCharts && several)
      new LineChart(
          part, 'Mean of each layer', () => this.lines(), {run, unit: 'positions', fromZero: true, tall: true});
    const cost = page.studies[run].spans;
    const saved = cost && cost.flops_full > 0 ? 1 - cost.flops / cost.flops_full : NaN;
    return make(
        'div', {}, part,
        !Number.isFinite(saved) ?
            '' :
            make(
                'p', {},
                `The newest weights see ${number(cost.mean)} positions on average, ${
                    number(cost.most)} at most. Attention to the context costs ` +
                    `${number(100 * saved, 3)}% fewer operations than with the longest span for every head.`));
  }
}
/** Layers from dark to light, the lowest first. */
function layerColour(layer, layers) {
  const low = style('--c0'), mix = layers > 1 ? layer / (layers - 1) : 0;
  const from = [1, 3, 5].map(at => parseInt(low.slice(at, at + 2), 16)),
        to = [1, 3, 5].map(at => parseInt(style('--c4').slice(at, at + 2), 16));
  return '#' + from.map((part, i) => Math.round(part + mix * (to[i] - part)).toString(16).padStart(2, '0')).join('');
}

function drawMemories() {
  const place = byId('memory-charts');
  const some =
      perRun(place, 'memories', run => page.runs[run].valid.memories || page.studies[run].memories, showMemories);
  place.closest('section').classList.toggle('hidden', !some);
}

function showMemories(run) {
  const grid = make('div', {class: 'multiples'}), part = make('div', {}, grid);
  const own = page.runs[run].valid.memories || [], found = page.studies[run].memories || [];
  const many = Math.max(own.length, found.length);
  if (hasCharts && own.length) {
    const lines = (name, scale) => () => own.map((memory, i) => ({
                                                   name: 'layer ' + memory.layer,
                                                   colour: layerColour(i, many),
                                                   points: points(page.runs[run], series(memory[name]), y => scale * y)
                                                 }));
    new LineChart(grid, 'Slots that were read', lines('usage', 100), {run, unit: '% of all', fromZero: true});
    new LineChart(
        grid, 'Distance from even use', lines('kl', 1), {run, unit: 'KL, nats; 0: all alike', fromZero: true});
  }
  if (hasCharts && found.length) {
    const lines = () => found.map((memory, i) => {
      const line = series(memory.shares);
      return {
        name: memory.name === 'all' ? 'all memories' : 'layer ' + memory.name,
        colour: layerColour(i, many),
        points: Array.from(line.x, (x, at) => ({x, y: 100 * line.y[at]}))
      };
    });
    new LineChart(
        grid, 'Weight by rank of the slot', lines,
        {axis: {name: 'rank', type: 'logarithmic'}, unit: '% of all weight', logY: () => true});
  }
  for (const memory of found) {
    const percent = rows => number(100 * rows / memory.rows, 3) + '%';
    let said = `${memory.name === 'all' ? 'All memories together' : 'Layer ' + memory.name}: of ${
                   whole.format(memory.slots)} slots ` +
        `${number(100 * memory.usage, 3)}% were read; half of the weight lies on ${
                   whole.format(memory.half)} of them, nine tenths on ${whole.format(memory.most)}.`;
    if (memory.rows)
      said += ` In training ${percent(memory.never)} of the rows were never used` +
          (memory.idle && memory.idle.length ? `, ${percent(memory.idle[memory.idle.length - 1][1])} not in the last ${
                                                   whole.format(memory.idle[memory.idle.length - 1][0])} steps.` :
                                               '.');
    part.append(make('p', {}, said));
  }
  return part;
}
