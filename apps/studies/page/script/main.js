'use strict';
// Puts the page together: its parts, the buttons of runs, dark and light, paper, and what a live page asks for.

/** Whether a part has more to show than words that say what it lacks. */
const hasContent = part => [...part.children].some(
    child =>
        !child.matches('h2, .about, .note, noscript') && (child.childElementCount > 0 || child.id === 'loss-chart'));

function drawContents() {
  const contents = byId('contents');
  contents.replaceChildren(...[...document.querySelectorAll('main section:not(.hidden) > h2')]
                               .filter(title => hasContent(title.parentElement))
                               .map(title => make('a', {href: '#' + title.parentElement.id}, title.textContent)));
}

function drawLegend() {
  const legend = byId('legend');
  if (page.runs.length < 2) return;
  legend.replaceChildren(...page.runs.map((run, i) => {
    const button = make(
        'button', {
          class: 'choice',
          type: 'button',
          'aria-pressed': String(!view.off.has(i)),
          title: 'Show or hide this run; with Shift, it alone'
        },
        make('i', {class: 'chip c' + i % 8}), run.name);
    button.addEventListener('click', event => {
      const alone = event.shiftKey && !(view.off.size === page.runs.length - 1 && !view.off.has(i));
      if (event.shiftKey)
        view.off = new Set(alone ? page.runs.map((_, k) => k).filter(k => k !== i) : []);
      else if (view.off.has(i))
        view.off.delete(i);
      else
        view.off.add(i);
      [...legend.children].forEach((other, k) => other.setAttribute('aria-pressed', String(!view.off.has(k))));
      showOff();
      redrawCharts();
    });
    return button;
  }));
}
function showOff() {
  for (const row of document.querySelectorAll('#runs-table tbody tr'))
    row.classList.toggle('off', view.off.has(Number(row.dataset.run)));
}

function drawRuns() {
  const table = byId('runs-table');
  if (!table) return;
  sortable(table, table.tHead.rows[0].cells.length);
  showOff();
}

/** Everything that has colours of its own in it. */
function drawAll() {
  drawLoss();
  drawProgress();
  drawSpans();
  drawAttention();
  drawMemories();
  drawTensors();
  sweepCharts();
  drawContents();
}

function drawTools() {
  const isDark = () =>
      root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  const button = make('button', {class: 'button', type: 'button', id: 'theme'}, isDark() ? 'Light' : 'Dark');
  button.addEventListener('click', () => {
    root.dataset.theme = isDark() ? 'light' : 'dark';
    button.textContent = isDark() ? 'Light' : 'Dark';
    drawAll();
  });
  byId('tools').append(button);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    if (root.dataset.theme) return;
    button.textContent = isDark() ? 'Light' : 'Dark';
    drawAll();
  });
  // Paper is light, and shows all of the page.
  let before = null, closed = [];
  addEventListener('beforeprint', () => {
    before = root.dataset.theme || null;
    root.dataset.theme = 'light';
    closed = [...document.querySelectorAll('#provenance details:not([open])')];
    for (const element of closed) element.open = true;
    drawAll();
    for (const element of [...waiting.keys()]) drawNow(element);
  });
  addEventListener('afterprint', () => {
    if (before === null)
      delete root.dataset.theme;
    else
      root.dataset.theme = before;
    for (const element of closed) element.open = false;
    drawAll();
  });
}

/** Commands get a button that copies them, where the browser lets a page do that. */
function drawCopies() {
  if (!navigator.clipboard) return;
  for (const command of document.querySelectorAll('.command')) {
    if (command.querySelector('button')) continue;
    const words = command.textContent, button = make('button', {class: 'button', type: 'button'}, 'Copy');
    button.addEventListener('click', () => navigator.clipboard.writeText(words).then(() => {
      button.textContent = 'Copied';
    }, () => {}));
    command.prepend(button);
  }
}

/** A page of `engram watch` asks for what has changed, every two seconds while somebody sees it. */
function live() {
  const said = make('span', {class: 'live', role: 'status'}, '● live');
  byId('tools').prepend(said);
  let version = '';
  const ask = async () => {
    if (document.hidden) return;
    try {
      const answer = await fetch('data?since=' + encodeURIComponent(version), {cache: 'no-store'});
      said.textContent = '● live';
      said.classList.remove('lost');
      if (answer.status === 204) return;
      const fresh = await answer.json();
      version = fresh.version;
      if (fresh.runs.length !== page.runs.length || fresh.studied !== page.studied) return location.reload();
      page.runs = fresh.runs;
      for (const [id, html] of [
               ['head', fresh.head], ['samples', fresh.samples], ['memory', fresh.memory],
               ['provenance', fresh.provenance]])
        replacePart(id, html);
      drawRuns();
      drawCopies();
      refreshCharts();
      drawContents();
    } catch (error) {
      said.textContent = '● the program has ended';
      said.classList.add('lost');
    }
  };
  setInterval(ask, 2000);
  document.addEventListener('visibilitychange', ask);
  ask();
}
/** What the program wrote in the place of a part, but for its title. */
function replacePart(id, html) {
  const part = byId(id);
  if (!part) return;
  for (const old of [...part.children])
    if (!old.matches('h2, .about')) old.remove();
  part.insertAdjacentHTML('beforeend', html);
}
let drawnParts = '';
function refreshCharts() {
  // Parts that were not there before are drawn anew, the others go on where they are.
  const parts = JSON.stringify(page.runs.map(run => [Object.keys(run.train), Object.keys(run.valid), !!run.spans]));
  if (parts !== drawnParts) {
    drawnParts = parts;
    return drawAll();
  }
  const slider = document.querySelector('#span-maps input');
  // Who looks at an earlier step is left there.
  if (!slider || slider.value === slider.max) drawSpans();
  sweepCharts();
  redrawCharts();
}

drawTools();
drawRuns();
drawLegend();
drawAll();
drawCopies();
drawnParts = JSON.stringify(page.runs.map(run => [Object.keys(run.train), Object.keys(run.valid), !!run.spans]));
if (page.live) live();
root.dataset.ready = 'true';
