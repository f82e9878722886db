/* The controls, the views, and the one place where drawing begins. */

const views = { heads: drawHeads, grid: drawGrid, map: drawHeatMap };
const offered = Object.keys(views).filter((v) => v === 'map'
    || L * H > 1 && v === 'grid' || data.weights && v === 'heads');
let view = offered[0];
let waiting = false;

/* Draws what is shown, once a frame however often it is called. */
function redraw() {
    if (waiting)
        return;
    waiting = true;
    requestAnimationFrame(() => {
        waiting = false;
        const start = performance.now();
        views[view]();
        drawBar();
        document.body.dataset.drawn = (performance.now() - start).toFixed(1);
    });
}

/* --- Views --- */

function showView(name) {
    view = name;
    for (const v of Object.keys(views)) {
        const tab = $('tab-' + v);
        tab.hidden = !offered.includes(v) || offered.length === 1;
        tab.setAttribute('aria-selected', v === view);
        tab.tabIndex = v === view ? 0 : -1;
        $(v).hidden = v !== view;
    }
    $('tabs').hidden = offered.length === 1;
    $('layer-control').hidden = L < 2 || view === 'grid';
    $('head-control').hidden = H < 2 || view !== 'map';
    $('least-control').hidden = view !== 'heads';
    $('zoom-control').hidden = view !== 'map';
    $('own-control').hidden = view === 'heads' || L * H === 1 && !data.weights;
    $('bar').hidden = view === 'heads';
    $('keys').hidden = H < 2;
    showChoice();
    redraw();
}

function listenToTabs() {
    offered.forEach((v, k) => {
        const tab = $('tab-' + v);
        tab.addEventListener('click', () => showView(v));
        tab.addEventListener('keydown', (e) => {
            const to = step(e.key, k, offered.length, 1);
            if (to < 0)
                return;
            e.preventDefault();
            showView(offered[to]);
            $('tab-' + offered[to]).focus();
        });
    });
}

function focusGrid() {
    const k = state.layer * H + state.head;
    rove(grid.cells, k);
    grid.cells[k].focus();
}

/* --- Controls --- */

function showChoice() {
    $('layer').value = $('layer-slider').value = state.layer;
    $('layer-slider').setAttribute('aria-valuetext',
        'layer ' + layerNumber(state.layer));
    $('head').value = state.head;
    $('least').value = Math.round(state.least * 100);
    $('least-value').textContent = state.least.toFixed(2);
}

function setLayer(l) {
    state.layer = Math.max(0, Math.min(L - 1, l));
    showChoice();
    redraw();
}

/* A pair's queries and keys; -1 is both sentences. */
const PAIRS = [['all', -1, -1], ['A \u2192 A', 0, 0], ['A \u2192 B', 0, 1],
    ['B \u2192 A', 1, 0], ['B \u2192 B', 1, 1]];

function setPair(k) {
    const shown = (axis, n, part) => {
        const all = Array.from({ length: n }, (_, i) => i);
        return part < 0 || !axis.parts ? all
            : all.filter((i) => axis.parts[i] === part);
    };
    state.rows = shown(data.query, T, PAIRS[k][1]);
    state.cols = shown(data.key, S, PAIRS[k][2]);
    cursor.row = cursor.col = -1;
    if (data.weights)
        makeTokens();
    spoilGrid();
    redraw();
}

/* Whether both axes have both sentences. */
function hasPairs() {
    return [data.query, data.key].every((axis) => axis.parts
        && axis.parts.includes(0) && axis.parts.includes(1));
}

function makeControls() {
    for (let l = 0; l < L; l++)
        element($('layer'), 'option', { value: l,
            textContent: layerNumber(l) });
    for (let h = 0; h < H; h++)
        element($('head'), 'option', { value: h,
            textContent: headNumber(h) });
    PAIRS.forEach(([name], k) => element($('pair'), 'option', { value: k,
        textContent: name }));
    $('pair-control').hidden = !hasPairs();
    $('layer-slider').max = L - 1;
    const on = (id, type, set) => $(id).addEventListener(type, (e) => {
        set(e.target);
        redraw();
    });
    on('layer', 'change', (e) => setLayer(Number(e.value)));
    on('layer-slider', 'input', (e) => setLayer(Number(e.value)));
    on('head', 'change', (e) => { state.head = Number(e.value); });
    on('pair', 'change', (e) => setPair(Number(e.value)));
    on('least', 'input', (e) => {
        state.least = e.value / 100;
        showChoice();
    });
    on('zoom', 'input', (e) => { state.zoom = Math.pow(2, e.value / 4); });
    on('own', 'change', (e) => {
        state.own = e.checked;
        spoilGrid();
    });
    $('controls').addEventListener('submit', (e) => e.preventDefault());
}

/* --- The bar of colours, light and dark --- */

function drawBar() {
    const [lo, hi] = view === 'map' ? range(map(state.layer, state.head))
        : state.own ? ['least', 'most'] : [data.lo, data.hi];
    const text = (x) => typeof x === 'string' ? x
        : String(Number(x.toPrecision(4)));
    $('bar-low').textContent = text(lo);
    $('bar-high').textContent = text(hi);
    $('bar').setAttribute('aria-label',
        `Colours: from ${text(lo)} to ${text(hi)}`);
}

function paintBar() {
    const image = new ImageData(256, 1);
    new Uint32Array(image.data.buffer).set(palette);
    $('bar-canvas').getContext('2d').putImageData(image, 0, 0);
}

/* What the system prefers, until the button says something else. */
function listenToShade() {
    const system = window.matchMedia('(prefers-color-scheme: dark)');
    let chosen = '';
    const set = () => {
        const shade = chosen || (system.matches ? 'dark' : 'light');
        document.documentElement.dataset.shade = shade;
        $('theme').textContent = shade === 'dark' ? 'Light' : 'Dark';
        $('theme').setAttribute('aria-label', shade === 'dark'
            ? 'Light colours' : 'Dark colours');
        redraw();
    };
    system.addEventListener('change', set);
    $('theme').addEventListener('click', () => {
        chosen = document.documentElement.dataset.shade === 'dark' ? 'light'
            : 'dark';
        set();
    });
    set();
}

/* --- Start --- */

function plural(n, what) {
    return n + ' ' + what + (n === 1 ? '' : 's');
}

function start() {
    $('title').textContent = data.title || data.field;
    $('summary').textContent = [
        [data.layers ? plural(L, 'layer') : '',
            data.heads ? plural(H, 'head') : '']
            .filter((s) => s).join(' \u00d7 '),
        data.same ? plural(T, 'token') : `${T} \u00d7 ${S}`,
    ].filter((s) => s).join(', ');
    makeControls();
    if (data.weights) {
        makeHeadKeys();
        listenToTokens();
    }
    makeGrid();
    setPair(0);
    listenToMap();
    listenToTabs();
    paintBar();
    listenToShade();
    showView(view);
    new ResizeObserver(redraw).observe($('controls'));
    document.body.dataset.ready = 'yes';
}

start();
