'use strict';
// The parts "Spans" and "Memories".

/** The spans of a run at its moments. */
function spansOf(run) {
  const spans = page.runs[run].spans;
  if (!spans) return null;
  if (!spans.unpacked) spans.unpacked = {steps: floats(spans.steps), values: floats(spans.values)};
  return {...spans, ...spans.unpacked};
}

function drawSpans() {
  const place = byId('span-maps');
  const some = perRun(place, 'spans', run => page.runs[run].spans, showSpans);
  place.closest('section').classList.toggle('hidden', !some);
}

function showSpans(run) {
  const spans = spansOf(run), moments = spans.steps.length, cells = [];
  const body = make('tbody');
  for (let layer = 0; layer < spans.layers; ++layer) {
    const row = make('tr', {}, make('th', {scope: 'row'}, 'layer ' + layer));
    for (let head = 0; head < spans.heads; ++head) {
      const cell = make('td');
      cells.push(cell);
      row.append(cell);
    }
    body.append(row);
  }
  const heading = make('tr', {}, make('th'));
  for (let head = 0; head < spans.heads; ++head) heading.append(make('th', {scope: 'col'}, 'head ' + head));
  const said = make('span'), colours = ramp();
  const slider = make(
      'input',
      {type: 'range', min: '0', max: String(moments - 1), value: String(moments - 1), step: '1', 'aria-label': 'Step'});
  const show = () => {
    const moment = Number(slider.value), size = spans.layers * spans.heads;
    for (let i = 0; i < size; ++i) {
      const value = spans.values[moment * size + i],
            shade = Math.max(0, Math.min(255, Math.round(255 * value / spans.longest)));
      cells[i].textContent = number(value);
      const [red, green, blue] = colours.slice(3 * shade, 3 * shade + 3);
      cells[i].style.background = `rgb(${red}, ${green}, ${blue})`;
      cells[i].style.color = 0.3 * red + 0.59 * green + 0.11 * blue > 130 ? '#111' : '#fff';
    }
    said.textContent = 'step ' + whole.format(spans.steps[moment]);
  };
  slider.addEventListener('input', show);
  show();
  const map = make(
      'div', {class: 'chart'}, make('h3', {}, 'Positions that each head sees'),
      moments > 1 ? make('div', {class: 'controls'}, make('label', {}, slider, said)) :
                    make('p', {class: 'note'}, said),
      make(
          'div', {class: 'scroll', style: 'border:0'},
          make('table', {class: 'spans'}, make('thead', {}, heading), body)),
      make(
          'p', {class: 'note'},
          make('small', {}, '0 ', make('span', {class: 'ramp'}), ` ${number(spans.longest)}, the longest span`)));
  const part = make('div', {class: 'two'}, map);
  if (hasCharts && moments > 1) {
    const mean = (moment, layer) => {
      const from = (moment * spans.layers + layer) * spans.heads;
      return spans.values.slice(from, from + spans.heads).reduce((sum, span) => sum + span, 0) / spans.heads;
    };
    const layers = Array.from({length: spans.layers}, (_, layer) => layer);
    const lines = () => layers.map(layer => {
      const line = {x: spans.steps, y: spans.steps.map((_, moment) => mean(moment, layer))};
      return {name: 'layer ' + layer, colour: layerColour(layer, spans.layers), points: points(page.runs[run], line)};
    });
    new LineChart(part, 'Mean of each layer', lines, {run, unit: 'positions', fromZero: true, tall: true});
  }
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
