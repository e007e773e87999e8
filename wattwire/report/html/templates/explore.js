"use strict";
// The part to look around in: choices and ticks, a chart of the runs shown, rows of tables.
const explorer = document.getElementById("explorer");
if (explorer) explore(JSON.parse(document.getElementById("explorer-data").textContent));

function explore(data) {
  const page = {
    data,
    runs: unpacked(data.runs),
    choice: (name) => document.getElementById(`choose-${name}`),
    boxes: [...explorer.querySelectorAll("[data-level]")].map((box) => ({
      box,
      factor: Number(box.closest("[data-factor]").dataset.factor),
      level: box.dataset.level,
    })),
    withSetAside: document.getElementById("with-excluded"),
    showAll: document.getElementById("show-all"),
    tables: filterable(),
    latest: null, // a chart that took long must not replace one asked for after it
  };
  explorer.addEventListener("change", () => update(page));
  page.showAll.addEventListener("click", () => {
    for (const { box } of page.boxes) box.checked = true;
    update(page);
    page.boxes[0].box.focus();
  });
  begin(page);
  explorer.hidden = false;
  update(page);
}

// What is chosen before a reader chooses: as in the figures to print.
function begin({ data, choice }) {
  choice("other").selectedIndex = Math.min(1, data.responses.length - 1);
  choice("tone").selectedIndex = data.begin.tone;
  choice("across").selectedIndex = data.begin.across;
  choice("panel").selectedIndex = data.begin.panel === null ? 0 : data.begin.panel + 1;
}

function update(page) {
  const { data, boxes, choice, withSetAside } = page;
  const levels = data.factors.map(() => new Set());
  for (const { box, factor, level } of boxes) if (box.checked) levels[factor].add(level);
  const all = withSetAside !== null && withSetAside.checked;
  const counted = page.runs.filter((run) => all || run.used === "valid");
  const shown = counted.filter((run) => levels.every((kept, at) => kept.has(run[`f${at}`])));
  const countText = `${shown.length} of ${counted.length} ${all ? "runs" : "valid runs"} shown`;
  document.getElementById("shown").textContent = countText;
  page.showAll.hidden = boxes.every(({ box }) => box.checked);
  filterTables(data, levels, page.tables);
  const kind = data.kinds[choice("kind").value];
  for (const label of explorer.querySelectorAll("[data-choice]")) {
    const name = label.dataset.choice;
    label.hidden = name !== "kind" && !kind.choices.includes(name);
  }
  draw(page, kind, shown, levels);
}

function draw(page, kind, shown, levels) {
  const picked = chosen(page.data, page.choice, levels, shown);
  const missing = shown.length - picked.points.length;
  const words = [kind.says];
  if (missing) words.push(`${missing} of the runs shown lack this value and are omitted.`);
  if (picked.linear) words.push(picked.linear);
  const says = document.getElementById("explorer-says");
  const stage = document.getElementById("explorer-chart");
  if (!picked.points.length) {
    page.latest = null;
    stage.replaceChildren();
    says.textContent = "No run to show. Select at least one level of each factor.";
    return;
  }
  says.textContent = words.join(" ");
  const options = { renderer: "svg", ast: true, logLevel: 1, actions };
  const fresh = document.createElement("div");
  page.latest = fresh;
  vegaEmbed(fresh, chart(page.data, kind, picked), options)
    .then(() => page.latest === fresh && stage.replaceChildren(fresh))
    .catch((error) => console.error("explorer", error));
}

// What is chosen, as points and as the words that a pattern is filled with.
function chosen(data, choice, levels, shown) {
  const kind = data.kinds[choice("kind").value];
  const uses = (name) => kind.choices.includes(name);
  const at = (name) => Number(choice(name).value);
  const panel = uses("panel") && choice("panel").value !== "" ? at("panel") : null;
  const factor = (place) => {
    const { title, levels: all } = data.factors[place];
    const kept = all.filter(({ level }) => levels[place].has(level));
    const of = new Map(kept.map((one) => [one.level, one.drawn ?? one.title]));
    return { title, titles: [...of.values()], of };
  };
  const tone = factor(at("tone"));
  const across = factor(at("across"));
  const panels = panel === null ? null : factor(panel);
  const value = data.responses[at("value")];
  const other = data.responses[at("other")];
  const others = data.factors
    .map((each, place) => place)
    .filter((place) => place !== at("tone") && place !== panel && levels[place].size > 1);
  const rowPlaces = [...others, at("tone")];
  const rowFactors = rowPlaces.map(factor);
  const rowTitle = (keys) => {
    const titles = keys.map((level, index) => rowFactors[index].of.get(level));
    return [titles.at(-1), ...titles.slice(0, -1)].join(", ");
  };
  let first = null;
  let block = null;
  const points = [];
  for (const run of shown) {
    if (run.block !== block) [block, first] = [run.block, run.order];
    const point = {
      run: run.run, treatment: run.treatment, order: run.order, used: run.used,
      edge: first > 1 ? first - 0.5 : null,
      value: run[`r${at("value")}`],
      colour: tone.of.get(run[`f${at("tone")}`]),
      across: across.of.get(run[`f${at("across")}`]),
      panel: panels ? panels.of.get(run[`f${panel}`]) : "",
    };
    point.down = point.colour;
    point.levels = rowPlaces.map((place) => run[`f${place}`]);
    point.row = rowTitle(point.levels);
    [point.x, point.y] = [run[`r${at("other")}`], point.value];
    const known = point.value !== null && (!uses("other") || point.x !== null);
    if (known) points.push(point);
  }
  const wanted = choice("log").checked;
  const positive = (field) => points.every((point) => point[field] > 0);
  const scale = (field) => (wanted && positive(field) ? "log" : "linear");
  const title = (response, field) => response.title.replace(/\)?$/, (end) =>
    scale(field) !== "log" ? end : end ? ", log scale)" : " (log scale)");
  const why = "The scale is linear because some values are zero or negative.";
  const linear = wanted && scale("value") === "linear" ? why : "";
  const present = new Set(points.map((point) => point.panel));
  const rows = rowsInOrder(points, rowFactors);
  return {
    points, linear, names_px: namesPx(rows),
    panels: panels ? panels.titles.filter((name) => present.has(name)) : [],
    acrosses: across.titles, levels: tone.titles,
    words: {
      "@levels": tone.titles, "@tone": tone.title, "@rows": rows, "@room": namesPx(rows),
      "@across": across.title, "@acrosses": across.titles,
      "@panels": panels ? panels.titles.filter((name) => present.has(name)) : [],
      "@value": title(value, "value"), "@scale": scale("value"),
      "@other": title(other, "x"), "@otherscale": scale("x"),
    },
  };
}

// Rows that have points; levels of the colour are next to each other for each other level.
function rowsInOrder(points, factors) {
  const places = factors.map(({ of }) => new Map([...of.keys()].map((level, at) => [level, at])));
  const place = (point) => point.levels.map((level, at) => places[at].get(level));
  const sorted = points.map((point) => [place(point), point.row]).sort(([one], [other]) => {
    const at = one.findIndex((each, index) => each !== other[index]);
    return at < 0 ? 0 : one[at] - other[at];
  });
  return [...new Set(sorted.map(([, row]) => row))];
}

// Room for the names of rows, as in figures/runs.py; longer names are cut.
function namesPx(rows) {
  const longest = Math.max(0, ...rows.map((name) => name.length));
  return Math.min(320, Math.max(150, Math.ceil(6.1 * longest) + 14));
}

// The pattern of a kind filled in, with as many panels per row as fit.
function chart(data, kind, picked) {
  const spec = filled(kind.pattern, picked.words);
  spec.config = data.config;
  spec.datasets = { points: picked.points };
  if (!spec.spec) return fitted(spec, picked);
  const columns = Math.max(1, Math.min(3, picked.panels.length));
  const names_px = kind.rows ? picked.names_px - 150 : 0;
  const column_px = Math.floor((kind.width_px - names_px - data.gap_px * (columns - 1)) / columns);
  const heat = picked.words && kind.pattern.spec.encoding !== undefined;
  const width_px = heat ? Math.min(column_px, 90 * picked.acrosses.length) : column_px;
  spec.spec.width = Math.max(120, width_px);
  const cells = picked.acrosses.length * picked.levels.length * Math.max(1, picked.panels.length);
  if (heat && cells > data.cells_max) spec.spec.layer = spec.spec.layer.slice(0, 1);
  fitted(spec.spec, picked);
  if (picked.panels.length > 1) return { ...spec, columns };
  const { facet, spec: alone, columns: none, spacing, ...rest } = spec;
  return { ...rest, ...alone };
}

// Titles in lines, round ticks with room, smaller dots in a crowd: as fitting.py does for print.
function fitted(unit, { points }) {
  for (const part of [unit, ...(unit.layer || [])]) {
    const { encoding = {}, mark = {} } = part;
    for (const [name, side, label] of [["x", "width", 45], ["y", "height", 20]]) {
      const room = unit[side];
      if (!encoding[name] || typeof room !== "number") continue;
      const { title } = encoding[name];
      if (typeof title === "string") encoding[name].title = wrapped(title, room);
      ticks(encoding[name], room / label, points);
    }
    if (mark.crowded && points.length > 400) mark.size = mark.crowded;
    delete mark.crowded;
  }
  return unit;
}

function wrapped(title, room) {
  const letters = Math.max(8, Math.floor(room / 6.1));
  if (title.length <= letters) return title;
  const at = title.indexOf(" (");
  const words = (at < 0 ? title : title.slice(0, at)).split(" ");
  if (at >= 0) words.push(title.slice(at + 1));
  const lines = [""];
  for (const word of words) {
    const longer = `${lines.at(-1)} ${word}`.trim();
    if (longer.length <= letters || !lines.at(-1)) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  // What every object has, such as constructor, is no key for Vega (letters.py).
  return lines.map((line) => (line in {} ? `${line}\u00a0` : line));
}

function ticks(channel, room, points) {
  if (!channel.axis || !channel.scale || channel.scale.type !== "log") return;
  const values = points.map((point) => point[channel.field]).filter((value) => value > 0);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  if (!(low < high)) return;
  const decades = Math.log10(high) - Math.log10(low);
  const wide = [[5.6, [1, 2, 3, 5, 7]], [3, [1, 2, 5]], [1.7, [1, 3]], [0, [1]]];
  const [, digits] = wide.find(([least]) => room / decades >= least);
  const step = digits.length > 1 ? 1 : Math.max(1, Math.ceil(decades / room));
  const found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += step) {
    found.push(...digits.map((digit) => Number(`${digit}e${power}`)));
  }
  const kept = found.filter((tick) => low <= tick && tick <= high);
  if (kept.length >= 3) channel.axis.values = kept;
}

// Words with an @ in a pattern give way to what they stand for; what was put in is left alone.
function filled(node, words) {
  if (typeof node === "string") {
    if (Object.hasOwn(words, node)) return words[node];
    return node.replace(/@[a-z]+/g, (word) => (Object.hasOwn(words, word) ? words[word] : word));
  }
  if (Array.isArray(node)) {
    if (typeof node[0] === "string" && Array.isArray(words[node[0]])) return words[node[0]];
    return node.map((each) => filled(each, words));
  }
  if (node === null || typeof node !== "object") return node;
  return Object.fromEntries(Object.entries(node).map(([key, each]) => [key, filled(each, words)]));
}

function filterable() {
  return [...document.querySelectorAll("main .table")]
    .map((holder) => ({
      holder,
      rows: [...holder.querySelectorAll("tr[data-levels]")].map((row) => ({
        row,
        levels: Object.entries(JSON.parse(row.dataset.levels)),
      })),
    }))
    .filter(({ rows }) => rows.length);
}

function filterTables(data, levels, tables) {
  const kept = new Map(data.factors.map((factor, at) => {
    const left = factor.levels.filter(({ level }) => levels[at].has(level));
    // A cell may hold the level itself or the name that readers know it by.
    return [factor.name, new Set(left.flatMap(({ level, title }) => [level, title]))];
  }));
  for (const { holder, rows } of tables) {
    let shown = 0;
    for (const { row, levels: mine } of rows) {
      row.hidden = mine.some(([name, level]) => kept.has(name) && !kept.get(name).has(level));
      shown += row.hidden ? 0 : 1;
    }
    let note = holder.querySelector(".filtered");
    if (!note) {
      note = document.createElement("p");
      note.className = "filtered";
      holder.querySelector(".scroll").before(note);
    }
    note.hidden = shown === rows.length;
    const link = '<a href="#explore">Explore the runs</a>';
    note.innerHTML = `${shown} of ${rows.length} rows shown; filter: ${link}`;
  }
}
