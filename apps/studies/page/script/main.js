'use strict';
// Puts the page together: its parts, the buttons of runs, dark and light, paper, and what a live page asks for.

/** Whether a part has more to show than words that say what it lacks. */
const hasContent = part => [...part.children].some(
    child =>
        !child.matches('h2, .about, .note, noscript') && (child.childElementCount > 0 || child.id === 'loss-chart'));

function drawContents() {
  const titles =
      [...document.querySelectorAll('main section:not(.hidden) > h2')].filter(title => hasContent(title.parentElement));
  const links = titles.map(title => make('a', {href: '#' + title.parentElement.id}, title.textContent));
  const contents = byId('contents'), address = link => link.getAttribute('href');
  // Links that are the same keep the focus.
  if (links.map(address).join() !== [...contents.children].map(address).join()) contents.replaceChildren(...links);
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
  sortable(table, table.tHead.rows[0].cells.length, 'runs');
  showOff();
}

/** Everything that has colours of its own in it. */
function drawAll() {
  drawLoss();
  drawProgress();
  drawComparison();
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
  const tell = (words, lost) => {
    said.textContent = '● ' + words;
    said.classList.toggle('lost', lost);
  };
  const ask = async () => {
    let answer;
    try {
      answer = await fetch('data?since=' + encodeURIComponent(page.version), {cache: 'no-store'});
    } catch (error) {
      return tell('the program has ended', true);
    }
    if (!answer.ok) return tell(`the program answers with an error, ${answer.status}`, true);
    if (answer.status !== 204) refresh(await answer.json());
    tell('live', false);
  };
  // One question at a time: while a checkpoint is studied the answer takes its time.
  let isAsking = false;
  const askOnce = () => {
    if (document.hidden || isAsking) return;
    isAsking = true;
    ask().finally(() => isAsking = false);
  };
  setInterval(askOnce, 2000);
  document.addEventListener('visibilitychange', askOnce);
  askOnce();
}
/** Shows what has changed, where it is. */
function refresh(fresh) {
  // Another study of the models, other runs, or another program at this address.
  if (fresh.runs.length !== page.runs.length || fresh.studied !== page.studied) return location.reload();
  page.version = fresh.version;
  page.best = fresh.best;
  page.runs = page.runs.map((run, i) => fresh.runs[i] || run);
  const parts = ['head', 'samples', 'memory', 'provenance'].filter(id => replacePart(id, fresh[id]));
  if (parts.includes('head')) drawRuns();
  drawCopies();
  for (const id of parts) putBack(id);
  refreshCharts();
  drawContents();
}

/** What was written into a part last, and what its reader had done there. */
const writtenParts = new Map();
/** Puts what the program wrote in the place of a part, but for its title. False: it is what is there. */
function replacePart(id, html) {
  const part = byId(id), before = writtenParts.get(id);
  if (!part || (before && before.html === html)) return false;
  writtenParts.set(
      id, {html, details: opened(part), focus: focused(part), scrolled: scrolls(part).map(one => one.scrollLeft)});
  for (const old of [...part.children])
    if (!old.matches('h2, .about')) old.remove();
  part.insertAdjacentHTML('beforeend', html);
  return true;
}
function putBack(id) {
  const part = byId(id), {details, focus, scrolled} = writtenParts.get(id);
  for (const [key, element] of detailsOf(part))
    if (details.has(key)) element.open = details.get(key);
  scrolls(part).forEach((element, i) => element.scrollLeft = scrolled[i] || 0);
  const stop = focus && stopsOf(part).get(focus);
  if (stop) stop.focus({preventScroll: true});
}
const scrolls = part => [...part.querySelectorAll('.scroll')];
/** Elements of a part by the run that they are of, their kind, and how many of the same come before them. */
function keyed(part, selector, kind) {
  const seen = new Map();
  return new Map([...part.querySelectorAll(selector)].map(element => {
    const owner = element.closest('[data-run]'), name = `${owner ? owner.dataset.run : ''} ${kind(element)}`;
    seen.set(name, (seen.get(name) || 0) + 1);
    return [`${name} ${seen.get(name)}`, element];
  }));
}
const detailsOf = part => keyed(part, 'details', element => element.className);
/** What can have the focus. The words of a summary count what is in it. */
const stopsOf = part => keyed(
    part, 'button, a, summary, [tabindex]',
    element => element.tagName + (element.matches('button, a') ? element.textContent : ''));
const opened = part => new Map([...detailsOf(part)].map(([key, element]) => [key, element.open]));
/** The key of what has the focus in a part; undefined: nothing has. */
const focused = part => ([...stopsOf(part)].find(([, element]) => element === document.activeElement) || [])[0];

/** Which parts there are: others are drawn anew. */
const partsOfRuns = () => JSON.stringify(page.runs.map(
    run => [Object.keys(run.train), Object.keys(run.valid), Object.keys(run.figures), !!run.spans, run.score]));
let drawnParts = '';
function refreshCharts() {
  // Parts that were not there before are drawn anew, the others go on where they are.
  const parts = partsOfRuns();
  if (parts !== drawnParts) {
    drawnParts = parts;
    return drawAll();
  }
  refreshSpans();
  sweepCharts();
  redrawCharts();
}

drawTools();
drawRuns();
drawLegend();
drawAll();
drawCopies();
drawnParts = partsOfRuns();
if (page.live) live();
root.dataset.ready = 'true';
