'use strict';
// In the part "Attention": how much weight several models give to what lies so many positions back.

/** The mean weight by distance over all heads of a run that see the text. */
function meanDistances(maps) {
  const heads = maps.heads.filter(head => head.context), sums = [];
  for (const head of heads)
    distancesOf(head).forEach((weight, i) => sums[i] = (sums[i] || 0) + weight / heads.length);
  return sums;
}

/** One line for each model that was read; nothing for a single one. */
function drawOffsets(place) {
  const runs = page.runs.map((run, i) => i).filter(i => page.studies[i].attention);
  if (!hasCharts || runs.length < 2) return;
  const part = make('div', {id: 'offsets', style: 'margin-top:.8rem'});
  place.append(part);
  const lines = () => runs.map(run => {
    const maps = page.studies[run].attention;
    return {
      run,
      name: page.runs[run].name,
      points: meanDistances(maps).map((weight, i) => ({x: -(maps.nearest + i), y: 100 * weight}))
    };
  });
  // Windows of recurrent models are short beside what others see: the nearest positions are what they share.
  const shortest = Math.min(...lines().map(line => line.points.length));
  const farthest = Math.max(16, 2 * shortest);
  new LineChart(
      part, 'Mean weight by offset, all models',
      () => lines().map(line => ({...line, points: line.points.filter(point => point.x >= -farthest).reverse()})), {
        axis: {name: 'offset, positions', type: 'linear'},
        unit: '%, mean over all heads that see the text, in its second half',
        fromZero: true,
        tall: true
      });
}
