'use strict';
// The parts "Loss" and "Training".

/** A line for each run that has this one. */
function ofRuns(pick, value, more = {}) {
  return page.runs.flatMap((run, i) => {
    const line = series(pick(run));
    return line ? [{
      run: i,
      name: run.name,
      points: points(run, line, y => value ? value(run, y) : y, more.logY && more.logY()),
      ...more
    }] :
                  [];
  });
}

function lossLines() {
  const value = (run, y) => loss(run, y), logY = isLogY;
  const training = ofRuns(run => run.train.loss, value, {logY});
  const smooth =
      training.map(line => ({...line, points: smoothed(line.points, view.smooth), name: line.name + ', training'}));
  const faint = view.smooth > 0 ? training.map(line => ({...line, faint: true, width: 1})) : [];
  const valid = ofRuns(run => run.valid.loss, value, {logY, dots: true})
                    .map(line => ({...line, name: line.name + ', validation'}));
  return [...faint, ...smooth, ...valid];
}

function lossUnit() {
  const names = {bpc: 'bits per character', ppl: 'perplexity', ppl_bpe: 'perplexity of subwords'};
  if (view.y !== 'score') return {nats: 'nats a token', bits: 'bits a token', perplexity: 'perplexity'}[view.y];
  const scores = new Set(
      page.runs.filter((run, i) => run.score && !view.off.has(i)).map(run => names[run.score] || 'nats a token'));
  return [...scores].join(', ');
}

/**
 * Above what a guess costs there is nothing to see: a run that diverged would hide all others. NaN: all of it is
 * below.
 */
function mostLoss() {
  let bound = -Infinity, most = -Infinity;
  page.runs.forEach((run, i) => {
    if (view.off.has(i) || !run.guess) return;
    bound = Math.max(bound, loss(run, 1.04 * run.guess));
    for (const line of [series(run.train.loss), series(run.valid.loss)])
      if (line)
        for (const nats of line.y)
          if (Number.isFinite(nats)) most = Math.max(most, loss(run, nats));
  });
  return most > bound ? bound : NaN;
}

/** The axis begins just below the lowest loss: one by ratio would begin at the power of ten below it. */
function leastLoss() {
  if (!isLogY()) return undefined;
  let least = Infinity;
  for (const line of lossLines())
    if (!view.off.has(line.run))
      for (const point of line.points)
        if (inRange(point)) least = Math.min(least, point.y);
  return least > 0 && least < Infinity ? 0.95 * least : undefined;
}
const inRange = point => !view.range || (point.x >= view.range[0] && point.x <= view.range[1]);

function drawLoss() {
  const place = byId('loss-chart');
  if (!place || !hasCharts) return;
  if (!page.runs.some(run => run.train.loss || run.valid.loss)) {
    place.replaceChildren(make('p', {class: 'note'}, 'No run has reported a loss yet.'));
    return;
  }
  const redraw = () => redrawCharts();
  const slider = make('input', {
    type: 'range',
    min: '0',
    max: '1',
    step: '0.05',
    value: String(view.smooth),
    'aria-label': 'Smoothing of training losses'
  });
  slider.addEventListener('input', () => {
    view.smooth = Number(slider.value);
    redraw();
  });
  const zoomOut = make(
      'button',
      {class: 'button' + (view.range ? '' : ' hidden'), id: 'zoom-out', type: 'button', onclick: () => zoom(null)},
      'All of it');
  place.replaceChildren(make(
      'div', {class: 'controls'},
      choices(
          'Over', [['steps', 'steps'], ['tokens', 'tokens'], ['hours', 'hours']], view.x,
          key => {
            view.x = key;
            zoom(null);
            redraw();
          }),
      choices(
          'In', [['score', 'own unit'], ['nats', 'nats'], ['bits', 'bits'], ['perplexity', 'perplexity']], view.y,
          key => {
            view.y = key;
            redraw();
          }),
      make('div', {class: 'group', role: 'group', 'aria-label': 'Logarithmic'}, 'Log ', toggle('x', view.logX, on => {
             view.logX = on;
             zoom(null);
             redraw();
           }), toggle('y', isLogY(), on => {
             view.logY = on;
             redraw();
           })), make('label', {}, 'Smooth', slider), zoomOut));
  new LineChart(place, 'Loss', lossLines, {tall: true, unit: lossUnit, logY: isLogY, most: mostLoss, least: leastLoss});
  if (page.runs.some(run => bestScore && run.score && run.score !== bestScore))
    place.append(make(
        'p', {class: 'note'},
        'Runs of another unit than that of the best run are switched off at first; the buttons at the top show them.'));
  place.append(make(
      'p', {class: 'note'},
      make(
          'small', {},
          'Drag over a chart to look closely, double-click for all of it. With the keyboard: ← → move the ' +
              'cursor, + and - change the range, Escape shows all.')));
}

/** Far above nearly all norms there are but those of runs that diverge. NaN: none is. */
function mostNorm() {
  const all =
      page.runs
          .flatMap(
              (run, i) => view.off.has(i) || !run.train.gradient_norm ? [] : [...series(run.train.gradient_norm).y])
          .filter(Number.isFinite)
          .sort((a, b) => a - b);
  const bound = 30 * all[Math.floor(0.9 * (all.length - 1))];
  return all[all.length - 1] > bound ? bound : NaN;
}

function drawProgress() {
  const place = byId('progress-charts');
  if (!hasCharts) return place.closest('section').classList.add('hidden');
  const multiples = make('div', {class: 'multiples'});
  place.replaceChildren(multiples);
  const add = (title, pick, options = {}, lines = () => ofRuns(pick, options.value)) => {
    if (page.runs.some(run => pick(run))) new LineChart(multiples, title, lines, options);
  };
  // A rate thirty times that of the others would hide them.
  const rates = page.runs.map(run => series(run.train.rate))
                    .filter(Boolean)
                    .map(line => Math.max(...line.y.filter(Number.isFinite)));
  add('Learning rate', run => run.train.rate,
      {fromZero: true, logY: () => Math.max(...rates) > 30 * Math.min(...rates)});
  // The clip line of each run in its colour, where there is one.
  add('Gradient norm', run => run.train.gradient_norm, {logY: () => true, most: mostNorm},
      () =>
          [...ofRuns(run => run.train.gradient_norm, null, {logY: () => true, width: 1.2}),
           ...page.runs.flatMap((run, i) => {
             const line = series(run.train.gradient_norm);
             return !line || !(run.clip > 0) ? [] : [{
               run: i,
               name: 'clip',
               still: true,
               dash: [3, 3],
               width: 1,
               points: points(run, {x: [line.x[0], line.x[line.x.length - 1]], y: [run.clip, run.clip]})
             }];
           })]);
  add('Share of tensors above the clip', run => run.train.above_clip,
      {fromZero: true, unit: '%', value: (run, y) => 100 * y});
  add('Tokens per second', run => run.train.tokens_per_second, {fromZero: true});
  add('Mean span', run => run.train.mean_span, {unit: 'positions'});
  place.closest('section').classList.toggle('hidden', !multiples.children.length);
}
