// Checks a report in a browser. The results are written to the attribute `data-seen` of the element `html`.
(() => {
  const seen = { errors: [], lines: [] };
  addEventListener("error", e => seen.errors.push(String(e.message)));
  addEventListener("securitypolicyviolation", e => seen.errors.push("asks for " + e.blockedURI));
  addEventListener("load", () => {
    const charts = [...document.querySelectorAll(".chart")];
    const canvases = charts.map(chart => chart.querySelector("canvas"));
    const picture = () => canvases.map(canvas => canvas.toDataURL());
    const changed = (a, b) => a.filter((picture, i) => picture !== b[i]).length;
    // uPlot draws in a microtask, so the picture is complete after a short time.
    const redrawn = () => new Promise(done => setTimeout(done, 100));
    const look = async () => {
      await redrawn();
      // Lines and states have colors, but axes, labels and the cursor are grey. Colored pixels therefore show that a plot has
      // lines.
      seen.lines = canvases.map(canvas => {
        const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
        let colored = 0;
        for (let i = 0; i < data.length; i += 4) {
          const [r, g, b] = data.subarray(i, i + 3);
          if (data[i + 3] && Math.max(r, g, b) - Math.min(r, g, b) > 60) colored++;
        }
        return colored;
      });
      seen.title = document.querySelector("h1").textContent;
      seen.scripts = document.scripts.length;
      seen.missing = [...document.querySelectorAll("nav a")].filter(a => !document.querySelector(a.getAttribute("href"))).length;
      seen.unnamed = [...document.querySelectorAll("button, img, .chart")].filter(e => !(e.textContent.trim() || e.alt || e.getAttribute("aria-label"))).length;
      if (charts.length) {
        const over = charts[0].querySelector(".u-over"), box = over.getBoundingClientRect();
        const at = (type, part, target) => (target || over).dispatchEvent(new MouseEvent(type, {
          clientX: box.left + box.width * part, clientY: box.top + 50, movementX: 20, bubbles: true, view: window }));
        const before = picture();
        at("mouseenter", 0.5); at("mousemove", 0.5);
        await redrawn();
        seen.values = [...document.querySelectorAll("figcaption output")].filter(e => e.textContent).length;
        charts[0].dispatchEvent(new KeyboardEvent("keydown", { key: "+", bubbles: true }));
        await redrawn();
        seen.zoomed = changed(before, picture());
        at("dblclick", 0.5);
        await redrawn();
        seen.back = charts.length - changed(before, picture());
        at("mousedown", 0.4); at("mousemove", 0.6); at("mouseup", 0.6, document);
        await redrawn();
        seen.dragged = changed(before, picture());
        document.getElementById("fit").click();
        const utc = document.getElementById("utc");
        await redrawn();
        if (!utc.disabled) {
          utc.click();
          await redrawn();
          seen.utc = changed(before, picture());
        }
        const button = document.querySelector("figcaption button");
        const shown = picture();
        button.click();
        await redrawn();
        seen.hidden = button.getAttribute("aria-pressed") === "false" && changed(shown, picture());
      }
      document.documentElement.dataset.seen = JSON.stringify(seen);
    };
    look().catch(error => { seen.errors.push(String(error)); document.documentElement.dataset.seen = JSON.stringify(seen); });
  });
})();
