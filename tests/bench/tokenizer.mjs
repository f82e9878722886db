// The part of tokenizer.sh that wants JavaScript: the corpora, and the other
// tokenizers, which are npm packages installed in DIR/node_modules.
//
//   node tokenizer.mjs corpus DIR          DIR/unpacked to DIR/*.txt
//   node tokenizer.mjs check DIR ENC TEXT  ids on standard input, as NDJSON,
//                                          against those of the others
//   node tokenizer.mjs time DIR ENC TEXT   encodes each line, in memory; says
//                                          `NAME WALL CPU` of each, in s
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

// ---- Corpora -------------------------------------------------------------

// Where the text is: English and C by package, mixed languages as a script
// that a line must be written in and the places where to look.
const handbook = 'debian-handbook/usr/share/doc/debian-handbook/html/';
const guide = 'installation-guide-amd64/usr/share/doc/' +
    'installation-guide-amd64/';
const english = ['anarchism/usr/share/doc/anarchism/html', 'fortunes',
    handbook + 'en-US', 'debian-reference-en', guide + 'en'];
const code = ['openafs-modules-dkms',
    ...('argp elf io libio malloc misc nptl nss posix resolv stdio-common ' +
    'stdlib string sunrpc time wcsmbs').split(' ').map(dir => 'glibc/' + dir)];
const kana = /[\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Han}]/gu;
const accent = /(?=[^\0-\x7f])\p{sc=Latin}/gu;
const mixed = [
    [accent, handbook + 'fr-FR', guide + 'fr'],
    [/\p{sc=Cyrillic}/gu, handbook + 'ru-RU', guide + 'ru'],
    [/\p{sc=Han}/gu, handbook + 'zh-CN', guide + 'zh_CN'],
    [/\p{sc=Arabic}/gu, handbook + 'ar-MA', 'libreoffice-l10n-ar'],
    [/\p{sc=Greek}/gu, guide + 'el', 'libreoffice-help-el'],
    [/\p{sc=Thai}/gu, 'libreoffice-l10n-th'],
    [accent, handbook + 'de-DE', guide + 'de'],
    [kana, handbook + 'ja-JP', guide + 'ja'],
    [/\p{sc=Devanagari}/gu, 'libreoffice-help-hi', 'libreoffice-l10n-hi'],
    [accent, handbook + 'pl-PL', handbook + 'cs-CZ'],
    [/\p{sc=Hangul}/gu, guide + 'ko', 'libreoffice-help-ko'],
    [/\p{sc=Hebrew}/gu, 'libreoffice-l10n-he'],
    [/\p{sc=Tamil}/gu, 'libreoffice-l10n-ta'],
    [accent, handbook + 'vi-VN', guide + 'vi'],
    [/\p{sc=Bengali}/gu, 'libreoffice-l10n-bn'],
];
const SHARE = 800000;           // bytes of each language, where there are
const BLOCK = 16000;            // of these in turn

const entities = { amp: '&', lt: '<', gt: '>', quot: '"', nbsp: '\u00a0' };

// The paragraphs of a page.
function htmlLines(page) {
    return page.replace(/<(script|style|head)\b[^]*?<\/\1>/gi, '')
        .replace(/<\/?(p|div|li|h\d|td|tr|pre|br|dt|dd|table)\b[^>]*>/gi, '\0')
        .replace(/<[^>]*>/g, '')
        .replace(/&#(\d+);/g, (all, n) => String.fromCodePoint(n))
        .replace(/&(\w+);/g, (all, name) => entities[name] ?? all)
        .split('\0').map(line => line.replace(/\s+/g, ' ').trim());
}

// The translated messages of a gettext catalogue; the first is its header.
function moLines(file) {
    const lines = [];
    const n = file.readUInt32LE(8), table = file.readUInt32LE(16);
    for (let i = 1; i < n; i++) {
        const size = file.readUInt32LE(table + 8 * i);
        const at = file.readUInt32LE(table + 8 * i + 4);
        lines.push(...file.toString('utf8', at, at + size).split(/[\0\n]/));
    }
    return lines;
}

// All files below a folder whose names match, in the order of their names.
function files(dir, pattern) {
    return fs.readdirSync(dir, { recursive: true, withFileTypes: true })
        .filter(f => f.isFile() && pattern.test(f.name))
        .map(f => path.join(f.parentPath ?? f.path, f.name)).sort();
}

// The lines of prose below some folders; none empty, none twice.
function prose(root, dirs, keep) {
    const lines = new Set();
    for (const dir of dirs)
        for (const name of files(path.join(root, dir),
            /\.(html|mo)$|^(?!changelog|copyright)[a-z0-9-]+$/)) {
            const file = fs.readFileSync(name);
            for (const line of name.endsWith('.mo') ? moLines(file)
                : name.endsWith('.html') ? htmlLines(file.toString())
                    : file.toString().split('\n'))
                if (line && !line.includes('\ufffd') && keep(line))
                    lines.add(line);
        }
    return [...lines];
}

// At least a third of a line's letters; of a line in Latin letters, one.
function written(script) {
    return line => {
        const n = line.match(script)?.length ?? 0;
        return script === accent ? n > 0
            : 3 * n > (line.match(/\p{L}/gu)?.length ?? 0);
    };
}

// One block of each language in turn, until each has had its share.
function interleave(languages) {
    const out = [];
    const all = languages.map(lines => ({ lines, at: 0, bytes: 0 }));
    for (let end = BLOCK; end <= SHARE; end += BLOCK)
        for (const x of all)
            while (x.bytes < end && x.at < x.lines.length) {
                x.bytes += Buffer.byteLength(x.lines[x.at]) + 1;
                out.push(x.lines[x.at++]);
            }
    return out;
}

function corpus(dir) {
    const root = path.join(dir, 'unpacked');
    const save = (name, lines) =>
        fs.writeFileSync(path.join(dir, name), lines.join('\n') + '\n');
    save('english.txt', prose(root, english, () => true));
    save('mixed.txt', interleave(mixed.map(([script, ...dirs]) =>
        prose(root, dirs, written(script)))));
    save('code.txt', code.flatMap(dir =>
        files(path.join(root, dir), /\.[ch]$/).flatMap(name =>
            fs.readFileSync(name, 'utf8').replace(/\n$/, '').split('\n'))
            .filter(line => !line.includes('\ufffd'))));
}

// ---- The other tokenizers ------------------------------------------------

// What each is called in the table.
const packages = {
    native: 'tiktoken-rs-node-linux-x64-gnu',
    wasm: 'tiktoken',
    hf: '@anush008/tokenizers',
};

// GPT-2's letter for each byte: itself where it prints, else the next from
// U+0100 on.
function byteLetters() {
    const letters = [];
    let next = 256;
    for (let b = 0; b < 256; b++) {
        const prints = b > 0x20 && b < 0x7f || b > 0xa0 && b !== 0xad;
        letters.push(String.fromCharCode(prints ? b : next++));
    }
    return letters;
}

// A tokenizer.json for HuggingFace's library, made from tiktoken's ranks.
// They do not say what two tokens each was merged from: merging its letters
// by the ranks below its own leaves those two.
function huggingFace(encoding) {
    const letters = byteLetters();
    const vocab = new Map(), merges = [];
    for (const line of encoding.bpe_ranks.split('\n')) {
        const [, first, ...tokens] = line.split(' ');
        tokens.forEach((token, i) => vocab.set(
            [...Buffer.from(token, 'base64')].map(b => letters[b]).join(''),
            Number(first) + i));
    }
    for (const [token, rank] of [...vocab].sort((a, b) => a[1] - b[1])) {
        const parts = [...token];
        while (parts.length > 2) {
            let best = rank, at = -1;
            for (let i = 0; i + 1 < parts.length; i++) {
                const r = vocab.get(parts[i] + parts[i + 1]) ?? rank;
                if (r < best) {
                    best = r;
                    at = i;
                }
            }
            if (at < 0)
                break;
            parts.splice(at, 2, parts[at] + parts[at + 1]);
        }
        if (parts.length === 2)
            merges.push(parts.join(' '));
    }
    return JSON.stringify({
        version: '1.0', truncation: null, padding: null, added_tokens: [],
        normalizer: null, post_processor: null, decoder: null,
        pre_tokenizer: { type: 'Sequence', pretokenizers: [
            { type: 'Split', pattern: { Regex: encoding.pat_str },
              behavior: 'Isolated', invert: false },
            { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true,
              use_regex: false }] },
        model: { type: 'BPE', dropout: null, unk_token: null,
                 continuing_subword_prefix: null, end_of_word_suffix: null,
                 fuse_unk: false, byte_fallback: false,
                 vocab: Object.fromEntries(vocab), merges },
    });
}

// What is installed, as functions from lines to a list of ids a line.
async function opponents(dir, name) {
    const require = createRequire(path.join(path.resolve(dir), 'package.json'));
    const makers = {
        native(lib) {
            const enc = lib.getEncoding(name);
            return lines => lines.map(line => enc.encode(line));
        },
        wasm(lib) {
            const enc = lib.get_encoding(name);
            return lines => lines.map(line => enc.encode_ordinary(line));
        },
        hf(lib) {
            const file = path.join(dir, name + '.tokenizer.json');
            if (!fs.existsSync(file))
                fs.writeFileSync(file, huggingFace(
                    require(`tiktoken/encoders/${name}.json`)));
            const enc = lib.Tokenizer.fromFile(file);
            return async lines =>
                (await enc.encodeBatch(lines)).map(x => x.getIds());
        },
    };
    const found = {};
    for (const [key, make] of Object.entries(makers))
        try {
            found[key] = make(require(packages[key]));
        } catch (e) {
            if (e.code !== 'MODULE_NOT_FOUND')
                console.error(`# no ${packages[key]}: ${e}`);
        }
    return found;
}

const BATCH = 1000;             // lines a call, for those that take many

function* batches(lines) {
    for (let i = 0; i < lines.length; i += BATCH)
        yield lines.slice(i, i + BATCH);
}

function readLines(file) {
    return fs.readFileSync(file, 'utf8').replace(/\n$/, '').split('\n');
}

async function time(dir, name, file) {
    const lines = readLines(file);
    for (const [key, encode] of Object.entries(await opponents(dir, name))) {
        await encode(lines.slice(0, BATCH));
        const start = performance.now(), before = process.cpuUsage();
        for (const batch of batches(lines))
            await encode(batch);
        const wall = performance.now() - start;
        const cpu = process.cpuUsage(before);
        console.log(key, wall / 1e3, (cpu.user + cpu.system) / 1e6);
    }
}

// Our ids come as NDJSON on standard input.  Lines with the text of a special
// token are left out: one of the others has no way to take it as text.
async function check(dir, name, file) {
    const lines = readLines(file);
    const ours = fs.readFileSync(0, 'utf8').trimEnd().split('\n')
        .map(line => JSON.parse(line).ids.join());
    if (ours.length !== lines.length)
        throw new Error(`${ours.length} records for ${lines.length} lines`);
    for (const [key, encode] of Object.entries(await opponents(dir, name))) {
        let i = 0, wrong = 0;
        for (const batch of batches(lines))
            for (const ids of await encode(batch)) {
                const line = lines[i], mine = ours[i++];
                if (mine === Array.from(ids).join() ||
                    /<\|\w+\|>/.test(line))
                    continue;
                if (wrong++ < 3)
                    console.error(`${packages[key]}: ${JSON.stringify(line)}` +
                        `\n  ours  ${mine}\n  other ${ids}`);
            }
        if (wrong)
            process.exitCode = 1;
        console.log(`# ${name}: ${lines.length - wrong} of ${lines.length} ` +
            `lines as ${packages[key]}`);
    }
}

const [command, ...args] = process.argv.slice(2);
await { corpus, check, time }[command](...args);
