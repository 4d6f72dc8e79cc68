#!/usr/bin/env python3
"""Opens every view of `octet watch` in Chromium, on a live run and on a recorded one, and compares numbers with metrics.jsonl.

Usage: check.py PROGRAM FOLDER. Exit code 77 without Debian's chromium-driver and python3-selenium. Screenshots at 1280 and 390 pixels remain
in FOLDER.
"""
import html
import json
import pathlib
import shutil
import subprocess
import sys
import time

program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
try:
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
except ImportError:
    print("SKIPPED: no python3-selenium")
    sys.exit(77)
driver = shutil.which("chromedriver")
if not driver:
    print("SKIPPED: no chromium-driver")
    sys.exit(77)

CONFIG = """[model]
size = "llama-tiny"
layers = 2
width = 64
heads = 4
kv_heads = 2
hidden = 96
[data]
path = "data"
sequence_length = 32
[train]
steps = %d
batch = 2
health_every = 5
sample_every = 20
sample_prompt = "a line"
sample_tokens = 8
save_weights = false
"""
EVIL = "<img src=x onerror=document.title=1>"


def octet(*words, **more):
    return subprocess.run([program, *words], cwd=folder, check=True, capture_output=True, text=True, **more)


def lines(run, kind):
    path = folder / "runs" / run / "metrics.jsonl"
    text = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line) for line in text if line.startswith('{"event":"%s"' % kind) and line.endswith("}")]


def until(what, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if (got := what()):
            return got
        time.sleep(0.1)
    raise AssertionError("nothing within %d seconds: %s" % (seconds, what))


def prepare():
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "text").mkdir(parents=True)
    (folder / "text/a.txt").write_text("".join("a line that counts to %d\n" % (i * i) for i in range(800)))
    (folder / "short.toml").write_text(CONFIG % 40)
    (folder / "live.toml").write_text(CONFIG % 1000000)
    octet("tokenize", "--input", "text/*.txt", "--output", "data")
    octet("train", "short.toml", "--fp8", "--quiet", "--name", "recorded")
    shutil.copytree(folder / "runs/recorded", folder / "runs" / EVIL)
    with open(folder / "runs" / EVIL / "metrics.jsonl", "a") as out:
        event = {"event": "incident", "step": 30, "time": 1.0, "kind": "<b>kind</b>", "path": "<i>", "text": "<script>document.title=2</script>"}
        out.write(json.dumps(event) + "\n")
        sample = {"event": "sample", "step": 30, "time": 1.0, "prompt": "<b>", "text": "<script>document.title=3</script>", "tokens": 1, "end": "length"}
        out.write(json.dumps(sample) + "\n")
    octet("report", "runs/" + EVIL)


class Page:
    def __init__(self, address, width):
        options = Options()
        for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=%d,1000" % width):
            options.add_argument(word)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(service=Service(driver), options=options)
        self.driver.get(address)
        until(lambda: len(self.all("tr.link")) == 3)  # several runs: their table comes first

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def tile(self, name):
        """The number of a tile, read at once: the page replaces tiles while it is live."""
        read = "return [...document.querySelectorAll('.tile')].map((t) => [...t.children].map((c) => c.textContent))"
        return next((words[1] for words in self.driver.execute_script(read) if words[0] == name), "")

    def text(self, selector):
        return self.driver.execute_script("return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def show(self, run, view):
        options = self.driver.execute_script("return [...document.querySelectorAll('#runs option')].map((o) => o.textContent)")
        number = next(i for i, text in enumerate(options) if text.startswith("%d %s," % (i, run)))
        self.driver.execute_script("location.hash = 'run=%d&view=%s'" % (number, view.replace(" ", "%20")))
        until(lambda: self.driver.title.startswith(run))
        until(lambda: self.text("nav [aria-current=page]") == view)

    def errors(self):
        return [entry["message"] for entry in self.driver.get_log("browser")]


def check_live(page):
    step = lambda: int(page.tile("Step").replace(",", "") or 0)
    page.show("live", "Overview")
    first = until(step)
    until(lambda: step() > first)
    assert page.text("#condition") == "running"
    newest = lines("live", "step")[-1]["step"]
    until(lambda: step() >= newest, 2)


def check_links(page, address):
    """A report's link opens the incident of that run, and the page links to the report."""
    report = (folder / "runs" / EVIL / "report.html").read_text()
    link = html.unescape(report[report.index('href="') + 6:].split('"')[0])
    page.driver.get("about:blank")
    page.driver.get(address + link[link.index("#"):])
    until(lambda: "Step 30: <b>kind</b>" in page.text("main"))
    page.show(EVIL, "Overview")
    until(lambda: page.all("a[href$=report]"))
    page.driver.get(page.driver.execute_script("return document.querySelector('a[href$=report]').href"))
    source = page.driver.page_source  # its scripts are disabled, those of this test, too
    assert "&lt;script&gt;document.title=2&lt;/script&gt;" in source and "<script" not in source, source[:500]
    page.driver.get(address)
    until(lambda: page.all("tr.link"))


def check_samples(page):
    page.show("recorded", "Samples")
    wanted = lines("recorded", "sample")
    assert [e["step"] for e in wanted] == [20, 40], wanted
    until(lambda: len(page.all("article pre")) == 2)
    shown = page.driver.execute_script("return document.querySelector('article pre').textContent")
    assert shown == wanted[1]["prompt"] + wanted[1]["text"], (shown, wanted[1])


def check_runs(page):
    page.show("recorded", "Runs")
    search = page.all("input[type=search]")[0]
    search.send_keys("live")
    until(lambda: len(page.all("tr.link")) == 1)
    search.clear()
    search.send_keys(Keys.SPACE, Keys.BACKSPACE)
    until(lambda: len(page.all("tr.link")) == 3)
    names = lambda: page.driver.execute_script("return [...document.querySelectorAll('tr.link')].map((r) => r.children[1].textContent)")
    page.driver.execute_script("[...document.querySelectorAll('th button')].find((b) => b.textContent.startsWith('run')).click()")
    until(lambda: names() == sorted(names()))
    page.driver.execute_script("[...document.querySelectorAll('tr.link')].find((r) => r.children[1].textContent === 'live').click()")
    until(lambda: page.driver.title.startswith("live"))
    assert page.text("nav [aria-current=page]") == "Overview"


def check_recorded(page, width):
    page.show("recorded", "Overview")
    last = lines("recorded", "step")[-1]
    until(lambda: page.tile("Step") == "40")
    assert abs(float(page.tile("Loss")) - last["loss"]) < 1e-4 * last["loss"], (page.tile("Loss"), last)
    assert abs(float(page.tile("Gradient norm")) - last["grad_norm"]) < 1e-3 * last["grad_norm"]
    until(lambda: page.all(".plot canvas"))
    assert page.driver.execute_script("return document.documentElement.scrollWidth <= window.innerWidth"), "wider than the window"
    page.driver.save_screenshot(str(folder / ("overview-%d.png" % width)))
    page.show("recorded", "FP8 tensors")
    until(lambda: page.text(".key"))  # the scale of colours is there when the map is drawn
    canvas = page.all(".heat canvas")[0]
    page.driver.save_screenshot(str(folder / ("tensors-%d.png" % width)))
    canvas.send_keys(Keys.ARROW_DOWN, Keys.ENTER)
    until(lambda: len(page.all("section .plot canvas")) > 0)


def check_text(page):
    page.show(EVIL, "Incidents")
    until(lambda: "<script>document.title=2</script>" in page.text("main"))
    assert "<b>kind</b>" in page.text("main")
    for view in ("Compare", "Ranks", "Experts", "Samples", "Overview", "FP8 tensors"):
        page.show(EVIL, view)
    assert not page.all("main img, main script, main b, select img")
    page.driver.find_element(By.ID, "theme").click()
    assert page.driver.execute_script("return document.documentElement.dataset.theme") in ("dark", "light")


prepare()
live = subprocess.Popen([program, "train", "live.toml", "--fp8", "--quiet", "--name", "live"], cwd=folder, stderr=subprocess.DEVNULL)
server = subprocess.Popen([program, "watch", "runs", "--port", "0"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
try:
    address = server.stdout.readline().strip()
    until(lambda: lines("live", "step"))
    for width in (1280, 390):
        page = Page(address, width)
        try:
            until(lambda: len(page.all("#runs option")) == 3)
            if width == 1280:
                check_runs(page)
                check_live(page)
                check_text(page)
                check_links(page, address)
                check_samples(page)
            check_recorded(page, width)
            assert page.errors() == [], page.errors()
        finally:
            page.driver.quit()
    live.kill(), live.wait()
finally:
    for process in (live, server):
        process.kill()
        process.wait()
print("every view shows the numbers of metrics.jsonl")
