'use strict';
// The part "Comparison": what runs came to against a key in which they differ.

const compared = [
  ['best', 'best validation loss'], ['last', 'last validation loss'], ['test', 'test'], ['parameters', 'parameters'],
  ['speed', 'tokens a second'], ['seconds', 'seconds of training']
];
const setting = (run, key) => page.settings.runs[run][key] ?? '';
const isNumber = text => text !== '' && Number.isFinite(Number(text));
/** Runs with a configuration and a value of the figure, that are not switched off. Those that failed say nothing. */
const comparedRuns = figure => page.runs.map((run, i) => i).filter(
    i => !view.off.has(i) && page.runs[i].figures[figure] !== undefined && Object.keys(page.settings.runs[i]).length &&
        !['diverged', 'out of memory'].includes(page.runs[i].state));
/** Keys that may be an axis: seeds are what is averaged over. */
const comparedKeys = () => page.settings.keys.filter(key => key !== 'training.seed');

function comparedValue(run, figure) {
  const value = page.runs[run].figures[figure];
  return figure === 'best' || figure === 'last' ? loss(page.runs[run], value) : value;
}

/** The keys that runs with the same value of one still differ in: each of their values is a line. */
function lineKeys(runs, axis) {
  return comparedKeys().filter(key => {
    if (key === axis) return false;
    const seen = new Map();
    return runs.some(run => {
      const x = setting(run, axis), value = setting(run, key);
      if (!seen.has(x)) seen.set(x, value);
      return seen.get(x) !== value;
    });
  });
}
const shortKey = key => key.slice(key.indexOf('.') + 1).replaceAll('_', ' ');

/** {lines, names}: names of the x axis where its values are no numbers. */
function comparison(figure, axis) {
  const runs = comparedRuns(figure), values = [...new Set(runs.map(run => setting(run, axis)))];
  const names = values.every(isNumber) ? null : values;
  const keys = lineKeys(runs, axis), groups = new Map();
  for (const run of runs) {
    const name = keys.map(key => `${shortKey(key)} ${setting(run, key) || '-'}`).join(', ') || 'mean of the runs';
    const x = names ? values.indexOf(setting(run, axis)) : Number(setting(run, axis));
    if (!groups.has(name)) groups.set(name, new Map());
    const line = groups.get(name), value = comparedValue(run, figure);
    if (Number.isFinite(value)) line.set(x, [...(line.get(x) || []), value]);
  }
  const inOrder = [...groups].sort((a, b) => a[0].localeCompare(b[0], 'en', {numeric: true}));
  const lines = inOrder.flatMap(([name, line], i) => {
    const ink = style('--c' + i % 8), at = [...line].sort((a, b) => a[0] - b[0]);
    const mean = at.map(([x, all]) => ({x, y: all.reduce((sum, y) => sum + y, 0) / all.length}));
    const ranges =
        at.filter(([, all]) => all.length > 1)
            .map(([x, all]) => ({
                   name: name + ', range',
                   colour: ink,
                   faint: true,
                   width: 5,
                   points: [{x, y: Math.min(...all)}, {x, y: Math.max(...all)}]
                 }));
    const dash = [[], [7, 4], [2, 3]][Math.floor(i / 8) % 3];
    return [{name, colour: ink, dash, marked: true, dots: Boolean(names), points: mean}, ...ranges];
  });
  return {lines, names};
}

function drawComparison() {
  const place = byId('comparison-chart'), keys = comparedKeys();
  const figures = compared.filter(([figure]) => page.runs.some(run => run.figures[figure] !== undefined));
  const several = keys.filter(key => new Set(page.runs.map((_, i) => setting(i, key)).filter(Boolean)).size > 1);
  const has = hasCharts && several.length > 0 && figures.length > 0;
  place.closest('section').classList.toggle('hidden', !has);
  if (!has) return place.replaceChildren();
  if (!figures.some(([figure]) => figure === view.compared)) view.compared = figures[0][0];
  // The key with the most values says most.
  const count = key => new Set(page.runs.map((_, i) => setting(i, key))).size;
  if (!several.includes(view.comparedKey))
    view.comparedKey = several.reduce((best, key) => count(key) > count(best) ? key : best);
  const chart = make('div');
  const draw = () => {
    chart.replaceChildren();
    const axis = view.comparedKey, names = () => comparison(view.compared, axis).names;
    const words = figures.find(([figure]) => figure === view.compared)[1];
    new LineChart(
        chart, `${words[0].toUpperCase()}${words.slice(1)} by ${shortKey(axis)}`,
        () => comparison(view.compared, axis).lines, {
          tall: true,
          axis: {name: axis, names, type: view.comparedLog && !names() ? 'logarithmic' : 'linear'},
          unit: () => ['best', 'last'].includes(view.compared) ? lossUnit() : ''
        });
    sweepCharts();
  };
  place.replaceChildren(
      make(
          'div', {class: 'controls'},
          choices('Show', figures, view.compared,
                  figure => {
                    view.compared = figure;
                    draw();
                  }),
          choices('Against', several.map(key => [key, key]), view.comparedKey,
                  key => {
                    view.comparedKey = key;
                    draw();
                  }),
          make('div', {class: 'group', role: 'group', 'aria-label': 'Logarithmic key'}, 'Log ',
               toggle('key', view.comparedLog, on => {
                 view.comparedLog = on;
                 draw();
               }))),
      chart,
      make(
          'p', {class: 'note'},
          'Of runs that failed nothing is shown, and those that are switched off are left out. The command ' +
              'engram figure draws the same for papers.'));
  draw();
}
