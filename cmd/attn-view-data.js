'use strict';

/*
 * The data of the page, and how they are named and coloured.
 *
 * One script, in files read one after the other: data, heads (the lines), grid
 * (all heads), map (one of them), main (controls).  Text of the record reaches
 * the page through textContent, attributes and fillText only.
 */

const data = JSON.parse(document.getElementById('data').textContent);
const blocks = document.querySelectorAll('script.layer');
const L = blocks.length, H = data.H, T = data.T, S = data.S;

/* What is shown; the controls of main change it and then call redraw(). */
const state = {
    layer: 0,
    head: 0,
    on: Array(H).fill(true), /* the heads whose lines are drawn */
    rows: [],                /* the queries that are shown, as indices */
    cols: [],                /* the keys */
    least: 0.01,             /* no lines below this weight */
    zoom: 1,
    own: false,              /* colours over the range of each map */
};

const $ = (id) => document.getElementById(id);

/* A new element with its properties, within `parent`. */
function element(parent, name, properties) {
    return parent.appendChild(
        Object.assign(document.createElement(name), properties));
}

/* A read-out says what is new only, or a screen reader would repeat it. */
function say(id, text) {
    if ($(id).textContent !== text)
        $(id).textContent = text;
}

/* --- Numbers --- */

/* Bytes of base64, and `n` numbers of them. */
function numbers(text) {
    const raw = atob(text), bytes = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++)
        bytes[i] = raw.charCodeAt(i);
    const view = new DataView(bytes.buffer), width = data.weights ? 2 : 4;
    const out = new Float32Array(raw.length / width);
    for (let i = 0; i < out.length; i++)
        out[i] = data.weights ? view.getUint16(2 * i, true) / 1e4
            : view.getFloat32(4 * i, true);
    return out;
}

/* Rows of S numbers, of rows that end at the query's own position. */
function square(packed) {
    const out = new Float32Array(H * T * S);
    for (let i = 0, from = 0; i < H * T; i++) {
        const n = S - T + i % T + 1;
        out.set(packed.subarray(from, from + n), i * S);
        from += n;
    }
    return out;
}

const layers = [];

/* Map [T][S] of a head, decoded when its layer is first asked for. */
function map(l, h) {
    if (!layers[l]) {
        const packed = numbers(blocks[l].textContent);
        layers[l] = data.causal ? square(packed) : packed;
    }
    return layers[l].subarray(h * T * S, (h + 1) * T * S);
}

/* As many digits as tell the number in the record: four of a weight, else the
 * fewest that read back as the same float32. */
function digits(x) {
    if (data.weights)
        return x.toFixed(4);
    for (let n = 1; n < 9; n++)
        if (Math.fround(Number(x.toPrecision(n))) === x)
            return String(Number(x.toPrecision(n)));
    return String(Number(x.toPrecision(9)));
}

/* --- Names --- */

const layerNumber = (l) => data.layers ? data.layers[l] : l;
const headNumber = (h) => data.heads ? data.heads[h] : h;

/* "layer 0, head 3", as far as the record has layers and heads. */
function headName(l, h) {
    return [L > 1 || data.layers ? 'layer ' + layerNumber(l) : '',
        H > 1 || data.heads ? 'head ' + headNumber(h) : '']
        .filter((s) => s).join(', ') || data.field;
}

/* A label where it stands alone: spaces can be seen. */
function label(axis, i) {
    return axis.labels ? axis.labels[i].replace(/ /g, '\u00b7') : String(i);
}

/* And within a sentence: query 2 "like"; the beginning of a long one. */
function inWords(axis, i) {
    const name = (axis.title || (axis === data.key ? 'column' : 'row'))
        + ' ' + i;
    if (!axis.labels)
        return name;
    const all = Array.from(axis.labels[i]);
    const cut = all.length > 40 ? all.slice(0, 39).join('') + '\u2026'
        : axis.labels[i];
    return `${name} \u201c${cut}\u201d`;
}

/* --- Colours --- */

/* 256 colours, given as RRGGBB, as ImageData has them: a word a pixel. */
const palette = new Uint32Array(256);
const paletteBytes = new Uint8Array(palette.buffer).fill(255);
for (let i = 0; i < 256; i++)
    for (let c = 0; c < 3; c++) {
        const at = 6 * i + 2 * c;
        paletteBytes[4 * i + c] = parseInt(data.palette.slice(at, at + 2), 16);
    }

/* The range of colours: the record's, or that of the map. */
function range(m) {
    if (!state.own)
        return [data.lo, data.hi];
    let lo = Infinity, hi = -Infinity;
    for (const t of state.rows)
        for (const s of state.cols) {
            const x = m[t * S + s];
            if (x < lo && x > -Infinity)
                lo = x;
            if (x > hi && x < Infinity)
                hi = x;
        }
    return lo <= hi ? [data.weights ? 0 : lo, hi] : [data.lo, data.hi];
}

function colour(x, lo, hi) {
    if (!(hi > lo))
        return x > hi ? 255 : x < lo ? 0 : 128;
    return Math.max(0, Math.min(255, Math.round((x - lo) / (hi - lo) * 255)));
}

/*
 * The cells of rows x cols as an image, a pixel a cell; more than `most` of
 * either are drawn by blocks, each as the largest number in it.
 */
function paint(m, rows, cols, most) {
    const down = Math.ceil(rows.length / most) || 1;
    const across = Math.ceil(cols.length / most) || 1;
    const image = new ImageData(Math.ceil(cols.length / across) || 1,
        Math.ceil(rows.length / down) || 1);
    const pixel = new Uint32Array(image.data.buffer), width = image.width;
    const large = new Float32Array(pixel.length).fill(-Infinity);
    const [lo, hi] = range(m);
    for (let i = 0; i < rows.length; i++) {
        const at = Math.floor(i / down) * width, from = rows[i] * S;
        for (let j = 0; j < cols.length; j++) {
            const x = m[from + cols[j]], k = at + Math.floor(j / across);
            if (x > large[k])
                large[k] = x;
        }
    }
    for (let k = 0; k < pixel.length; k++)
        pixel[k] = palette[colour(large[k], lo, hi)];
    return image;
}

/* Of head h: neighbours differ in hue and in lightness. */
function headColour(h, alpha) {
    const dark = document.documentElement.dataset.shade === 'dark';
    const light = dark ? h % 2 ? 0.68 : 0.8 : h % 2 ? 0.42 : 0.53;
    const hue = Math.round(360 * h / H + 255) % 360;
    return `oklch(${light} 0.17 ${hue} / ${alpha.toFixed(3)})`;
}

/* --- Canvases --- */

/* A colour of the style sheet. */
function styled(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name)
        .trim();
}

/* A canvas of so many CSS pixels, cleared, one unit a CSS pixel. */
function fresh(canvas, width, height) {
    const scale = window.devicePixelRatio || 1;
    const w = Math.round(width * scale), h = Math.round(height * scale);
    if (canvas.width !== w || canvas.height !== h) {
        canvas.width = w;
        canvas.height = h;
        canvas.style.width = width + 'px';
        canvas.style.height = height + 'px';
    }
    const c = canvas.getContext('2d');
    c.setTransform(scale, 0, 0, scale, 0, 0);
    c.clearRect(0, 0, width, height);
    return c;
}

/* One element of many takes the focus; the others are left to the arrows. */
function rove(items, k) {
    for (const item of items)
        item.tabIndex = item === items[k] ? 0 : -1;
}

/* Where an arrow key, Home or End leads from k of n, in rows of `across`; -1
 * for another key. */
function step(key, k, n, across) {
    const to = { ArrowLeft: k - 1, ArrowRight: k + 1, ArrowUp: k - across,
        ArrowDown: k + across, Home: 0, End: n - 1 }[key];
    return to === undefined ? -1 : to < 0 || to >= n ? k : to;
}
