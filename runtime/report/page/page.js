// Draws each plot of the page from the data beside it, in the colours of the reader's scheme.
"use strict";
(() => {
  // Colours that stay apart for most eyes (after Okabe and Ito), on light and on dark; shapes tell them apart too.
  const light = ["#0072b2", "#d55e00", "#009e73", "#b0568a", "#8a6d00", "#3a86c8", "#6a3d9a", "#444444"];
  const dark = ["#56b4e9", "#ff8c42", "#2fd39a", "#e79bc4", "#f0e442", "#8fc7ff", "#b79bf0", "#dddddd"];
  const shapes = ["circle", "rect", "triangle", "rectRot", "star", "crossRot", "cross", "dash"];
  const glyphs = { circle: "\u25cf", rect: "\u25a0", triangle: "\u25b2", rectRot: "\u25c6", star: "\u2733", crossRot: "\u2715", cross: "+", dash: "\u2013", line: "\u22ef" };
  const scheme = window.matchMedia("(prefers-color-scheme: dark)");
  const print = window.matchMedia("print");
  const plots = [];

  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const number = (value) => (value >= 100 ? value.toFixed(0) : String(+value.toPrecision(3)));
  // What a logarithmic axis can show.
  const shown = (points) => points.filter(([x, y]) => x > 0 && y > 0).map(([x, y]) => ({ x, y }));

  // Those that win in front and in colour, by the M where each wins first; a large point is a win. The others thin
  // and under one name, the limit dotted.
  function datasets(data) {
    const colours = scheme.matches && !print.matches ? dark : light;
    const suffix = data.is_model ? " (model)" : "";
    const dash = data.is_model ? [6, 3] : [];
    const winners = data.series.filter((one) => one.wins.length > 0).sort((a, b) => a.wins[0] - b.wins[0]);
    const winning = winners.map((one, index) => ({
      label: one.label + suffix,
      data: shown(one.points),
      borderColor: colours[index % colours.length],
      backgroundColor: colours[index % colours.length],
      borderWidth: 2,
      borderDash: dash,
      // Another round of colours comes with other shapes.
      pointStyle: shapes[(index + Math.floor(index / colours.length)) % shapes.length],
      pointRadius: (point) => (point.raw && one.wins.includes(point.raw.x) ? 7 : 3),
      order: 0,
    }));
    const others = data.series.filter((one) => one.wins.length === 0);
    const behind = others.map((one, index) => ({
      label: one.label + suffix,
      legend: index === 0 ? others.length + (others.length > 1 ? " others, which never win" : " other, which never wins") + suffix : null,
      data: shown(one.points),
      borderColor: style("--quiet") + "59",
      backgroundColor: style("--quiet") + "59",
      borderWidth: 1,
      borderDash: dash,
      pointStyle: "circle",
      pointRadius: 2,
      order: 2,
    }));
    const limit = data.limit.length === 0 ? [] : [{
      label: "memory traffic of the winner alone" + suffix,
      data: shown(data.limit),
      borderColor: style("--text"),
      backgroundColor: style("--text"),
      borderWidth: 1.5,
      borderDash: [1, 4],
      pointStyle: "line",
      pointRadius: 0,
      order: 1,
    }];
    return winning.concat(behind, limit);
  }

  // A logarithmic axis over the values, a little wider than they are, with ticks that the caller chooses.
  function axis(title, values, ticks, label) {
    const low = Math.min(...values), high = Math.max(...values);
    return {
      type: "logarithmic",
      min: low / 1.15,
      max: high * 1.15,
      title: { display: true, text: title, color: style("--quiet") },
      afterBuildTicks: (scale) => { scale.ticks = ticks(low / 1.15, high * 1.15).map((value) => ({ value })); },
      ticks: { color: style("--quiet"), autoSkip: false, maxRotation: 0, callback: label },
      grid: { color: style("--line"), borderColor: style("--line") },
    };
  }

  // 1, 2 and 5 of each decade; where that is too few, every digit.
  function round_ticks(low, high) {
    const all = [];
    for (let decade = Math.floor(Math.log10(low)); decade <= Math.log10(high); ++decade) {
      for (let digit = 1; digit < 10; ++digit) {
        all.push(+(digit * 10 ** decade).toPrecision(1));
      }
    }
    const inside = all.filter((value) => value >= low && value <= high);
    const coarse = inside.filter((value) => ["1", "2", "5"].includes(value.toExponential()[0]));
    return coarse.length >= 3 ? coarse : inside;
  }

  // The values themselves, without those whose labels would run into the one before.
  function spaced(values, width) {
    const span = Math.log(values[values.length - 1] / values[0]) || 1;
    return values.reduce((kept, value) => {
      const room = kept.length === 0 ? Infinity : Math.log(value / kept[kept.length - 1]) / span * width;
      return room < 40 ? kept : kept.concat(value);
    }, []);
  }

  function options(data, sets, width) {
    const points = sets.flatMap((set) => set.data);
    const values = [...new Set(points.map((point) => point.x))].sort((a, b) => a - b);
    const times = points.map((point) => point.y);
    const y_title = "microseconds" + (data.is_model ? ", model" : "");
    return {
      responsive: true,
      maintainAspectRatio: false,
      animation: false,
      interaction: { mode: "nearest", intersect: false },
      plugins: {
        title: { display: true, text: "Microseconds by M: " + data.basis, color: style(data.is_model ? "--model" : "--text") },
        legend: { display: false },
        tooltip: {
          callbacks: {
            title: (items) => "M = " + items[0].parsed.x,
            label: (item) => item.dataset.label + ": " + number(item.parsed.y) + " us",
          },
        },
      },
      scales: {
        x: axis("M", values, () => spaced(values, width), (value) => value),
        y: axis(y_title, times, round_ticks, number),
      },
    };
  }

  // Beside the plot and not in it: a narrow page breaks its lines.
  function draw_legend(list, sets) {
    list.replaceChildren(...sets.filter((set) => set.legend !== null).map((set) => {
      const item = document.createElement("li");
      const glyph = document.createElement("span");
      glyph.textContent = glyphs[set.pointStyle];
      glyph.style.color = set.borderColor;
      item.append(glyph, " " + (set.legend || set.label));
      return item;
    }));
  }

  function draw() {
    plots.splice(0).forEach((plot) => plot.destroy());
    for (const script of document.querySelectorAll("script.data")) {
      const data = JSON.parse(script.textContent);
      const sets = datasets(data);
      const canvas = script.parentElement.querySelector("canvas");
      draw_legend(script.parentElement.querySelector(".legend"), sets);
      plots.push(new Chart(canvas, { type: "line", data: { datasets: sets }, options: options(data, sets, canvas.parentElement.clientWidth) }));
    }
  }

  draw();
  scheme.addEventListener("change", draw);
  print.addEventListener("change", draw);
})();
